"""Which form each tag of a page belongs to, by the rule browsers use while they read it.

Browsers remember the form they last saw opened, whatever tables lie between, until they see `</form>`, and
ignore a form inside a form. libxml2 closes a form together with the cell it began in and lets forms end each
other, so controls would be lost there.
"""

from __future__ import annotations

from html.parser import HTMLParser

from lxml import etree

Element = etree._Element

_PAGE_TAGS = frozenset({"html", "head", "body"})  # repeated ones are merged, so they cannot be counted


class Outline(HTMLParser):
    """Notes for each tag with attributes the number of its form, None outside of forms.

    `complete` is False if the text ends in the middle of a tag, a comment, a script or a form.
    """

    def __init__(self, text: str) -> None:
        """Read the whole text."""
        super().__init__(convert_charrefs=False)
        self.complete = True
        self._tags: list[tuple[str, int | None]] = []
        self._forms = 0
        self._open: int | None = None
        self._page_ended = False
        try:
            self.feed(text)
        except AssertionError:  # how html.parser reports a malformed declaration
            self._forms = -1
            return
        self.complete = not (self._ends_in_form() or self.rawdata.startswith("<") or self.cdata_elem)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, and remember the form if it is one."""
        if tag == "form":
            if self._open is None:
                self._open = self._forms
            self._forms += 1
        if attrs and tag not in _PAGE_TAGS:
            self._tags.append((tag, self._open))

    def handle_endtag(self, tag: str) -> None:
        """Forget the form that ends."""
        if tag == "form":
            self._open = None
        elif tag in ("body", "html"):
            self._page_ended = True

    def owners(self, root: Element) -> dict[Element, Element | None]:
        """Return the form of each element with attributes; empty if the two readings of the page differ."""
        forms = list(root.iter("form"))
        elements = [e for e in root.iter(etree.Element) if e.attrib and e.tag not in _PAGE_TAGS]
        if len(forms) != self._forms or [e.tag for e in elements] != [tag for tag, _ in self._tags]:
            return {}
        pairs = zip(elements, self._tags, strict=True)
        return {element: None if number is None else forms[number] for element, (_, number) in pairs}

    def cut_form(self, root: Element) -> Element | None:
        """Return the form in whose middle the text ends, None if it ends elsewhere."""
        forms = list(root.iter("form"))
        if not forms or self._open is None or not self._ends_in_form():
            return None
        return forms[self._open] if len(forms) == self._forms else forms[-1]

    def _ends_in_form(self) -> bool:
        # A page that ends properly has merely left out the end tag.
        return self._open is not None and not self._page_ended
