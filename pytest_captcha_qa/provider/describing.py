"""What an answer that nobody understands looked like: its type, keys and length, never its text."""

from __future__ import annotations

import re

_RUN = re.compile(r"[\w.=+/|:~%-]{16,}")
_CODE = re.compile(r"ERROR[_:][A-Z0-9_ ]{1,60}\Z")
_MOST_KEYS = 8
_LONGEST_KEY = 40


def masked(text: str) -> str:
    """Return the text with every run of 16 or more characters that could be a token's replaced by its length."""
    return _RUN.sub(lambda run: f"<{len(run[0])}>", text)


def is_code(text: str) -> bool:
    """Return whether the text is written as the services write their error codes, known or not."""
    return _CODE.match(text) is not None


def described_text(text: str) -> str:
    """Return in our words what a text is that is not JSON."""
    if not text:
        return "an empty answer"
    if text.startswith("<"):
        return f"an HTML page of {len(text)} characters"
    return f"a text of {len(text)} characters{_code_in(text)}"


def described_json(value: object, length: int) -> str:
    """Return in our words what a JSON value is, which was so many characters long."""
    size = f"of {length} characters"
    match value:
        case dict():
            told = f" with the keys {_keys(value)}" if value else ""
            return f"a JSON object {size}{told}{_status(value.get('status'))}{_code_in(value.get('request'))}"
        case list():
            return f"a JSON list {size} with {len(value)} items"
        case str():
            return f"a JSON string {size}{_code_in(value)}"
        case None:
            return "a JSON null"
        case bool():
            return "a JSON boolean"
        case _:
            return f"a JSON number {size}"


def _keys(value: dict[object, object]) -> str:
    names = sorted(_name(str(key)) for key in value)
    more = ", …" if len(names) > _MOST_KEYS else ""
    return ", ".join(names[:_MOST_KEYS]) + more


def _name(key: str) -> str:
    told = masked(key)
    shown = "".join(each if each.isascii() and each.isprintable() else "?" for each in told)
    return shown if len(shown) <= _LONGEST_KEY else f"<{len(shown)}>"


def _status(status: object) -> str:
    return f", status {status}" if status in (0, 1, "0", "1") else ""


def _code_in(text: object) -> str:
    return f", the unknown code {masked(text.strip())}" if isinstance(text, str) and is_code(text.strip()) else ""
