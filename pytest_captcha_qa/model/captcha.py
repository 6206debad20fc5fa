"""The captcha types and the vendor-neutral facts about each of them."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A vendor's official test keys (reference/verification.md 2.1).

    `tokens`: for each sitekey whose widget solves itself, the token it gives; `failing`: sitekeys whose widget gives
    none that passes; `secrets`: what a site verifies them with; `any_token`: whether that accepts every text.
    """

    __test__ = False  # not a test class, whatever its name

    tokens: Mapping[str, str]
    secrets: frozenset[str]
    failing: frozenset[str] = frozenset()
    any_token: bool = False

    @property
    def sitekeys(self) -> frozenset[str]:
        """All of them, whatever their widgets do."""
        return frozenset(self.tokens) | self.failing


@dataclass(frozen=True, slots=True)
class CaptchaFacts:
    """What is true of a type whoever solves it.

    `ttl`: seconds a token stays valid; `margin`: seconds kept in hand of it; `expected`: a typical solve in seconds;
    `solve_deadline`: seconds after which waiting makes no sense; `drain`: seconds a draining worker waits for one;
    `has_vendor`: whether a vendor verifies tokens, not only the site itself; `before_solution`: what the form's field
    may hold before there is a token (reference/verification.md 1.5).
    """

    ttl: float
    margin: float
    expected: float
    solve_deadline: float
    drain: float
    binding: Binding = Binding.SITE
    test_keys: TestKeys | None = None
    has_vendor: bool = True
    before_solution: tuple[str, ...] = ()

    @property
    def keep(self) -> float:
        """Seconds a token may be handed out after it was known not to be ready (R1.5)."""
        return self.ttl - self.margin


_GOOGLE = TestKeys(
    # Any text passes; some libraries ask no vendor about one below 100 characters.
    tokens={"6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI": "7e57k3y0" * 16},
    secrets=frozenset({"6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe"}),
    any_token=True,
)
_DUMMY = "XXXX.DUMMY.TOKEN.XXXX"
_CLOUDFLARE = TestKeys(
    tokens=dict.fromkeys(("1x00000000000000000000AA", "1x00000000000000000000BB", "3x00000000000000000000FF"), _DUMMY),
    secrets=frozenset(f"{first}x0000000000000000000000000000000AA" for first in "123"),
    failing=frozenset({"2x00000000000000000000AB", "2x00000000000000000000BB"}),
)
_HCAPTCHA = TestKeys(
    tokens={f"{n}0000000-ffff-ffff-ffff-00000000000{n}": f"{n}0000000-aaaa-bbbb-cccc-00000000000{n}" for n in (1, 2)},
    secrets=frozenset({"0x0000000000000000000000000000000000000000"}),
    failing=frozenset({"30000000-ffff-ffff-ffff-000000000003"}),  # plays a bot
)

# TTLs: Google and hCaptcha document 2 minutes, Cloudflare 300 s; GeeTest and Friendly document none, so the 60 s life
# of a GeeTest challenge is taken for all of them. Expected times: figures of the providers' own SDKs.
FACTS: dict[CaptchaType, CaptchaFacts] = {
    CaptchaType.RECAPTCHA_V2: CaptchaFacts(
        120, 10, 30, 300, 120,
        test_keys=_GOOGLE,
    ),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: CaptchaFacts(120, 10, 30, 300, 120),
    CaptchaType.RECAPTCHA_V3: CaptchaFacts(120, 10, 10, 180, 60),
    CaptchaType.RECAPTCHA_ENTERPRISE: CaptchaFacts(120, 10, 30, 300, 120),
    CaptchaType.TURNSTILE: CaptchaFacts(
        300, 20, 8, 120, 40,
        test_keys=_CLOUDFLARE,
    ),
    CaptchaType.HCAPTCHA: CaptchaFacts(
        120, 10, 30, 300, 120,
        test_keys=_HCAPTCHA,
    ),
    CaptchaType.GEETEST_V3: CaptchaFacts(60, 10, 15, 180, 60, Binding.PAGE),
    CaptchaType.GEETEST_V4: CaptchaFacts(60, 10, 15, 180, 60),
    CaptchaType.FRIENDLY_V2: CaptchaFacts(
        60, 10, 10, 180, 60,
        before_solution=(".UNSTARTED", ".SOLVING", ".EXPIRED", ".ERROR"),
    ),
    CaptchaType.ALTCHA: CaptchaFacts(60, 10, 2, 120, 30, Binding.PAGE, has_vendor=False),
    CaptchaType.IMAGE: CaptchaFacts(60, 10, 8, 120, 40, Binding.PAGE, has_vendor=False),
}  # fmt: skip


def facts(kind: CaptchaType) -> CaptchaFacts:
    """Return the facts of one type."""
    return FACTS[kind]


def is_test_sitekey(sitekey: str) -> bool:
    """Return whether a sitekey is an official test key of any vendor, in whatever case it is written.

    Google's is made for checkboxes and works in invisible widgets as well; no vendor has two keys that differ in case.
    """
    return sitekey.lower() in _TEST_SITEKEYS


_TEST_SITEKEYS = frozenset(key.lower() for it in FACTS.values() if it.test_keys for key in it.test_keys.sitekeys)


def official_secrets() -> frozenset[str]:
    """Return the official test secrets of all vendors."""
    return frozenset(secret for known in FACTS.values() if known.test_keys for secret in known.test_keys.secrets)


def official_tokens() -> frozenset[str]:
    """Return the dummy tokens that the vendors publish with their test keys."""
    return frozenset(token for known in FACTS.values() if known.test_keys for token in known.test_keys.tokens.values())
