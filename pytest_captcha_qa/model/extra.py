"""Fields that extensions add to a record: which names and values they may have."""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

MOST_FIELDS = 20
LONGEST_NAME = 40
LONGEST_TEXT = 200

_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}\Z")


class NotRecordable(ValueError):
    """A field cannot stand in a record; the message says why and repeats nothing of it."""


def field_name(name: object) -> str:
    """Return the name of a field as a plain string.

    Raises:
        NotRecordable: it is no identifier, or too long.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise NotRecordable(f"its name is no identifier of at most {LONGEST_NAME} ASCII characters")
    return str.__str__(name)


def field_value(value: object) -> Scalar:
    """Return the value of a field as what JSON can say, whatever class of its own it has.

    Raises:
        NotRecordable: it is no scalar, too long, or no number that every reader of JSON takes.
    """
    match value:
        case None | True | False:
            return bool(value) if value is not None else None
        case str():
            return _text(str.__str__(value))
        case int() if abs(int.__int__(value)) < 2**63:
            return int.__int__(value)
        case float() if math.isfinite(value):
            return float.__float__(value)
        case int() | float():
            raise NotRecordable("its number is not finite or has more than 64 bits")
    raise NotRecordable("its value is no text, number, true, false or None")


def _text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise NotRecordable(f"its text has more than {LONGEST_TEXT} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotRecordable("its text is no valid Unicode") from None
    return text
