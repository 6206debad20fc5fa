"""Finds the one widget and the one form that an attempt is about, or says what the page has instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cssselect import HTMLTranslator, SelectorError
from lxml import etree

from pytest_captcha_qa.errors import AccessNotConfigured, ConfigError, PageError
from pytest_captcha_qa.forms.markup import Markup, parse
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.widgets import WIDGETS, Fields, Widget, WidgetFacts, find_widgets, types_loaded
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.token import TOKEN
from pytest_captcha_qa.model.url import Url

_SITEKEY = re.compile(r"[0-9A-Za-z_-]{8,}\Z")
_PLACEHOLDERS = frozenset({"undefined", "sitekey", "site_key", "site-key", "your_site_key", "your-site-key"})
_USER_INFO = re.compile(r"//[^/@]*@")
_SHOWN = 60  # characters of a foreign attribute that a message repeats


@dataclass(frozen=True, slots=True)
class ChallengeReading:
    """What was found of a challenge that needs no form, and the names that take its solution."""

    markup: Markup
    challenge: Challenge
    token_fields: Fields


@dataclass(frozen=True, slots=True)
class PageReading:
    """What was found: the challenge, the form that holds it, and the fields that take its solution."""

    markup: Markup
    form: Element = field(repr=False)
    challenge: Challenge
    token_fields: Fields


def read_page(text: str, url: Url, form: FormSpec, *, redirected: bool = False) -> PageReading:
    """Return the protected form of a page; `redirected` tells that another address was asked for.

    Raises:
        PageError: no widget of the type, none of its values, no form, or a page that is cut off.
        AccessNotConfigured: a login stands in place of the form.
        ConfigError: several widgets or forms and none chosen, or values that only scripts know.
        ScopeDenied: its `<base>` cannot mean one thing only.
    """
    return read_form(parse(text, url), form, redirected=redirected)


def read_form(markup: Markup, form: FormSpec, *, redirected: bool = False) -> PageReading:
    """Return the protected form of a page that is parsed already; see `read_page`."""
    facts = facts_of(form.type)
    selected = _selected(markup, form)
    widget = _checked_widget(markup, form, selected, redirected=redirected)
    element = _form_of(widget, form, markup, selected)
    if element is markup.cut_form:
        raise PageError(f"{_page(markup)} is cut off: its HTML ends before {describe_form(element)} does")
    fields = _token_fields(widget, form, markup.control_names(element))
    return PageReading(markup, element, _challenge(widget, facts, markup, form), fields)


def read_challenge(markup: Markup, form: FormSpec, *, redirected: bool = False) -> ChallengeReading:
    """Return the challenge of a page whose submit is described by the configuration, wherever its widget stands.

    Raises:
        PageError, AccessNotConfigured, ConfigError: see `read_page`.
    """
    widget = _checked_widget(markup, form, _selected(markup, form), redirected=redirected)
    challenge = _challenge(widget, facts_of(form.type), markup, form)
    return ChallengeReading(markup, challenge, _token_fields(widget, form, ()))


def facts_of(kind: CaptchaType) -> WidgetFacts:
    """Return how a type's widget is found.

    Raises:
        ConfigError: the type cannot be driven in plain HTML forms.
    """
    facts = WIDGETS[kind]
    if facts is None:
        usable = ", ".join(name for name, entry in WIDGETS.items() if entry is not None)
        raise ConfigError(f"forms with {kind} cannot be driven yet; possible types: {usable}")
    return facts


# -- the widget


def _checked_widget(markup: Markup, form: FormSpec, selected: list[Element] | None, *, redirected: bool) -> Widget:
    widget = _widget(markup, form, selected, redirected=redirected)
    _check_values(widget, facts_of(form.type), markup, form)
    return widget


def _token_fields(widget: Widget, form: FormSpec, names: tuple[str, ...]) -> Fields:
    """Return the fields that take the solution: the configured one, else those of the type."""
    return {form.token_field: TOKEN} if form.token_field else facts_of(form.type).fields(widget, names)


def _widget(markup: Markup, form: FormSpec, selected: list[Element] | None, *, redirected: bool) -> Widget:
    found = find_widgets(markup)
    fitting = [widget for widget in found if widget.type is form.type]
    if not fitting:
        raise _missing(markup, form, found, redirected=redirected)
    if selected is not None:
        fitting = [widget for widget in fitting if _is_chosen(widget, selected, markup)]
    if all(widget.element is None for widget in fitting) and form.action is not None:
        fitting = [widget for widget in fitting if widget.action == form.action] or fitting
    if not fitting:
        raise ConfigError(
            f"forms.{form.slug}.widget.selector chooses no {form.type} widget on {_page(markup)}; "
            f"there is {_list(describe(widget, markup) for widget in found)}"
        )
    if len(fitting) > 1:
        raise ConfigError(
            f"{_page(markup)} has {len(fitting)} {form.type} widgets: "
            f"{_list(describe(widget, markup) for widget in fitting)}; "
            f"choose one with forms.{form.slug}.widget.selector"
        )
    return fitting[0]


def _selected(markup: Markup, form: FormSpec) -> list[Element] | None:
    """Return what the configured selector matches, None if there is no selector."""
    if form.widget is None:
        return None
    try:
        found = markup.root.xpath(HTMLTranslator().css_to_xpath(form.widget.selector))
    except (SelectorError, etree.XPathError):
        raise ConfigError(f"forms.{form.slug}.widget.selector is no CSS selector: {form.widget.selector!r}") from None
    return [element for element in found if isinstance(element, Element)] if isinstance(found, list) else []


def _is_chosen(widget: Widget, selected: list[Element], markup: Markup) -> bool:
    """Return whether a selector means the widget: it, what is around it, or the form of a scripted one."""
    if widget.element is None:
        return any(markup.form_of(element) is not None for element in selected)
    return any(element in selected for element in (widget.element, *widget.element.iterancestors()))


def _missing(
    markup: Markup, form: FormSpec, found: list[Widget], *, redirected: bool
) -> PageError | AccessNotConfigured:
    if not found and _is_login(markup, form, redirected=redirected):
        how = "leads to" if redirected else "shows"
        return AccessNotConfigured(
            f"the page of form {form.slug!r} {how} a login: "
            f"{_page(markup)} has a password field and no widget; "
            "configure the access to the environment under [env.NAME.http], "
            f"or log in first with forms.{form.slug}.prepare"
        )
    led = f" (form {form.slug!r} was redirected there)" if redirected else ""
    steps = f"; steps that come before the form go into forms.{form.slug}.prepare" if redirected else ""
    return PageError(f"{_page(markup)}{led} has no {form.type} widget; {_inventory(markup, found)}{steps}")


def _is_login(markup: Markup, form: FormSpec, *, redirected: bool) -> bool:
    """Return whether a page without a widget is a login, and not the form without its widget."""
    for element in markup.forms:
        kinds = [(control.get("type") or "").lower() for control in markup.controls_of(element)]
        if "password" not in kinds:
            continue
        present = [name for name in form.fields if name in markup.control_names(element)]
        its_own = len(present) == len(form.fields) if redirected else bool(present)
        return not its_own if form.fields else redirected
    return False


def _check_values(widget: Widget, facts: WidgetFacts, markup: Markup, form: FormSpec) -> None:
    """Raise unless the page shows a usable sitekey, the one that is expected, and the data the type needs."""
    where = f"the {widget.type} widget on {_page(markup)}"
    if widget.scripted:
        raise ConfigError(
            f"{where} gets its sitekey or challenge from a variable of a script; "
            f"have the page show it in data attributes or as a literal, then it can be read"
        )
    if not _SITEKEY.match(widget.sitekey) or widget.sitekey.lower() in _PLACEHOLDERS:
        raise PageError(f"{where} has no usable sitekey (it is {_cut(widget.sitekey)})")
    if form.sitekey is not None and widget.sitekey != form.sitekey:
        raise PageError(f"{where} has sitekey {widget.sitekey}; forms.{form.slug}.sitekey expects {form.sitekey}")
    lacking = [name for name in facts.page_data if not widget.data.get(name)]
    if lacking:
        raise PageError(f"{where} has no value for {', '.join(lacking)}")
    if facts.has_action and widget.action and form.action and widget.action != form.action:
        raise PageError(f"{where} has action {_cut(widget.action)}; forms.{form.slug}.action expects {form.action!r}")


def _challenge(widget: Widget, facts: WidgetFacts, markup: Markup, form: FormSpec) -> Challenge:
    return Challenge(
        type=widget.type,
        sitekey=widget.sitekey,
        page=markup.url,
        action=(widget.action or form.action) if facts.has_action else None,
        cdata=(widget.cdata or form.cdata) if facts.has_cdata else None,
        min_score=form.min_score,
        data=widget.data,
    )


# -- the form


def _form_of(widget: Widget, form: FormSpec, markup: Markup, selected: list[Element] | None) -> Element:
    if widget.element is not None:
        around = markup.form_of(widget.element)
        if around is not None:
            return around
    if selected is not None:
        named = _distinct(markup.form_of(element) for element in selected)
        if len(named) == 1:
            return named[0]
    return _form_without_widget(widget, form, markup)


def _form_without_widget(widget: Widget, spec: FormSpec, markup: Markup) -> Element:
    """Return the form a widget outside of all forms is for: the only one that can be meant."""
    waiting = [form for form in markup.forms if _takes_response(form, widget, spec, markup)]
    posting = [form for form in markup.forms if (form.get("method") or "").strip().lower() == "post"]
    candidates = waiting or posting
    if len(candidates) == 1:
        return candidates[0]
    where = f"the {widget.type} widget on {_page(markup)} stands in no form"
    if not candidates:
        cut = "" if markup.complete else ", and its HTML is cut off"
        raise PageError(
            f"{where}, and no form there posts anything{cut}; {_forms(markup)}. If a script of the page sends it, "
            f"describe that with forms.{spec.slug}.submit"
        )
    raise ConfigError(
        f"{where}, and {len(candidates)} forms could be meant: {_list(map(describe_form, candidates))}; "
        f"choose one with widget.selector"
    )


def _takes_response(form: Element, widget: Widget, spec: FormSpec, markup: Markup) -> bool:
    names = markup.control_names(form)
    return any(name in names for name in _token_fields(widget, spec, names))


def _distinct(elements: Iterable[Element | None]) -> list[Element]:
    return list(dict.fromkeys(element for element in elements if element is not None))


# -- words


def describe(widget: Widget, markup: Markup) -> str:
    """Return where a widget stands, much like a selector."""
    key = f"sitekey {_cut(widget.sitekey)}" + (f", action {_cut(widget.action)}" if widget.action else "")
    if widget.element is None:
        return f"{widget.type} in a script ({key})"
    form = markup.form_of(widget.element)
    place = f" in {describe_form(form)}" if form is not None else ""
    return f"{widget.type} at {_selector(widget.element)}{place} ({key})"


def describe_form(form: Element) -> str:
    """Return which form is meant: its id or name, and its action."""
    return f"{_selector(form)} (action {_cut(form.get('action') or '')})"


def _selector(element: Element) -> str:
    own_id = element.get("id")
    name = element.get("name")
    classes = "".join(f".{part}" for part in (element.get("class") or "").split()[:3])
    mark = f"#{own_id}" if own_id else f"[name={name}]" if name else classes
    return _cut(f"{element.tag}{mark}").strip("'")


def _inventory(markup: Markup, found: list[Widget]) -> str:
    """Return what a page has instead of the widget that was looked for."""
    there = _list(describe(widget, markup) for widget in found) if found else "no widget at all"
    loaded = types_loaded(markup)
    scripts = f", scripts of {_list(loaded)}" if loaded else ""
    frames = "; what its frames hold is not read" if any(True for _ in markup.root.iter("iframe", "frame")) else ""
    cut = "" if markup.complete else "; its HTML is cut off"
    return f"it has {there}{scripts} and {_forms(markup)}{frames}{cut}"


def _forms(markup: Markup) -> str:
    forms = markup.forms
    if not forms:
        return "no form"
    return f"{len(forms)} form{'s' if len(forms) > 1 else ''}: {_list(map(describe_form, forms))}"


def _page(markup: Markup) -> str:
    return markup.url.without_query


def _list(items: Iterable[str]) -> str:
    shown = list(items)
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    return ", ".join(shown[:6]) + more


def _cut(text: str) -> str:
    """Return a foreign attribute as a message may show it: short, without query, escaped."""
    bare = _USER_INFO.sub("//", text.split("?")[0])
    return ascii(bare if len(bare) <= _SHOWN else bare[:_SHOWN] + "...")
