"""One configuration file as it was read: its tables, and the line on which each key stands."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_captcha_qa.errors import ConfigError

KeyPath = tuple[str, ...]

_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_KEY})\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(rf"\s*({_KEY})\s*=")
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_TWICE = re.compile(r"Cannot overwrite a value|Cannot declare|Duplicate inline table key")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Document:
    """The configuration's tables.

    `label` is how messages call the file; `lines` maps the path of a key to its line number.
    """

    label: str
    folder: Path
    tables: Mapping[str, Any] = field(repr=False)
    path: Path | None = None
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    def holds(self, path: KeyPath) -> bool:
        """Return whether the file has this key."""
        return self.depth(path) == len(path)

    def depth(self, path: KeyPath) -> int:
        """Return how many steps of the path exist in the file; a number is a place in a list."""
        value: object = self.tables
        for steps, name in enumerate(path):
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                return steps
        return len(path)

    def line(self, path: KeyPath) -> int:
        """Return the line of the key, or of the nearest table around it that has one; 0 if none has."""
        prefixes = (path[:end] for end in range(len(path), 0, -1))
        return next((self.lines[prefix] for prefix in prefixes if prefix in self.lines), 0)

    def where(self, path: KeyPath) -> str:
        """Return file and line of the key, as messages name it."""
        line = self.line(path)
        return f"{self.label}:{line}" if line else self.label


def read(path: Path, label: str, *, table: KeyPath = ()) -> Document | None:
    """Return the document in a TOML file; with `table`, the part of the file below it, None if it has none.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8 or not valid TOML; the message names file and line.
    """
    text = _text(path, label)
    found: object = _parse(text, label)
    for name in table:
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ConfigError(f"{label}: [{'.'.join(table)}] must be a table")
    lines = {key[len(table) :]: line for key, line in key_lines(text).items() if key[: len(table)] == table}
    return Document(label, path.parent, found, path, lines)


def parse(text: str, label: str, folder: Path) -> Document:
    """Return the document in a text."""
    return Document(label, folder, _parse(text, label), None, key_lines(text))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each table header and key; keys within a value have the line they start on.

    The tables of an array stand under their places in it, from 0.
    An index for messages, not a parser: it reads what valid TOML looks like line by line.
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    repeated: Counter[KeyPath] = Counter()
    for number, line in _code_lines(text):
        header = _HEADER.match(line)
        assignment = _ASSIGNMENT.match(line)
        if header:
            table = _steps(header.group(1))
            found.setdefault(table, number)
            if line.lstrip().startswith("[["):
                repeated[table] += 1
                table = (*table, str(repeated[table] - 1))
                found[table] = number
        elif assignment:
            key = table + _steps(assignment.group(1))
            found.setdefault(key, number)
    return found


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without those that lie within a multi-line string."""
    closing: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if closing is not None:
            closing = None if closing in line else closing
            continue
        yield number, line
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes


def _steps(key: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_KEY_PART, key))


def _text(path: Path, label: str) -> str:
    if path.is_dir():
        raise ConfigError(f"{label} is a folder, not a file")
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{label} does not exist") from None
    except OSError as error:
        raise ConfigError(f"{label} cannot be read: {error.strerror}") from None
    if raw.startswith(_BOMS):
        raise ConfigError(f"{label}:1: starts with a byte order mark; save it as plain UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{label}:{line}: is not UTF-8; save the file as UTF-8") from None


def _parse(text: str, label: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place.group(1)) if place and place.group(1) else max(1, len(text.splitlines()))
        raise ConfigError(f"{label}:{line}: {_toml_sentence(_PLACE.sub('', str(error)))}") from None
    except RecursionError:
        raise ConfigError(f"{label}: its values are nested too deeply") from None


def _toml_sentence(message: str) -> str:
    if _TWICE.search(message):
        return "this key or table stands twice; keep one of them"
    return f"this is not valid TOML: {message[:1].lower()}{message[1:]}"
