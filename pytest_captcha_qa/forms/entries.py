"""What a browser would send for a form: its entries, its target and their encoding.

form2request reads the values of controls. What it leaves out is done here: disabled controls, controls that
name their form from elsewhere, the pressed button, multipart bodies, character sets other than UTF-8. See
https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#constructing-the-form-data-set
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from form2request import form2request  # type: ignore[import-untyped]
from lxml import html

from pytest_captcha_qa.errors import ConfigError, PageError, ScopeDenied
from pytest_captcha_qa.forms.naming import describe_form
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.reading import PageReading
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport import NO_PAYLOAD, File, Payload, multipart, urlencoded

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PLAIN = "text/plain"

_LINE_END = re.compile(r"\r\n?|\n")
_SCRIPT_SCHEME = re.compile(r"\s*(?:javascript|data|about|blob|mailto|tel):", re.IGNORECASE)

_BUTTON = "captcha-qa the pressed button"

Entries = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a form is sent: method, target and encoding, those of the pressed button first."""

    method: str
    target: Url
    enctype: str
    charset: str


@dataclass(frozen=True, slots=True)
class FormData:
    """A form's own entries as they stand on the page, and the names of its empty file inputs."""

    entries: Entries = field(repr=False)
    files: tuple[str, ...]


def delivery(reading: PageReading, *, charset: str) -> Delivery:
    """Return how the page's form is sent.

    Raises:
        ConfigError: only a script sends it.
        PageError: it is the form of a dialog.
        ScopeDenied: its target cannot mean one thing only.
    """
    form, button = reading.form, pressed_button(reading)

    def attribute(name: str) -> str:
        own = button.get(f"form{name}") if button is not None else None
        return (own or form.get(name) or "").strip()

    method = attribute("method").upper() or "GET"
    if method == "DIALOG":
        raise PageError(f"{_where(reading)} belongs to a dialog and is sent nowhere")
    enctype = attribute("enctype").lower()
    return Delivery(
        method="POST" if method == "POST" else "GET",
        target=_target(reading, attribute("action")),
        enctype=enctype if enctype in (MULTIPART, PLAIN) else URLENCODED,
        charset=_charset(form.get("accept-charset"), charset),
    )


def pressed_button(reading: PageReading) -> Element | None:
    """Return the form's first submit button; a disabled one only if all are: the solved widget enables it."""
    controls = reading.markup.controls_of(reading.form)
    buttons = [control for control in controls if _submits(control)]
    enabled = [button for button in buttons if not _is_disabled(button)]
    return next(iter(enabled or buttons), None)


def form_data(reading: PageReading) -> FormData:
    """Return the entries a browser would send if nothing was filled in and the button was pressed."""
    button = pressed_button(reading)
    controls = [e for e in reading.markup.controls_of(reading.form) if e is button or _is_sent(e)]
    flat = html.fromstring("<form></form>", base_url=str(reading.markup.url))
    for control in controls:
        for copy in [_place_of_the_button()] if control is button else _plain(control):
            flat.append(copy)
    request = form2request(flat, click=False, method="POST", enctype=URLENCODED)
    files = tuple(e.get("name") or "" for e in controls if _kind(e) == "file" and e.get("name"))
    pairs = parse_qsl(request.body.decode(), keep_blank_values=True)
    return FormData([entry for pair in pairs for entry in _pressed(button, pair)], files)


def filled(entries: Entries, values: Mapping[str, str]) -> Entries:
    """Return the entries with values in place of those of the same name; names that have none come last."""
    result: Entries = []
    left = dict(values)
    for name, value in entries:
        if name not in values:
            result.append((name, value))
        elif name in left:
            result.append((name, left.pop(name)))
    return result + list(left.items())


def without(entries: Entries, names: Mapping[str, str]) -> Entries:
    """Return the entries that have none of the names."""
    return [(name, value) for name, value in entries if name not in names]


def encoded(how: Delivery, entries: Entries, files: Sequence[File]) -> tuple[Url, Payload]:
    """Return where a form goes and with which body; only multipart carries the files."""
    pairs = [(_lines(name), _lines(value)) for name, value in entries]
    if how.method == "GET":
        query = urlencode(pairs, encoding=how.charset, errors="xmlcharrefreplace")
        return Url(how.target.origin, how.target.path, query), NO_PAYLOAD
    if how.enctype == MULTIPART:
        named = {file.field for file in files}
        return how.target, multipart([(name, value) for name, value in pairs if name not in named], files)
    if how.enctype == PLAIN:
        lines = "".join(f"{name}={value}\r\n" for name, value in pairs)
        return how.target, Payload(lines.encode(how.charset, "xmlcharrefreplace"), {"Content-Type": PLAIN})
    return how.target, urlencoded(pairs, charset=how.charset)


def _target(reading: PageReading, action: str) -> Url:
    """Return the address a form is sent to; an empty action means the page itself, whatever its base says."""
    if not action:
        return reading.markup.url
    if _SCRIPT_SCHEME.match(action):
        raise ConfigError(
            f"{_where(reading)} has no address as its action but {action.split(':')[0].strip().lower()}:, "
            f"so only a script can send it"
        )
    try:
        return reading.markup.base.join(action)
    except (UrlRefused, ValueError) as refused:
        raise ScopeDenied(f"the action of {_where(reading)} is refused: {refused}", reason="url_refused") from None


def _where(reading: PageReading) -> str:
    return f"{describe_form(reading.form)} on {reading.markup.url.without_query}"


def _charset(accepted: str | None, of_page: str) -> str:
    """Return the name of the character set a form is sent in, as browsers choose it."""
    for name in [*(accepted or "").replace(",", " ").split(), of_page]:
        try:
            known = codecs.lookup(name).name
        except LookupError:
            continue
        # Browsers send UTF-8 instead of UTF-16, and mean windows-1252 by the two subsets of it.
        if known.startswith(("utf-16", "utf-32")):
            return "utf-8"
        return {"iso8859-1": "cp1252", "ascii": "cp1252"}.get(known, known)
    return "utf-8"


# -- controls


def _kind(control: Element) -> str:
    return (control.get("type") or "").strip().lower() if control.tag == "input" else str(control.tag)


def _submits(control: Element) -> bool:
    if control.tag == "button":  # whatever is no other type of button submits
        return (control.get("type") or "").strip().lower() not in ("button", "reset")
    return _kind(control) in ("submit", "image")


def _is_sent(control: Element) -> bool:
    inert = _is_disabled(control) or any(True for _ in control.iterancestors("datalist"))
    return not inert and _kind(control) not in ("submit", "image", "reset", "button")


def _is_disabled(control: Element) -> bool:
    """Return whether a control is disabled, itself or by a fieldset, whose first legend is exempt."""
    if "disabled" in control.attrib:
        return True
    ancestors = list(control.iterancestors())
    for fieldset in ancestors:
        if fieldset.tag == "fieldset" and "disabled" in fieldset.attrib:
            legend = next(iter(fieldset.iterchildren("legend")), None)
            if legend is None or legend not in ancestors:
                return True
    return False


def _plain(control: Element) -> list[Element]:
    """Return a copy that form2request reads as browsers read the original; none if it sends nothing."""
    copy = deepcopy(control)
    copy.tail = None
    if copy.tag == "textarea":
        copy.text = re.sub(r"\A\r?\n", "", copy.text or "")  # the line break after the tag is not part of the value
    if copy.tag == "select" and not _without_disabled_options(copy):
        return []
    return [copy]


def _without_disabled_options(select: Element) -> bool:
    """Remove the options nobody can choose; False if the chosen one is among them: then nothing is sent."""
    disabled = [
        option
        for option in select.iter("option")
        if "disabled" in option.attrib or any("disabled" in group.attrib for group in option.iterancestors("optgroup"))
    ]
    if "multiple" not in select.attrib and any("selected" in option.attrib for option in disabled):
        return False
    for option in disabled:
        option.drop_tree()  # type: ignore[attr-defined]
    return True


def _place_of_the_button() -> Element:
    """Return a hidden input that keeps the button's place; its own name may be one that lxml lets nobody write."""
    hidden: Element = html.Element("input", {"type": "hidden", "name": _BUTTON, "value": ""})
    return hidden


def _pressed(button: Element | None, pair: tuple[str, str]) -> Entries:
    """Return the entry, or in the button's place what pressing it sends; an image sends where it was hit."""
    if button is None or pair[0] != _BUTTON:
        return [pair]
    name = button.get("name") or ""
    if _kind(button) == "image":
        prefix = f"{name}." if name else ""
        return [(f"{prefix}x", "0"), (f"{prefix}y", "0")]
    return [(name, button.get("value") or "")] if name else []


def _lines(text: str) -> str:
    return _LINE_END.sub("\r\n", text)
