"""The vendors' own verification services: what each is asked, and how its answer reads.

Facts: reference/verification.md 1.1 to 1.3, from the vendors' documentation of their services.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import TOKEN, Solution

_CODE = re.compile(r"[a-z0-9_-]{1,60}\Z")
_GEETEST_HASH = re.compile(r"[0-9a-f]{32,128}\Z")  # md5, sha256 or hmac-sha256 of the seccode


@dataclass(frozen=True, slots=True)
class VendorAnswer:
    """What a vendor said; None where it says nothing. `codes` are its own, of the documented alphabet."""

    passed: bool
    codes: tuple[str, ...] = ()
    hostname: str | None = None
    action: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class VendorShape:
    """How one vendor verifies tokens of a type.

    `fields`: form fields and the part of the solution each takes; `request`: what is asked beside the secret;
    `read`: its answer, None if it is not a documented one; `binds_action`: whether every genuine answer names
    the action; `scored`: whether it carries a score from 0 (bot) to 1 (human).
    """

    vendor: str
    endpoint: str
    fields: Mapping[str, str]
    request: Callable[[Challenge, Mapping[str, str]], Mapping[str, str]]
    read: Callable[[object], VendorAnswer | None]
    needs_secret: bool = True
    binds_action: bool = False
    scored: bool = False

    def parts(self, solution: Solution) -> dict[str, str]:
        """Return the value of each form field; a solution without any of the parts goes into all of them."""
        found = {name: str(solution.parts[part]) for name, part in self.fields.items() if part in solution.parts}
        return found or dict.fromkeys(self.fields, str(solution.text))


SECRET_CODES = frozenset({"missing-input-secret", "invalid-input-secret", "sitekey-secret-mismatch"})
"""Codes that speak of the secret, not of the token."""

REQUEST_CODES = frozenset({"bad-request", "internal-error", "missing-remoteip", "invalid-remoteip"})
"""Codes that leave the token unjudged."""


def _read_siteverify(answer: object) -> VendorAnswer | None:
    if not isinstance(answer, dict) or not isinstance(answer.get("success"), bool):
        return None
    codes = answer.get("error-codes")
    return VendorAnswer(
        passed=answer["success"],
        codes=tuple(code for code in codes if _is_code(code)) if isinstance(codes, list) else (),
        hostname=_text(answer.get("hostname")),
        action=_text(answer.get("action")),
        score=_number(answer.get("score")),
    )


def _read_geetest(answer: object) -> VendorAnswer | None:
    seccode = answer.get("seccode") if isinstance(answer, dict) else None
    if seccode == "false":
        return VendorAnswer(passed=False)
    if isinstance(seccode, str) and _GEETEST_HASH.match(seccode):
        return VendorAnswer(passed=True)
    return None


def _is_code(code: object) -> bool:
    return isinstance(code, str) and _CODE.match(code) is not None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # JSON has integers that no float can hold
        return None


def _ask_token(field: str) -> Callable[[Challenge, Mapping[str, str]], Mapping[str, str]]:
    return lambda challenge, values: {"response": values[field]}


def _ask_hcaptcha(challenge: Challenge, values: Mapping[str, str]) -> Mapping[str, str]:
    # With the sitekey hCaptcha itself compares which form the token is for.
    return {"response": values["h-captcha-response"], "sitekey": challenge.sitekey}


def _ask_geetest(challenge: Challenge, values: Mapping[str, str]) -> Mapping[str, str]:
    told = {name: values.get(f"geetest_{name}", "") for name in ("seccode", "challenge")}
    return {**told, "captchaid": challenge.sitekey, "json_format": "1"}


def _google(*, v3: bool = False) -> VendorShape:
    return VendorShape(
        vendor="Google",
        endpoint="https://www.google.com/recaptcha/api/siteverify",
        fields={"g-recaptcha-response": TOKEN},
        request=_ask_token("g-recaptcha-response"),
        read=_read_siteverify,
        binds_action=v3,
        scored=v3,
    )


VENDORS: Mapping[CaptchaType, VendorShape | None] = {
    CaptchaType.RECAPTCHA_V2: _google(),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: _google(),
    CaptchaType.RECAPTCHA_V3: _google(v3=True),
    CaptchaType.RECAPTCHA_ENTERPRISE: None,
    CaptchaType.TURNSTILE: VendorShape(
        vendor="Cloudflare",
        endpoint="https://challenges.cloudflare.com/turnstile/v0/siteverify",
        fields={"cf-turnstile-response": TOKEN},
        request=_ask_token("cf-turnstile-response"),
        read=_read_siteverify,
    ),
    CaptchaType.HCAPTCHA: VendorShape(
        vendor="hCaptcha",
        endpoint="https://api.hcaptcha.com/siteverify",
        fields={"h-captcha-response": TOKEN, "g-recaptcha-response": TOKEN},
        request=_ask_hcaptcha,
        read=_read_siteverify,
    ),
    CaptchaType.GEETEST_V3: VendorShape(
        vendor="GeeTest",
        endpoint="https://api.geetest.com/validate.php",
        fields={f"geetest_{part}": part for part in ("challenge", "validate", "seccode")},
        request=_ask_geetest,
        read=_read_geetest,
        needs_secret=False,
    ),
    CaptchaType.GEETEST_V4: None,
    CaptchaType.FRIENDLY_V2: None,
    CaptchaType.ALTCHA: None,
    CaptchaType.IMAGE: None,
}
"""Complete: a type whose vendor is not asked yet, or that has none, stands here with None."""
