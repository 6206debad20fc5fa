"""The vendors' own verification services: what each is asked, and how its answer reads.

Facts: reference/verification.md 1.1 to 1.3, from the vendors' documentation of their services.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge

_CODE = re.compile(r"[a-z0-9_-]{1,60}\Z")
_PROJECT = re.compile(r"[a-zA-Z0-9][\w.:-]{0,99}\Z", re.ASCII)
_GEETEST_V4_PARTS = ("lot_number", "captcha_output", "pass_token", "gen_time")
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
class VendorCall:
    """What a vendor is sent: form fields, or `json` in their place; `place` fills in what its address leaves open."""

    fields: Mapping[str, str] = field(default_factory=dict, repr=False)
    json: Mapping[str, object] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    place: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VendorShape:
    """How one vendor verifies tokens of a type.

    `request`: what is sent for a challenge, the values of the form's fields and the secret; `read`: its answer, None if
    it is not a documented one; `binds_action`: whether every genuine answer names the action; `scored`: whether it
    carries a score from 0 (bot) to 1 (human); `risk`: whether it may carry one of the opposite direction;
    `names_host`: whether it names the host of the widget; `says_success`: whether a boolean of that name is the
    verdict; `keeps_status`: whether the site's session remembers if the vendor was there, so that losing it matters;
    `wrong_secret`: HTTP status and code by which it says that the secret is wrong.
    """

    vendor: str
    endpoint: str
    request: Callable[[Challenge, Mapping[str, str], str], VendorCall]
    read: Callable[[object], VendorAnswer | None]
    needs_secret: bool = True
    binds_action: bool = False
    scored: bool = False
    risk: bool = False
    names_host: bool = False
    says_success: bool = False
    keeps_status: bool = False
    wrong_secret: tuple[int, str] = (200, "invalid-input-secret")


SECRET_CODES = frozenset(
    {
        *("missing-input-secret", "invalid-input-secret", "sitekey-secret-mismatch"),
        *("auth_required", "auth_invalid"),
        *("permission_denied", "unauthenticated"),
    }
)
"""Codes that speak of the secret, not of the token."""

REQUEST_CODES = frozenset(
    {
        *("bad-request", "internal-error", "missing-remoteip", "invalid-remoteip"),
        *("bad_request", "sitekey_invalid"),
        *("invalid_argument", "not_found", "resource_exhausted"),
        *("-50000", "-50101", "-50102", "-50103", "-50104", "-50105"),
    }
)
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


def _read_geetest_v4(answer: object) -> VendorAnswer | None:
    told = answer if isinstance(answer, dict) else {}
    match told.get("status"), told.get("result"):
        case "success", "success":
            return VendorAnswer(passed=True)
        case "success", "fail":
            return VendorAnswer(passed=False, codes=_codes(told.get("reason")))
        case "error", _:
            return VendorAnswer(passed=False, codes=_codes(told.get("code")))
    return None


def _read_friendly(answer: object) -> VendorAnswer | None:
    if not isinstance(answer, dict) or not isinstance(answer.get("success"), bool):
        return None
    origin = _text(_within(answer, "data", "challenge", "origin"))
    code = _within(answer, "error", "error_code")
    return VendorAnswer(answer["success"], _codes(code), urlsplit(origin or "").hostname)


def _read_assessment(answer: object) -> VendorAnswer | None:
    """Return an assessment; a bad token is one too, while an error object speaks of the key or the request."""
    status = _within(answer, "error", "status")
    if isinstance(status, str):
        return VendorAnswer(passed=False, codes=_codes(status))
    valid = _within(answer, "tokenProperties", "valid")
    if not isinstance(valid, bool):
        return None
    return VendorAnswer(
        passed=valid,
        codes=() if valid else _codes(_within(answer, "tokenProperties", "invalidReason")),
        hostname=_text(_within(answer, "tokenProperties", "hostname")),
        action=_text(_within(answer, "tokenProperties", "action")),
        score=_number(_within(answer, "riskAnalysis", "score")),
    )


def _within(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _codes(text: object) -> tuple[str, ...]:
    """Return a code that is written in capitals or as words, in the alphabet of the others."""
    code = text.lower().replace(" ", "_") if isinstance(text, str) else None
    return (code,) if code is not None and _is_code(code) else ()


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


def _ask_token(name: str) -> Callable[[Challenge, Mapping[str, str], str], VendorCall]:
    return lambda challenge, values, secret: VendorCall({"secret": secret, "response": values[name]})


def _ask_hcaptcha(challenge: Challenge, values: Mapping[str, str], secret: str) -> VendorCall:
    # With the sitekey hCaptcha itself compares which form the token is for.
    told = {"secret": secret, "response": values["h-captcha-response"], "sitekey": challenge.sitekey}
    return VendorCall(told)


def _ask_geetest(challenge: Challenge, values: Mapping[str, str], secret: str) -> VendorCall:
    told = {name: values.get(f"geetest_{name}", "") for name in ("seccode", "challenge")}
    return VendorCall({**told, "captchaid": challenge.sitekey, "json_format": "1"})


def _ask_geetest_v4(challenge: Challenge, values: Mapping[str, str], secret: str) -> VendorCall:
    told = {name: values.get(name, "") for name in _GEETEST_V4_PARTS}
    signed = hmac.new(secret.encode(), told["lot_number"].encode(), hashlib.sha256).hexdigest()
    whole = {**told, "captcha_id": challenge.sitekey, "sign_token": signed}
    return VendorCall(whole, place={"captcha_id": challenge.sitekey})


def _ask_friendly(challenge: Challenge, values: Mapping[str, str], secret: str) -> VendorCall:
    told = {"response": values["frc-captcha-response"], "sitekey": challenge.sitekey}
    return VendorCall(json=told, headers={"X-API-Key": secret})


def _ask_enterprise(challenge: Challenge, values: Mapping[str, str], secret: str) -> VendorCall:
    project, separator, key = secret.partition("/")
    if not separator or not _PROJECT.match(project) or not key:
        raise ConfigError("what verify.secret_env names must be PROJECT/API_KEY for recaptcha_enterprise")
    event = {"token": values["g-recaptcha-response"], "siteKey": challenge.sitekey}
    event |= {"expectedAction": challenge.action} if challenge.action else {}
    # As a header, not in the query, so that the key is in no access log.
    return VendorCall(json={"event": event}, headers={"X-Goog-Api-Key": key}, place={"project": project})


def _google(*, v3: bool = False) -> VendorShape:
    return VendorShape(
        vendor="Google",
        endpoint="https://www.google.com/recaptcha/api/siteverify",
        request=_ask_token("g-recaptcha-response"),
        read=_read_siteverify,
        binds_action=v3,
        scored=v3,
        names_host=True,
        says_success=True,
    )


VENDORS: Mapping[CaptchaType, VendorShape | None] = {
    CaptchaType.RECAPTCHA_V2: _google(),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: _google(),
    CaptchaType.RECAPTCHA_V3: _google(v3=True),
    CaptchaType.RECAPTCHA_ENTERPRISE: VendorShape(
        vendor="Google",
        endpoint="https://recaptchaenterprise.googleapis.com/v1/projects/{project}/assessments",
        request=_ask_enterprise,
        read=_read_assessment,
        binds_action=True,
        scored=True,
        names_host=True,
    ),
    CaptchaType.TURNSTILE: VendorShape(
        vendor="Cloudflare",
        endpoint="https://challenges.cloudflare.com/turnstile/v0/siteverify",
        request=_ask_token("cf-turnstile-response"),
        read=_read_siteverify,
        names_host=True,
        says_success=True,
    ),
    CaptchaType.HCAPTCHA: VendorShape(
        vendor="hCaptcha",
        endpoint="https://api.hcaptcha.com/siteverify",
        request=_ask_hcaptcha,
        read=_read_siteverify,
        risk=True,
        names_host=True,
        says_success=True,
    ),
    CaptchaType.GEETEST_V3: VendorShape(
        vendor="GeeTest",
        endpoint="https://api.geetest.com/validate.php",
        request=_ask_geetest,
        read=_read_geetest,
        needs_secret=False,
        keeps_status=True,
    ),
    CaptchaType.GEETEST_V4: VendorShape(
        vendor="GeeTest",
        endpoint="https://gcaptcha4.geetest.com/validate?captcha_id={captcha_id}",
        request=_ask_geetest_v4,
        read=_read_geetest_v4,
        wrong_secret=(200, "-50101"),
    ),
    CaptchaType.FRIENDLY_V2: VendorShape(
        vendor="Friendly Captcha",
        endpoint="https://global.frcapi.com/api/v2/captcha/siteverify",
        request=_ask_friendly,
        read=_read_friendly,
        says_success=True,
        wrong_secret=(401, "auth_invalid"),
    ),
    # Nobody but the site itself knows what it signed, or what its image shows.
    CaptchaType.ALTCHA: None,
    CaptchaType.IMAGE: None,
}
"""Complete: a type that has no vendor stands here with None."""
