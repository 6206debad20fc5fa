"""The fields in which a form of each type sends its solution, for those who are asked in the form's place."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN, Solution

_RECAPTCHA = {"g-recaptcha-response": TOKEN}
_GEETEST_V4 = ("captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output")

FIELDS: Mapping[CaptchaType, Mapping[str, str] | None] = {
    CaptchaType.RECAPTCHA_V2: _RECAPTCHA,
    CaptchaType.RECAPTCHA_V2_INVISIBLE: _RECAPTCHA,
    CaptchaType.RECAPTCHA_V3: _RECAPTCHA,
    CaptchaType.RECAPTCHA_ENTERPRISE: _RECAPTCHA,
    CaptchaType.TURNSTILE: {"cf-turnstile-response": TOKEN},
    CaptchaType.HCAPTCHA: {"h-captcha-response": TOKEN, "g-recaptcha-response": TOKEN},
    CaptchaType.GEETEST_V3: {f"geetest_{part}": part for part in ("challenge", "validate", "seccode")},
    CaptchaType.GEETEST_V4: {part: part for part in _GEETEST_V4},
    CaptchaType.FRIENDLY_V2: {"frc-captcha-response": TOKEN},
    CaptchaType.ALTCHA: {"altcha": TOKEN},
    CaptchaType.IMAGE: None,  # the site's own
}
"""Names of fields, each with the part of the solution it takes (reference/verification.md 1.5)."""


def field_values(fields: Mapping[str, str], solution: Solution) -> dict[str, str]:
    """Return the value of each field; a solution without any of the parts goes into all of them."""
    found = {name: str(solution.parts[part]) for name, part in fields.items() if part in solution.parts}
    return found or dict.fromkeys(fields, str(solution.text))
