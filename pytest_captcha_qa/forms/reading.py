"""Finds the one widget and the one form that an attempt is about, or says what the page has instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cssselect import HTMLTranslator, SelectorError
from lxml import etree

from pytest_captcha_qa.errors import AccessNotConfigured, ConfigError, PageError
from pytest_captcha_qa.forms.markup import Markup, parse
from pytest_captcha_qa.forms.naming import cut, describe, describe_form, forms_of, inventory_of, listed, page_of
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.widget import Fields, Widget
from pytest_captcha_qa.forms.widgets import WIDGETS, WidgetFacts, find_widgets
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.token import TOKEN
from pytest_captcha_qa.model.url import Url

_SITEKEY = re.compile(r"[0-9A-Za-z_-]{8,}\Z")
_PLACEHOLDERS = frozenset({"undefined", "sitekey", "site_key", "site-key", "your_site_key", "your-site-key"})


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
        raise PageError(f"{page_of(markup)} is cut off: its HTML ends before {describe_form(element)} does")
    fields = _token_fields(widget, form, markup.control_names(element))
    if not fields:
        raise ConfigError(
            f"nothing tells which field of {describe_form(element)} on {page_of(markup)} takes the answer to the "
            f"{widget.type}; name it with forms.{form.slug}.token_field"
        )
    return PageReading(markup, element, _challenge(widget, facts, markup, form), fields)


def read_challenge(markup: Markup, form: FormSpec, *, redirected: bool = False) -> ChallengeReading:
    """Return the challenge of a page whose submit is described by the configuration, wherever its widget stands.

    Raises:
        PageError, AccessNotConfigured, ConfigError: see `read_page`.
    """
    widget = _checked_widget(markup, form, _selected(markup, form), redirected=redirected)
    fields = _token_fields(widget, form, ())
    if not fields and not (form.submit and form.submit.token_at):
        raise ConfigError(
            f"nothing tells where the submit of form {form.slug!r} takes the answer to the {widget.type}; "
            f"name the place with forms.{form.slug}.submit.token_at"
        )
    # The part has its name even where no field has.
    return ChallengeReading(markup, _challenge(widget, facts_of(form.type), markup, form), fields or {TOKEN: TOKEN})


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
    meant = fitting if selected is None else _meant_by(selected, fitting, markup, form)
    if not fitting and not meant:
        raise _missing(markup, form, found, redirected=redirected)
    fitting = meant
    if all(widget.element is None for widget in fitting) and form.action is not None:
        fitting = [widget for widget in fitting if widget.action == form.action] or fitting
    if not fitting:
        raise ConfigError(
            f"forms.{form.slug}.widget.selector chooses no {form.type} widget on {page_of(markup)}; "
            f"there is {listed(describe(widget, markup) for widget in found)}"
        )
    if len(fitting) > 1:
        raise ConfigError(
            f"{page_of(markup)} has {len(fitting)} {form.type} widgets: "
            f"{listed(describe(widget, markup) for widget in fitting)}; "
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


def _meant_by(selected: list[Element], fitting: list[Widget], markup: Markup, form: FormSpec) -> list[Widget]:
    """Return the widgets that a selector chooses; of a type that has no look of its own, whatever it chooses."""
    chosen = [widget for widget in fitting if _is_chosen(widget, selected, markup)]
    at = facts_of(form.type).at
    if chosen or at is None:
        return chosen
    made = (at(element, markup) for element in selected)
    return [widget for widget in made if widget is not None]


def _is_chosen(widget: Widget, selected: list[Element], markup: Markup) -> bool:
    """Return whether a selector means the widget: it, what is around it, or the form of a scripted one."""
    if widget.element is None:
        return any(markup.form_of(element) is not None for element in selected)
    return any(element in selected for element in (widget.element, *widget.element.iterancestors()))


def _missing(
    markup: Markup, form: FormSpec, found: list[Widget], *, redirected: bool
) -> PageError | AccessNotConfigured:
    login = login_instead(markup, form, found, redirected=redirected)
    if login is not None:
        return login
    led = f" (form {form.slug!r} was redirected there)" if redirected else ""
    steps = f"; steps that come before the form go into forms.{form.slug}.prepare" if redirected else ""
    return PageError(f"{page_of(markup)}{led} has no {form.type} widget; {inventory_of(markup, found)}{steps}")


def login_instead(
    markup: Markup, form: FormSpec, found: Iterable[Widget], *, redirected: bool
) -> AccessNotConfigured | None:
    """Return the error of a page that is a login in the form's place, None if it is not; `found`: its widgets."""
    # An image is known by its looks only; a login may have one that is no captcha of the form.
    certain = [widget for widget in found if facts_of(widget.type).at is None]
    if certain or not _is_login(markup, form, redirected=redirected):
        return None
    how = "leads to" if redirected else "shows"
    return AccessNotConfigured(
        f"the page of form {form.slug!r} {how} a login: "
        f"{page_of(markup)} has a password field and no widget; "
        "configure the access to the environment under [env.NAME.http], "
        f"or log in first with forms.{form.slug}.prepare"
    )


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
    where = f"the {widget.type} widget on {page_of(markup)}"
    if widget.scripted:
        raise ConfigError(
            f"{where} gets its sitekey or challenge from a variable of a script; "
            f"have the page show it in data attributes or as a literal, then it can be read"
        )
    if facts.has_sitekey:
        _check_sitekey(widget, where, form)
    lacking = [name for name in facts.page_data if not widget.data.get(name)]
    lacking += [facts.linked.called] if facts.linked and facts.linked.lacking(widget.data) else []
    if lacking:
        raise PageError(f"{where} has no value for {', '.join(lacking)}")
    if facts.has_action and widget.action and form.action and widget.action != form.action:
        raise PageError(f"{where} has action {cut(widget.action)}; forms.{form.slug}.action expects {form.action!r}")


def _check_sitekey(widget: Widget, where: str, form: FormSpec) -> None:
    if not _SITEKEY.match(widget.sitekey) or widget.sitekey.lower() in _PLACEHOLDERS:
        raise PageError(f"{where} has no usable sitekey (it is {cut(widget.sitekey)})")
    if form.sitekey is not None and widget.sitekey != form.sitekey:
        raise PageError(f"{where} has sitekey {widget.sitekey}; forms.{form.slug}.sitekey expects {form.sitekey}")


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
    where = f"the {widget.type} widget on {page_of(markup)} stands in no form"
    if not candidates:
        broken = "" if markup.complete else ", and its HTML is cut off"
        raise PageError(
            f"{where}, and no form there posts anything{broken}; {forms_of(markup)}. If a script of the page sends it, "
            f"describe that with forms.{spec.slug}.submit"
        )
    raise ConfigError(
        f"{where}, and {len(candidates)} forms could be meant: {listed(map(describe_form, candidates))}; "
        f"choose one with widget.selector"
    )


def _takes_response(form: Element, widget: Widget, spec: FormSpec, markup: Markup) -> bool:
    names = markup.control_names(form)
    return any(name in names for name in _token_fields(widget, spec, names))


def _distinct(elements: Iterable[Element | None]) -> list[Element]:
    return list(dict.fromkeys(element for element in elements if element is not None))
