"""Words for the reader: counts with the right plural, and foreign text made inert."""

from __future__ import annotations

NAMELESS = "(no name)"
_LONGEST = 60


def counted(count: int, noun: str) -> str:
    """Return the count with its noun, such as `1 submit` or `2 submits`."""
    return f"{count} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """Return the noun as it follows that count."""
    return noun if count == 1 else f"{noun}s"


def how_often(count: int) -> str:
    """Return `once`, or how many times."""
    return "once" if count == 1 else f"{count} times"


def some_of(names: list[str], most: int = 3) -> str:
    """Return the first of the names and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def one_line(text: str) -> str:
    """Return the text on one line that no terminal obeys: what does not print is shown as its escape.

    Besides control characters that goes for lone surrogates and for the marks that turn the direction of writing.
    """
    joined = " ".join(filter(None, map(str.strip, text.splitlines())))
    return joined if joined.isprintable() else "".join(map(_visible, joined))


def shown(text: str, most: int = 90) -> str:
    """Return foreign text on one inert line, cut where it is longer than there is room for; a blank one is told."""
    line = one_line(text) or NAMELESS
    return line if len(line) <= most else f"{line[: most - 1]}…"


def short(name: str) -> str:
    """Return a name from a record, inert and short enough to stand in a sentence."""
    return shown(name, _LONGEST)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")
