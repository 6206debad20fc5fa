"""By which scripts a page loads the widgets of each type."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.model.captcha import CaptchaType

_GOOGLE_SCRIPT = r"/recaptcha/api\.js"
SCRIPTS: Mapping[CaptchaType, str | None] = {
    CaptchaType.RECAPTCHA_V2: _GOOGLE_SCRIPT,
    CaptchaType.RECAPTCHA_V2_INVISIBLE: _GOOGLE_SCRIPT,
    CaptchaType.RECAPTCHA_V3: _GOOGLE_SCRIPT,
    CaptchaType.RECAPTCHA_ENTERPRISE: r"/recaptcha/enterprise\.js",
    CaptchaType.TURNSTILE: r"challenges\.cloudflare\.com/turnstile/",
    CaptchaType.HCAPTCHA: r"hcaptcha\.com/1/api\.js",
    CaptchaType.GEETEST_V3: r"(?<!/v4)/gt\.js",
    CaptchaType.GEETEST_V4: r"/gt4\.js",
    CaptchaType.FRIENDLY_V2: r"friendlycaptcha/sdk|frcaptcha",
    CaptchaType.ALTCHA: r"altcha(?:\.min)?\.js",
    CaptchaType.IMAGE: None,
}
"""The address of each type's script; an image has none."""


def types_loaded(markup: Markup) -> list[CaptchaType]:
    """Return the types whose scripts a page loads, also those that cannot be driven."""
    return [
        kind
        for kind, pattern in SCRIPTS.items()
        if pattern is not None and any(re.search(pattern, source) for source in markup.sources)
    ]
