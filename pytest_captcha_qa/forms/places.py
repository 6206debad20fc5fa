"""Where a page puts its widgets, and the options it gives them in attributes or in calls of its scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.forms.markup import FORM_CONTROLS, Markup
from pytest_captcha_qa.forms.outline import Element

CALL_LENGTH = 2000
"""Characters of a script call that are searched for its options."""

_OPTION = re.compile(r"[\"']?\b([\w-]+)[\"']?\s*:\s*(?:\"([^\"]*)\"|'([^']*)'|`([^`$]*)`|(\w[\w.\[\]]*))")
_ELEMENT = r"(?:document\s*\.\s*(?:getElementById|querySelector)\s*\(\s*)?"


@dataclass(frozen=True, slots=True)
class Place:
    """An element a widget stands in, with what its attributes or its render call say."""

    element: Element
    options: Mapping[str, str]
    variable: frozenset[str]

    def get(self, name: str) -> str | None:
        """Return an option, by its attribute's name without `data-`."""
        shown = self.element.get(f"data-{name}")
        return shown if shown is not None else self.options.get(name.replace("-", "").lower())

    @property
    def is_button(self) -> bool:
        """Whether the widget is bound to a button."""
        return self.element.tag in FORM_CONTROLS

    @property
    def is_invisible(self) -> bool:
        """Whether nothing is shown of it."""
        return self.is_button or (self.get("size") or "").strip().lower() == "invisible"

    @property
    def is_scripted(self) -> bool:
        """Whether a script sets the sitekey from a variable, so that the page does not show it."""
        return not self.get("sitekey") and "sitekey" in self.variable


def places(markup: Markup, css_class: str, script_object: str) -> list[Place]:
    """Return where widgets stand: elements with the class, and those a script renders into."""
    rendered = dict(_rendered(markup, script_object))
    marked = {element: Place(element, {}, frozenset()) for element in markup.having(css_class)}
    return list((marked | rendered).values())


def _rendered(markup: Markup, script_object: str) -> Iterator[tuple[Element, Place]]:
    """Yield the elements that scripts render a widget into: `grecaptcha.render("id", {...})`, or into the element."""
    call = re.compile(rf"\b{script_object}\.render\s*\(\s*{_ELEMENT}[\"']#?([\w:.-]+)[\"']\s*\)?\s*,\s*(?=\{{)")
    for script in markup.inline:
        for match in call.finditer(script):
            element = _named(markup, match.group(1))
            if element is not None:
                yield element, Place(element, *options_at(script, match.end()))


def _named(markup: Markup, name: str) -> Element | None:
    """Return the element with an id, or the first one of a class, which is written with a dot."""
    return next(iter(markup.having(name[1:])), None) if name.startswith(".") else markup.by_id(name)


def options_at(script: str, start: int) -> tuple[Mapping[str, str], frozenset[str]]:
    """Return the literal options of the object that begins there, and the names of the variable ones."""
    literal: dict[str, str] = {}
    variable: set[str] = set()
    for match in _OPTION.finditer(script[start : _closing_brace(script, start)]):
        name = match.group(1).replace("-", "").replace("_", "").lower()
        value = next((text for text in match.groups()[1:4] if text is not None), None)
        if value is not None:
            literal.setdefault(name, value)
        elif name not in literal:
            variable.add(name)
    return literal, frozenset(variable)


def _closing_brace(script: str, start: int) -> int:
    depth = 0
    for index in range(start, min(len(script), start + CALL_LENGTH)):
        depth += {"{": 1, "}": -1}.get(script[index], 0)
        if depth == 0:
            return index
    return start + CALL_LENGTH
