"""How each captcha type shows on a page, and which form fields take its solution.

Facts: reference/verification.md 1.5 and 1.6, from the vendors' own documentation of their widgets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.places import CALL_LENGTH, Place, options_at, places
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN

_NAME = 100  # characters of a field name that is looked at
_V3_FIELD = re.compile(r"g-recaptcha-response|\w*re?captcha\w*[_-]?(?:token|response)\w*", re.IGNORECASE)
_V3_CALL = re.compile(r"\bgrecaptcha\.execute\s*\(\s*(?:[\"']([\w-]+)[\"']|[\w.]+)\s*,\s*(?=\{)")
_V3_SCRIPT = re.compile(r"/recaptcha/api\.js\?(?:[^#]*&)?render=([\w-]+)")
_NOT_A_KEY = frozenset({"explicit", "onload"})  # other meanings of `render=`
_GEETEST_CALL = re.compile(r"\binitGeetest\s*\(\s*(?=\{)")
_GEETEST_PLACE = re.compile(r"\.(?:appendTo|bindForm)\s*\(\s*[\"']#([\w-]+)[\"']")

Fields = Mapping[str, str]
"""Names of form fields, each with the part of the solution it takes."""


@dataclass(frozen=True, slots=True)
class Widget:
    """One widget on a page. `element` is None if only a script shows it.

    `scripted`: a script sets the sitekey or the challenge from a variable, so the page does not show it;
    `response_field`: the field's name where the widget renames it.
    """

    type: CaptchaType
    sitekey: str
    element: Element | None = field(default=None, repr=False, compare=False)
    action: str | None = None
    cdata: str | None = None
    data: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    scripted: bool = False
    response_field: str | None = None


@dataclass(frozen=True, slots=True)
class WidgetFacts:
    """How one type is found and answered.

    `fields` gets the widget and the names of the form's controls.
    """

    find: Callable[[Markup], Iterable[Widget]]
    fields: Callable[[Widget, tuple[str, ...]], Fields]
    has_action: bool = False
    has_cdata: bool = False
    page_data: tuple[str, ...] = ()


def find_widgets(markup: Markup) -> list[Widget]:
    """Return all widgets on a page, type by type."""
    return [widget for facts in WIDGETS.values() if facts is not None for widget in facts.find(markup)]


def types_loaded(markup: Markup) -> list[CaptchaType]:
    """Return the types whose scripts a page loads, also those that cannot be driven."""
    return [
        kind
        for kind, pattern in SCRIPTS.items()
        if pattern is not None and any(re.search(pattern, source) for source in markup.sources)
    ]


# -- finders


def _placed(place: Place, kind: CaptchaType, **more: str | None) -> Widget:
    key = (place.get("sitekey") or "").strip()
    return Widget(kind, key, place.element, scripted=place.is_scripted, **more)  # type: ignore[arg-type]


def _recaptcha_places(markup: Markup) -> list[Place]:
    # The Enterprise script gives the same markup another meaning.
    enterprise = CaptchaType.RECAPTCHA_ENTERPRISE in types_loaded(markup)
    return [] if enterprise else places(markup, "g-recaptcha", "grecaptcha")


def _is_v3(place: Place) -> bool:
    return place.is_button and place.get("action") is not None


def _find_v2(markup: Markup) -> Iterator[Widget]:
    for place in _recaptcha_places(markup):
        if not place.is_invisible:
            yield _placed(place, CaptchaType.RECAPTCHA_V2)


def _find_v2_invisible(markup: Markup) -> Iterator[Widget]:
    for place in _recaptcha_places(markup):
        if place.is_invisible and not _is_v3(place):
            yield _placed(place, CaptchaType.RECAPTCHA_V2_INVISIBLE)


def _find_v3(markup: Markup) -> list[Widget]:
    kind = CaptchaType.RECAPTCHA_V3
    bound = [_placed(place, kind, action=place.get("action")) for place in _recaptcha_places(markup) if _is_v3(place)]
    loaded = [match.group(1) for source in markup.sources for match in _V3_SCRIPT.finditer(source)]
    keys = [key for key in dict.fromkeys(loaded) if key not in _NOT_A_KEY]
    calls = list(_v3_calls(markup, keys[0] if len(keys) == 1 else ""))
    shown = calls + [Widget(kind, key) for key in keys if key not in {widget.sitekey for widget in calls}]
    bound_keys = {widget.sitekey for widget in bound}
    return bound + [widget for widget in dict.fromkeys(shown) if widget.sitekey not in bound_keys]


def _v3_calls(markup: Markup, sole_key: str) -> Iterator[Widget]:
    """Yield what `grecaptcha.execute(key, {action})` calls show; the key may be a variable."""
    for script in markup.inline:
        for match in _V3_CALL.finditer(script):
            options, _ = options_at(script, match.end())
            key = match.group(1) or sole_key
            yield Widget(CaptchaType.RECAPTCHA_V3, key, action=options.get("action"), scripted=not key)


def _find_turnstile(markup: Markup) -> Iterator[Widget]:
    for place in places(markup, "cf-turnstile", "turnstile"):
        yield _placed(
            place,
            CaptchaType.TURNSTILE,
            action=place.get("action"),
            cdata=place.get("cdata"),
            response_field=place.get("response-field-name"),
        )


def _find_hcaptcha(markup: Markup) -> Iterator[Widget]:
    for place in places(markup, "h-captcha", "hcaptcha"):
        yield _placed(place, CaptchaType.HCAPTCHA)


def _find_geetest_v3(markup: Markup) -> list[Widget]:
    marked = [
        _geetest(element.get("data-gt"), element.get("data-challenge"), element)
        for element in markup.elements
        if "data-gt" in element.attrib
    ]
    shown = {widget.sitekey for widget in marked}
    return marked + [widget for widget in _geetest_calls(markup) if widget.sitekey not in shown]


def _geetest_calls(markup: Markup) -> Iterator[Widget]:
    for script in markup.inline:
        for match in _GEETEST_CALL.finditer(script):
            options, _ = options_at(script, match.end())
            place = _GEETEST_PLACE.search(script, match.end(), match.end() + CALL_LENGTH)
            element = markup.by_id(place.group(1)) if place else None
            scripted = not {"gt", "challenge"} <= options.keys()
            yield _geetest(options.get("gt"), options.get("challenge"), element, scripted=scripted)


def _geetest(gt: str | None, challenge: str | None, element: Element | None, *, scripted: bool = False) -> Widget:
    data = {"gt": (gt or "").strip(), "challenge": (challenge or "").strip()}
    return Widget(CaptchaType.GEETEST_V3, data["gt"], element, data=data, scripted=scripted)


# -- fields


def _always(names: Fields) -> Callable[[Widget, tuple[str, ...]], Fields]:
    return lambda widget, controls: names


def _v3_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the form's own response fields; the site names them freely, so they are known by their look."""
    looks_right = [name for name in controls if len(name) <= _NAME and _V3_FIELD.match(name)]
    of_action = [name for name in looks_right if widget.action and name.endswith(f"[{widget.action}]")]
    return dict.fromkeys(of_action or looks_right or ["g-recaptcha-response"], TOKEN)


def _turnstile_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    return {widget.response_field or "cf-turnstile-response": TOKEN}


_RECAPTCHA_FIELDS = _always({"g-recaptcha-response": TOKEN})
# hCaptcha fills both, so that code written for reCAPTCHA goes on working.
_HCAPTCHA_FIELDS = _always({"h-captcha-response": TOKEN, "g-recaptcha-response": TOKEN})
_GEETEST_FIELDS = _always({f"geetest_{part}": part for part in ("challenge", "validate", "seccode")})


WIDGETS: Mapping[CaptchaType, WidgetFacts | None] = {
    CaptchaType.RECAPTCHA_V2: WidgetFacts(_find_v2, _RECAPTCHA_FIELDS),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: WidgetFacts(_find_v2_invisible, _RECAPTCHA_FIELDS),
    CaptchaType.RECAPTCHA_V3: WidgetFacts(_find_v3, _v3_fields, has_action=True),
    CaptchaType.RECAPTCHA_ENTERPRISE: None,
    CaptchaType.TURNSTILE: WidgetFacts(_find_turnstile, _turnstile_fields, has_action=True, has_cdata=True),
    CaptchaType.HCAPTCHA: WidgetFacts(_find_hcaptcha, _HCAPTCHA_FIELDS),
    CaptchaType.GEETEST_V3: WidgetFacts(_find_geetest_v3, _GEETEST_FIELDS, page_data=("gt", "challenge")),
    CaptchaType.GEETEST_V4: None,
    CaptchaType.FRIENDLY_V2: None,
    CaptchaType.ALTCHA: None,
    CaptchaType.IMAGE: None,
}
"""Complete: a type that cannot be driven yet stands here with None."""

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
