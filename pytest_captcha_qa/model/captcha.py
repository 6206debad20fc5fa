"""The captcha types and the vendor-neutral facts about each of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CaptchaType(StrEnum):
    """The types the harness knows; the values are the names used in configuration and records."""

    RECAPTCHA_V2 = "recaptcha_v2"
    RECAPTCHA_V2_INVISIBLE = "recaptcha_v2_invisible"
    RECAPTCHA_V3 = "recaptcha_v3"
    RECAPTCHA_ENTERPRISE = "recaptcha_enterprise"
    TURNSTILE = "turnstile"
    HCAPTCHA = "hcaptcha"
    GEETEST_V3 = "geetest_v3"
    GEETEST_V4 = "geetest_v4"
    FRIENDLY_V2 = "friendly_v2"
    ALTCHA = "altcha"
    IMAGE = "image"


class Binding(StrEnum):
    """What a token is good for: any load of the page, or only the one the challenge came from."""

    SITE = "site"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class TestKeys:
    """Official keys with which the vendor's service always passes; `token` None means any string does."""

    __test__ = False  # not a test class, whatever its name

    sitekey: str
    token: str | None


@dataclass(frozen=True, slots=True)
class CaptchaFacts:
    """What is true of a type whoever solves it.

    `ttl`: seconds a token stays valid; `margin`: seconds kept in hand of it; `expected`: a typical solve in seconds;
    `solve_deadline`: seconds after which waiting makes no sense; `drain`: seconds a draining worker waits for one.
    """

    ttl: float
    margin: float
    expected: float
    solve_deadline: float
    drain: float
    binding: Binding = Binding.SITE
    test_keys: TestKeys | None = None

    @property
    def keep(self) -> float:
        """Seconds a token may be handed out after it was known not to be ready (R1.5)."""
        return self.ttl - self.margin


# TTLs: Google and hCaptcha document 2 minutes, Cloudflare 300 s; GeeTest and Friendly document none, so the 60 s life
# of a GeeTest challenge is taken for all of them. Expected times: figures of the providers' own SDKs.
FACTS: dict[CaptchaType, CaptchaFacts] = {
    CaptchaType.RECAPTCHA_V2: CaptchaFacts(
        120, 10, 30, 300, 120,
        test_keys=TestKeys("6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI", None),
    ),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: CaptchaFacts(120, 10, 30, 300, 120),
    CaptchaType.RECAPTCHA_V3: CaptchaFacts(120, 10, 10, 180, 60),
    CaptchaType.RECAPTCHA_ENTERPRISE: CaptchaFacts(120, 10, 30, 300, 120),
    CaptchaType.TURNSTILE: CaptchaFacts(
        300, 20, 8, 120, 40,
        test_keys=TestKeys("1x00000000000000000000AA", "XXXX.DUMMY.TOKEN.XXXX"),
    ),
    CaptchaType.HCAPTCHA: CaptchaFacts(
        120, 10, 30, 300, 120,
        test_keys=TestKeys("10000000-ffff-ffff-ffff-000000000001", "10000000-aaaa-bbbb-cccc-000000000001"),
    ),
    CaptchaType.GEETEST_V3: CaptchaFacts(60, 10, 15, 180, 60, Binding.PAGE),
    CaptchaType.GEETEST_V4: CaptchaFacts(60, 10, 15, 180, 60),
    CaptchaType.FRIENDLY_V2: CaptchaFacts(60, 10, 10, 180, 60),
    CaptchaType.ALTCHA: CaptchaFacts(60, 10, 2, 120, 30, Binding.PAGE),
    CaptchaType.IMAGE: CaptchaFacts(60, 10, 8, 120, 40, Binding.PAGE),
}  # fmt: skip


def facts(kind: CaptchaType) -> CaptchaFacts:
    """Return the facts of one type."""
    return FACTS[kind]
