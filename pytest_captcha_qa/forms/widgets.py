"""How each captcha type shows on a page, and which form fields take its solution.

Facts: reference/verification.md 1.5 and 1.6, from the vendors' own documentation of their widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.forms import finders, keyless, recaptcha
from pytest_captcha_qa.forms.linked import Linked
from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.widget import Fields, Widget, always
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN


@dataclass(frozen=True, slots=True)
class WidgetFacts:
    """How one type is found and answered.

    `fields` gets the widget and the names of the form's controls; `page_data`: what the page must show beside the
    sitekey; `linked`: what its widget fetches from the site; `at`: what a chosen element is that no finder would find.
    """

    find: Callable[[Markup], Iterable[Widget]]
    fields: Callable[[Widget, tuple[str, ...]], Fields]
    has_action: bool = False
    has_cdata: bool = False
    has_sitekey: bool = True
    page_data: tuple[str, ...] = ()
    linked: Linked | None = None
    at: Callable[[Element, Markup], Widget | None] | None = None


def find_widgets(markup: Markup) -> list[Widget]:
    """Return all widgets on a page, type by type."""
    return [widget for facts in WIDGETS.values() if facts is not None for widget in facts.find(markup)]


_RECAPTCHA_FIELDS = always({"g-recaptcha-response": TOKEN})
# hCaptcha fills both, so that code written for reCAPTCHA goes on working.
_HCAPTCHA_FIELDS = always({"h-captcha-response": TOKEN, "g-recaptcha-response": TOKEN})
_GEETEST_FIELDS = always({f"geetest_{part}": part for part in ("challenge", "validate", "seccode")})
_GEETEST_V4_PARTS = ("captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output")
_GEETEST_V4_FIELDS = always({part: part for part in _GEETEST_V4_PARTS})

WIDGETS: Mapping[CaptchaType, WidgetFacts | None] = {
    CaptchaType.RECAPTCHA_V2: WidgetFacts(recaptcha.find_v2, _RECAPTCHA_FIELDS),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: WidgetFacts(recaptcha.find_v2_invisible, _RECAPTCHA_FIELDS),
    CaptchaType.RECAPTCHA_V3: WidgetFacts(recaptcha.find_v3, recaptcha.v3_fields, has_action=True),
    CaptchaType.RECAPTCHA_ENTERPRISE: WidgetFacts(recaptcha.find_enterprise, recaptcha.v3_fields, has_action=True),
    CaptchaType.TURNSTILE: WidgetFacts(
        finders.find_turnstile, finders.turnstile_fields, has_action=True, has_cdata=True
    ),
    CaptchaType.HCAPTCHA: WidgetFacts(finders.find_hcaptcha, _HCAPTCHA_FIELDS),
    CaptchaType.GEETEST_V3: WidgetFacts(finders.find_geetest_v3, _GEETEST_FIELDS, page_data=("gt", "challenge")),
    CaptchaType.GEETEST_V4: WidgetFacts(finders.find_geetest_v4, _GEETEST_V4_FIELDS),
    CaptchaType.FRIENDLY_V2: WidgetFacts(finders.find_friendly_v2, finders.friendly_fields),
    CaptchaType.ALTCHA: WidgetFacts(
        keyless.find_altcha, keyless.altcha_fields, has_sitekey=False, linked=keyless.ALTCHA
    ),
    CaptchaType.IMAGE: WidgetFacts(
        keyless.find_image, keyless.image_fields, has_sitekey=False, linked=keyless.IMAGE, at=keyless.image_at
    ),
}
"""Complete: a type that cannot be driven would stand here with None."""
