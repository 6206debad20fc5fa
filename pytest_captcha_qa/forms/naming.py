"""How messages name what stands on a page: widgets, forms, and foreign text as it may be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.scripts import types_loaded
from pytest_captcha_qa.forms.widget import Widget

_USER_INFO = re.compile(r"//[^/@]*@")
_SHOWN = 60  # characters of a foreign attribute that a message repeats


def describe(widget: Widget, markup: Markup) -> str:
    """Return where a widget stands, much like a selector."""
    known = {"sitekey": widget.sitekey, "action": widget.action}
    told = ", ".join(f"{name} {cut(value)}" for name, value in known.items() if value)
    shown = f" ({told or 'no sitekey'})"
    if widget.element is None:
        return f"{widget.type} in a script{shown}"
    form = markup.form_of(widget.element)
    place = f" in {describe_form(form)}" if form is not None else ""
    return f"{widget.type} at {selector_of(widget.element)}{place}{shown}"


def describe_form(form: Element) -> str:
    """Return which form is meant: its id or name, and its action."""
    return f"{selector_of(form)} (action {cut(form.get('action') or '')})"


def selector_of(element: Element) -> str:
    """Return an element as a selector would name it."""
    own_id = element.get("id")
    name = element.get("name")
    classes = "".join(f".{part}" for part in (element.get("class") or "").split()[:3])
    mark = f"#{own_id}" if own_id else f"[name={name}]" if name else classes
    return cut(f"{element.tag}{mark}").strip("'")


def inventory_of(markup: Markup, found: list[Widget]) -> str:
    """Return what a page has instead of the widget that was looked for."""
    there = listed(describe(widget, markup) for widget in found) if found else "no widget at all"
    loaded = types_loaded(markup)
    scripts = f", scripts of {listed(loaded)}" if loaded else ""
    frames = "; what its frames hold is not read" if any(True for _ in markup.root.iter("iframe", "frame")) else ""
    broken = "" if markup.complete else "; its HTML is cut off"
    return f"it has {there}{scripts} and {forms_of(markup)}{frames}{broken}"


def forms_of(markup: Markup) -> str:
    """Return how many forms a page has, and which."""
    forms = markup.forms
    if not forms:
        return "no form"
    return f"{len(forms)} form{'s' if len(forms) > 1 else ''}: {listed(map(describe_form, forms))}"


def page_of(markup: Markup) -> str:
    """Return the address of a page, without its query."""
    return markup.url.without_query


def listed(items: Iterable[str]) -> str:
    """Return the first six of some things, and how many more there are."""
    shown = list(items)
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    return ", ".join(shown[:6]) + more


def cut(text: str) -> str:
    """Return a foreign attribute as a message may show it: short, without query, escaped."""
    bare = _USER_INFO.sub("//", text.split("?")[0])
    return ascii(bare if len(bare) <= _SHOWN else bare[:_SHOWN] + "...")
