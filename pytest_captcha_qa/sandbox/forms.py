"""The forms of the demo site: one of each captcha type, two flawed ones, and those with official test keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pytest_captcha_qa.sandbox import keys, official
from pytest_captcha_qa.sandbox.backend import Captcha, NeverVerified, Siteverify
from pytest_captcha_qa.sandbox.captchas import Altcha, Enterprise, Friendly, GeetestV3, GeetestV4, Picture
from pytest_captcha_qa.sandbox.standin import CLOUDFLARE, GOOGLE, HCAPTCHA


@dataclass(frozen=True, slots=True)
class ProtectedForm:
    """One form of the site; `logs_in`: who is accepted may see their account."""

    slug: str
    title: str
    captcha: Captcha
    logs_in: bool = False


_recaptcha = partial(Siteverify, endpoint=GOOGLE, field_name="g-recaptcha-response")
_turnstile = partial(Siteverify, "turnstile", CLOUDFLARE, field_name="cf-turnstile-response")
_hcaptcha = partial(Siteverify, "hcaptcha", HCAPTCHA, field_name="h-captcha-response", sends_sitekey=True)

SOUND = (
    ProtectedForm("recaptcha-v2", "Sign up", _recaptcha("recaptcha_v2", keys=keys.RECAPTCHA_V2)),
    ProtectedForm(
        "recaptcha-v2-invisible",
        "Feedback",
        _recaptcha("recaptcha_v2_invisible", keys=keys.RECAPTCHA_V2_INVISIBLE),
    ),
    ProtectedForm(
        "recaptcha-v3",
        "Contact us",
        _recaptcha(
            "recaptcha_v3",
            keys=keys.RECAPTCHA_V3,
            action="contact",
            checks_action=True,
            min_score=0.5,
        ),
    ),
    ProtectedForm(
        "recaptcha-enterprise",
        "Transfer",
        Enterprise("recaptcha_enterprise", keys.RECAPTCHA_ENTERPRISE, action="transfer", min_score=0.5),
    ),
    ProtectedForm(
        "turnstile",
        "Log in",
        _turnstile(keys=keys.TURNSTILE, action="login", checks_action=True),
        logs_in=True,
    ),
    ProtectedForm("hcaptcha", "Review", _hcaptcha(keys=keys.HCAPTCHA)),
    ProtectedForm("geetest-v3", "Order", GeetestV3("geetest_v3", keys.GEETEST_V3)),
    ProtectedForm("geetest-v4", "Booking", GeetestV4("geetest_v4", keys.GEETEST_V4)),
    ProtectedForm("friendly-v2", "Support", Friendly("friendly_v2", keys.FRIENDLY_V2)),
    ProtectedForm("altcha", "Comment", Altcha("altcha", keys.ALTCHA_KEY, path="/altcha/challenge")),
    ProtectedForm("image", "Guestbook", Picture("image", path="/image/challenge")),
)
"""A form of each type, by the name that the sandbox's own table gives it, with dashes."""

FLAWED = (
    ProtectedForm("broken", "Log in, with a stale secret", _turnstile(keys=keys.BROKEN, secret=keys.RETIRED_SECRET)),
    ProtectedForm(
        "unprotected",
        "Sign up, never verified",
        NeverVerified("recaptcha_v2", GOOGLE, keys.UNPROTECTED, "g-recaptcha-response"),
    ),
)

WITH_TEST_KEYS = (
    ProtectedForm("test-recaptcha-v2", "Sign up", _recaptcha("recaptcha_v2", keys=official.RECAPTCHA_V2)),
    ProtectedForm("test-turnstile", "Log in", _turnstile(keys=official.TURNSTILE)),
    ProtectedForm("test-turnstile-fails", "Log in, never accepted", _turnstile(keys=official.TURNSTILE_FAILS)),
    ProtectedForm("test-turnstile-spent", "Log in, always too late", _turnstile(keys=official.TURNSTILE_SPENT)),
    ProtectedForm("test-hcaptcha", "Review", _hcaptcha(keys=official.HCAPTCHA)),
)

FORMS = (*SOUND, *FLAWED, *WITH_TEST_KEYS)
