"""One HTML page, parsed: its elements, scripts, forms, base address and automatic redirect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree, html

from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.forms.outline import Element, Outline
from pytest_captcha_qa.model.url import Url, UrlRefused

FORM_CONTROLS = frozenset({"input", "select", "textarea", "button"})
"""The elements that send something with a form."""

# Seconds; a longer refresh is a session time-out or a news ticker, for which no visitor waits.
_REFRESH_AT_ONCE = 1.0
_REFRESH = re.compile(r"\s*(\d*\.?\d*)\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(\S*))", re.IGNORECASE)
_REFRESH_LENGTH = 4000
# With JavaScript on, as the widget needs it, browsers take these for text or keep them out of the document.
_INERT = ("template", "noscript")


@dataclass(frozen=True, slots=True)
class Markup:
    """What a browser sees of a page.

    `inline`: scripts written on it; `sources`: addresses of the others; `owners`: the form of each element
    as browsers see it, empty if unknown; `cut_form`: the form in whose middle the text ends; `complete`:
    False if it ends in the middle of anything; `ids`: the first element with each id.
    """

    url: Url
    base: Url
    complete: bool
    root: Element = field(repr=False)
    inline: tuple[str, ...] = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    owners: Mapping[Element, Element | None] = field(repr=False)
    cut_form: Element | None = field(repr=False)
    ids: Mapping[str, Element] = field(repr=False)

    @property
    def forms(self) -> list[Element]:
        """All forms, in document order."""
        return list(self.root.iter("form"))

    @property
    def elements(self) -> list[Element]:
        """All elements, without comments and processing instructions."""
        return list(self.root.iter(etree.Element))

    def having(self, css_class: str) -> list[Element]:
        """Return the elements with a class, in document order."""
        return [element for element in self.elements if css_class in (element.get("class") or "").split()]

    def by_id(self, name: str | None) -> Element | None:
        """Return the first element with an id."""
        return self.ids.get(name) if name else None

    def form_of(self, element: Element) -> Element | None:
        """Return an element's form: the one that a control's `form` attribute names, else the one around."""
        if "form" in element.attrib and element.tag in FORM_CONTROLS:
            named = self.by_id(element.get("form"))
            return named if named is not None and named.tag == "form" else None
        if element.tag == "form":
            return element
        if element in self.owners:
            return self.owners[element]
        return next(iter(element.iterancestors("form")), None)

    def controls_of(self, form: Element) -> list[Element]:
        """Return a form's controls in document order, also those that name it from elsewhere."""
        return [control for control in self.root.iter(*FORM_CONTROLS) if self.form_of(control) is form]

    def control_names(self, form: Element) -> tuple[str, ...]:
        """Return the names of a form's controls, in document order, each once."""
        names = (control.get("name") for control in self.controls_of(form))
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def refresh(self) -> str | None:
        """The reference that a `<meta http-equiv=refresh>` leads to at once, None without one."""
        for meta in self.root.iter("meta"):
            if (meta.get("http-equiv") or "").strip().lower() == "refresh":
                return _refresh_target(meta.get("content") or "")
        return None


def parse(text: str, url: Url) -> Markup:
    """Return the page with this text at this address.

    Raises:
        ScopeDenied: its `<base>` cannot mean one thing only.
    """
    root, outline = _root(text, url), Outline(text)
    owners, cut_form = outline.owners(root), outline.cut_form(root)
    for inert in list(root.iter(*_INERT)):
        parent = inert.getparent()
        if parent is not None:
            parent.remove(inert)
    scripts = list(root.iter("script"))
    return Markup(
        url=url,
        base=_base(root, url),
        complete=outline.complete,
        root=root,
        inline=tuple(_without_comments(script.text or "") for script in scripts if "src" not in script.attrib),
        sources=tuple(script.get("src") or "" for script in scripts if "src" in script.attrib),
        owners=owners,
        cut_form=cut_form,
        ids=_ids(root),
    )


def _root(text: str, url: Url) -> Element:
    # As bytes, because lxml refuses a str with an XML declaration.
    data = text.encode("utf-8", "replace")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root: Element = html.document_fromstring(data, parser=parser, base_url=str(url))
    except etree.ParserError:  # nothing but white space and comments
        root = html.document_fromstring(b"<html><body></body></html>")
    return root


def _ids(root: Element) -> dict[str, Element]:
    first: dict[str, Element] = {}
    for element in root.iter(etree.Element):
        first.setdefault(element.get("id") or "", element)
    return first


def _base(root: Element, url: Url) -> Url:
    for element in root.iter("base"):
        href = element.get("href")
        if href is not None:
            try:
                return url.join(href)
            except (UrlRefused, ValueError) as refused:
                raise ScopeDenied(
                    f"the <base> of {url.without_query} is refused: {refused}", reason="url_refused"
                ) from None
    return url


def _without_comments(script: str) -> str:
    """Return a script without lines that are comments; `//` or `/*` within a line may be part of a string."""
    kept: list[str] = []
    in_comment = False
    for line in script.splitlines():
        text = line.strip()
        if in_comment or text.startswith("/*"):
            _, end, text = text.partition("*/")
            in_comment = not end
        if not in_comment and not text.startswith(("//", "<!--")):
            kept.append(text)
    return "\n".join(kept)


def _refresh_target(content: str) -> str | None:
    match = _REFRESH.match(content[:_REFRESH_LENGTH])
    if match is None:
        return None
    try:
        seconds = float(match.group(1) or 0)
    except ValueError:
        return None
    target = next((part for part in match.groups()[1:] if part), None)
    return target if seconds <= _REFRESH_AT_ONCE else None
