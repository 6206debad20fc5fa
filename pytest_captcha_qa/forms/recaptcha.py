"""How the widgets of Google's types show on a page: checkbox, invisible, v3, and Enterprise, which has all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.places import Place, options_at, places
from pytest_captcha_qa.forms.scripts import types_loaded
from pytest_captcha_qa.forms.widget import Fields, Widget, placed
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN

_CLASS = "g-recaptcha"
_NAME = 100  # characters of a field name that is looked at
_FIELD = re.compile(r"g-recaptcha-response|\w*re?captcha\w*[_-]?(?:token|response)\w*", re.IGNORECASE)
_NOT_A_KEY = frozenset({"explicit", "onload"})  # other meanings of `render=`
_ARGUMENTS = r"\.execute\s*\(\s*(?:[\"']([\w-]+)[\"']|[\w.]+)\s*,\s*(?=\{)"


@dataclass(frozen=True, slots=True)
class _Flavour:
    """The names by which ordinary and Enterprise widgets differ."""

    script_object: str
    call: re.Pattern[str]
    script: re.Pattern[str]


_ORDINARY = _Flavour(
    "grecaptcha",
    re.compile(r"\bgrecaptcha" + _ARGUMENTS),
    re.compile(r"/recaptcha/api\.js\?(?:[^#]*&)?render=([\w-]+)"),
)
_ENTERPRISE = _Flavour(
    r"grecaptcha\.enterprise",
    re.compile(r"\bgrecaptcha\.enterprise" + _ARGUMENTS),
    re.compile(r"/recaptcha/enterprise\.js\?(?:[^#]*&)?render=([\w-]+)"),
)

INVISIBLE: Mapping[str, str] = MappingProxyType({"invisible": "1"})
SCORED: Mapping[str, str] = MappingProxyType({"version": "v3"})


def find_v2(markup: Markup) -> Iterator[Widget]:
    """Yield the checkboxes."""
    for place in _ordinary_places(markup):
        if not place.is_invisible:
            yield placed(place, CaptchaType.RECAPTCHA_V2)


def find_v2_invisible(markup: Markup) -> Iterator[Widget]:
    """Yield the widgets that show nothing and have no action."""
    for place in _ordinary_places(markup):
        if place.is_invisible and not _has_score(place):
            yield placed(place, CaptchaType.RECAPTCHA_V2_INVISIBLE)


def find_v3(markup: Markup) -> list[Widget]:
    """Return what buttons, scripts and calls show of keys with a score."""
    return [] if _is_enterprise(markup) else _scored(markup, CaptchaType.RECAPTCHA_V3, _ORDINARY)


def find_enterprise(markup: Markup) -> list[Widget]:
    """Return the widgets of a page that loads the Enterprise script; `data` tells of which kind each one's key is."""
    kind = CaptchaType.RECAPTCHA_ENTERPRISE
    if not _is_enterprise(markup):
        return []
    shown = [
        replace(placed(place, kind, action=place.get("action")), data=INVISIBLE if place.is_invisible else {})
        for place in places(markup, _CLASS, _ENTERPRISE.script_object)
        if not _has_score(place) and not _is_field(place)
    ]
    keys = {widget.sitekey for widget in shown}
    scored = [replace(widget, data=SCORED) for widget in _scored(markup, kind, _ENTERPRISE)]
    return shown + [widget for widget in scored if widget.sitekey not in keys]


def v3_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the form's own response fields; the site names them freely, so they are known by their look."""
    if widget.response_field:
        return {widget.response_field: TOKEN}
    looks_right = [name for name in controls if len(name) <= _NAME and _FIELD.match(name)]
    of_action = [name for name in looks_right if widget.action and name.endswith(f"[{widget.action}]")]
    return dict.fromkeys(of_action or looks_right or ["g-recaptcha-response"], TOKEN)


def _is_enterprise(markup: Markup) -> bool:
    return CaptchaType.RECAPTCHA_ENTERPRISE in types_loaded(markup)


def _ordinary_places(markup: Markup) -> list[Place]:
    # The Enterprise script gives the same markup another meaning.
    standing = [] if _is_enterprise(markup) else places(markup, _CLASS, _ORDINARY.script_object)
    return [place for place in standing if not _is_field(place)]


def _has_score(place: Place) -> bool:
    return place.is_button and place.get("action") is not None


def _is_field(place: Place) -> bool:
    """Return whether it is the field that a script of the site puts a v3 token into, as django-recaptcha has it."""
    return place.element.tag == "input" and (place.element.get("type") or "").strip().lower() == "hidden"


def _scored(markup: Markup, kind: CaptchaType, flavour: _Flavour) -> list[Widget]:
    standing = places(markup, _CLASS, flavour.script_object)
    shown = _shown(markup, kind, flavour, [place for place in standing if _has_score(place)])
    fields = {place.get("sitekey"): place.element for place in reversed(standing) if _is_field(place)}
    return [_with_field(widget, fields.get(widget.sitekey)) for widget in shown]


def _with_field(widget: Widget, element: Element | None) -> Widget:
    """Return a widget that only a script shows with the field that is its own, if there is one."""
    if element is None or widget.element is not None:
        return widget
    return replace(widget, element=element, response_field=element.get("name"))


def _shown(markup: Markup, kind: CaptchaType, flavour: _Flavour, buttons: list[Place]) -> list[Widget]:
    bound = [placed(place, kind, action=place.get("action")) for place in buttons]
    loaded = [match.group(1) for source in markup.sources for match in flavour.script.finditer(source)]
    keys = [key for key in dict.fromkeys(loaded) if key not in _NOT_A_KEY]
    calls = list(_calls(markup, kind, flavour, keys[0] if len(keys) == 1 else ""))
    shown = calls + [Widget(kind, key) for key in keys if key not in {widget.sitekey for widget in calls}]
    bound_keys = {widget.sitekey for widget in bound}
    return bound + [widget for widget in dict.fromkeys(shown) if widget.sitekey not in bound_keys]


def _calls(markup: Markup, kind: CaptchaType, flavour: _Flavour, sole_key: str) -> Iterator[Widget]:
    """Yield what `execute(key, {action})` calls show; the key may be a variable."""
    for script in markup.inline:
        for match in flavour.call.finditer(script):
            options, _ = options_at(script, match.end())
            key = match.group(1) or sole_key
            yield Widget(kind, key, action=options.get("action"), scripted=not key)
