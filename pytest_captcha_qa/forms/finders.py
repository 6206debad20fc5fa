"""How the widgets of Turnstile, hCaptcha, GeeTest and Friendly Captcha show on a page, and which fields they fill."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.places import CALL_LENGTH, options_at, places
from pytest_captcha_qa.forms.scripts import types_loaded
from pytest_captcha_qa.forms.widget import Fields, Widget, placed
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN

_GEETEST_CALL = re.compile(r"\binitGeetest\s*\(\s*(?=\{)")
_GEETEST_V4_CALL = re.compile(r"\binitGeetest4\s*\(\s*(?=\{)")
_GEETEST_PLACE = re.compile(r"\.(?:appendTo|bindForm)\s*\(\s*[\"']#([\w-]+)[\"']")
_FRIENDLY_CALL = re.compile(r"\.createWidget\s*\(\s*(?=\{)")
_FRIENDLY_V1 = re.compile(r"friendly-challenge")


def find_turnstile(markup: Markup) -> Iterator[Widget]:
    """Yield the widgets of Turnstile."""
    for place in places(markup, "cf-turnstile", "turnstile"):
        yield placed(
            place,
            CaptchaType.TURNSTILE,
            action=place.get("action"),
            cdata=place.get("cdata"),
            response_field=place.get("response-field-name"),
        )


def find_hcaptcha(markup: Markup) -> Iterator[Widget]:
    """Yield the widgets of hCaptcha."""
    for place in places(markup, "h-captcha", "hcaptcha"):
        yield placed(place, CaptchaType.HCAPTCHA)


def find_geetest_v3(markup: Markup) -> list[Widget]:
    """Return what attributes or calls show of id and challenge."""
    marked = [
        _geetest(element.get("data-gt"), element.get("data-challenge"), element)
        for element in markup.elements
        if "data-gt" in element.attrib
    ]
    shown = {widget.sitekey for widget in marked}
    return marked + [widget for widget in _geetest_calls(markup) if widget.sitekey not in shown]


def find_geetest_v4(markup: Markup) -> list[Widget]:
    """Return what attributes or calls show of the id."""
    kind = CaptchaType.GEETEST_V4
    marked = [
        Widget(kind, (element.get("data-captcha-id") or "").strip(), element)
        for element in markup.elements
        if "data-captcha-id" in element.attrib
    ]
    shown = {widget.sitekey for widget in marked}
    called = []
    for script in markup.inline:
        for match in _GEETEST_V4_CALL.finditer(script):
            options, _ = options_at(script, match.end())
            key = options.get("captchaid", "").strip()
            called.append(
                Widget(kind, key, _shown_in(markup, script, match.end()), scripted="captchaid" not in options)
            )
    return marked + [widget for widget in called if widget.sitekey not in shown]


def find_friendly_v2(markup: Markup) -> Iterator[Widget]:
    """Yield the widgets of Friendly Captcha, unless the page loads version 1, whose widgets look the same."""
    if any(_FRIENDLY_V1.search(source) for source in markup.sources):
        return
    kind = CaptchaType.FRIENDLY_V2
    for place in places(markup, "frc-captcha", "frcaptcha"):
        yield placed(place, kind, response_field=place.get("form-field-name"))
    if kind in types_loaded(markup):
        yield from _friendly_calls(markup, kind)


def turnstile_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the field, which the widget may rename."""
    return {widget.response_field or "cf-turnstile-response": TOKEN}


def friendly_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the field, which the widget may rename."""
    return {widget.response_field or "frc-captcha-response": TOKEN}


def _friendly_calls(markup: Markup, kind: CaptchaType) -> Iterator[Widget]:
    for script in markup.inline:
        for match in _FRIENDLY_CALL.finditer(script):
            options, variable = options_at(script, match.end())
            key, name = options.get("sitekey", ""), options.get("formfieldname")
            yield Widget(kind, key.strip(), scripted="sitekey" in variable and not key, response_field=name)


def _geetest_calls(markup: Markup) -> Iterator[Widget]:
    for script in markup.inline:
        for match in _GEETEST_CALL.finditer(script):
            options, _ = options_at(script, match.end())
            element = _shown_in(markup, script, match.end())
            scripted = not {"gt", "challenge"} <= options.keys()
            yield _geetest(options.get("gt"), options.get("challenge"), element, scripted=scripted)


def _shown_in(markup: Markup, script: str, start: int) -> Element | None:
    """Return the element that a call appends its widget to."""
    place = _GEETEST_PLACE.search(script, start, start + CALL_LENGTH)
    return markup.by_id(place.group(1)) if place else None


def _geetest(gt: str | None, challenge: str | None, element: Element | None, *, scripted: bool = False) -> Widget:
    data = {"gt": (gt or "").strip(), "challenge": (challenge or "").strip()}
    return Widget(CaptchaType.GEETEST_V3, data["gt"], element, data=data, scripted=scripted)
