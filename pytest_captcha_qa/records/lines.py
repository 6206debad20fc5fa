"""Lines as JSON: which fields may leave, in which order and as what; the same table reads them back.

A field that is not in `FIELDS` never reaches a file; a new one stays hidden until it is listed here (R2.2).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from enum import StrEnum
from itertools import islice
from typing import Any

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.attempt import Expect, Fault, KeyMode, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.extra import MOST_FIELDS, NotRecordable, Scalar, field_name, field_value
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line, Started
from pytest_captcha_qa.model.token import Source

TEXT_LIMIT = 500
NODEID_LIMIT = 1000
PREFIX_LIMIT = 6
DATA_LIMIT = 30
DECIMALS = 3
STAGES = ("blocked", "queue", "solve", "detect", "page", "rate", "submit", "verify", "confirm")
ERROR_KEYS = ("code", "message")

Kind = Callable[[object], Any]

# Valid in JSON, but some readers end a line there and some terminals obey them.
_LINE_BREAKERS = re.compile("[\x7f-\x9f\u2028\u2029]")


class WrongKind(ValueError):
    """A value is not what its field holds; the message says what it should be, never what it was."""


def text(limit: int = TEXT_LIMIT) -> Kind:
    """Return the kind of a string; what is longer is cut and ends in an ellipsis."""

    def kind(value: object) -> str:
        if not isinstance(value, str):
            raise WrongKind("text")
        plain = value[:limit] if len(value) <= limit else value[: limit - 1] + "…"
        # A lone surrogate has no UTF-8, and strict JSON readers refuse its escape too.
        return plain.encode("utf-8", "backslashreplace").decode()

    return kind


def word(choices: type[StrEnum]) -> Kind:
    """Return the kind of a value of that enumeration, written as its text."""
    allowed = {str(choice.value) for choice in choices}

    def kind(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise WrongKind(f"one of {', '.join(sorted(allowed))}")
        return str(value)

    return kind


def optional(inner: Kind) -> Kind:
    """Return the kind that also takes None."""
    return lambda value: None if value is None else inner(value)


def prefix(value: object) -> str:
    """Return the start of a token, six characters at most whatever was given."""
    return str(TEXT(value))[:PREFIX_LIMIT]


def whole(value: object) -> int:
    """Return a whole number within 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise WrongKind("a whole number")
    return int(value)


def flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise WrongKind("true or false")
    return value


def seconds(value: object) -> float | None:
    """Return seconds with three decimals; None for what is not finite."""
    number = _finite(value)
    return None if number is None else round(number, DECIMALS)


def price(value: object) -> float | None:
    """Return an amount of money with six decimals; None for what is not finite."""
    number = _finite(value)
    return None if number is None else round(number, 6)


def scale(value: object) -> float:
    """Return a factor above zero, as exact as it came."""
    number = _finite(value)
    if number is None or number <= 0:
        raise WrongKind("a number above zero")
    return number


def error(value: object) -> dict[str, str]:
    """Return a code and our own sentence, and nothing else that lay beside them."""
    mapping = _mapping(value)
    return {key: text()(mapping[key]) for key in ERROR_KEYS if key in mapping}


def stages(value: object) -> dict[str, float]:
    """Return the seconds of each known stage that took a finite time."""
    mapping = _mapping(value)
    spent = {stage: seconds(mapping[stage]) for stage in STAGES if stage in mapping}
    return {stage: took for stage, took in spent.items() if took is not None}


def data(value: object) -> dict[str, Any]:
    """Return the scalars of an event's data under names that are text, thirty at most."""
    scalars = {k: v for k, v in _mapping(value).items() if isinstance(k, str) and _is_scalar(v)}
    return {text()(k): _scalar(v) for k, v in list(scalars.items())[:DATA_LIMIT]}


def extra(value: object) -> dict[str, Scalar]:
    """Return what may stand in a record of the fields that extensions added."""
    kept: dict[str, Scalar] = {}
    for name, one in _mapping(value).items():
        with suppress(NotRecordable):
            kept[field_name(name)] = field_value(one)
    return dict(islice(kept.items(), MOST_FIELDS))


TEXT = text()
MAYBE_TEXT = optional(TEXT)
MAYBE_WHOLE = optional(whole)
MAYBE_NODEID = optional(text(NODEID_LIMIT))

FIELDS: Mapping[type[Line], Mapping[str, Kind]] = {
    Header: {
        "ts": TEXT,
        "schema": whole,
        "tool": TEXT,
        "run_id": TEXT,
        "env": TEXT,
        "release": MAYBE_TEXT,
        "time_scale": scale,
        "shard": MAYBE_TEXT,
    },
    Started: {
        "ts": TEXT,
        "id": TEXT,
        "slug": TEXT,
        "type": TEXT,
        "env": TEXT,
        "run_id": TEXT,
        "purpose": word(Purpose),
        "expect": optional(word(Expect)),
        "nodeid": MAYBE_NODEID,
        "worker": MAYBE_TEXT,
        "project": TEXT,
        "account": MAYBE_TEXT,
        "key_mode": optional(word(KeyMode)),
    },
    AttemptLine: {
        "ts": TEXT,
        "id": TEXT,
        "slug": TEXT,
        "type": TEXT,
        "task_id": MAYBE_TEXT,
        "wait": optional(seconds),
        "verify_status": word(VerifyStatus),
        "env": TEXT,
        "release": MAYBE_TEXT,
        "run_id": TEXT,
        "project": TEXT,
        "account": TEXT,
        "provider": TEXT,
        "key_mode": word(KeyMode),
        "purpose": word(Purpose),
        "expect": word(Expect),
        "outcome": word(Result),
        "fault": optional(word(Fault)),
        "error": optional(error),
        "source": optional(word(Source)),
        "generation": MAYBE_WHOLE,
        "submits": whole,
        "polls": whole,
        "seconds": stages,
        "token_prefix": optional(prefix),
        "http_status": MAYBE_WHOLE,
        "variant": MAYBE_TEXT,
        "attempt": whole,
        "worker": MAYBE_TEXT,
        "worker_version": TEXT,
        "nodeid": MAYBE_NODEID,
        "synthetic": flag,
        "extra": extra,
        "price": optional(price),
    },
    EventLine: {"ts": TEXT, "name": TEXT, "run_id": TEXT, "data": data},
    Footer: {"ts": TEXT, "run_id": TEXT, "complete": flag, "attempts": whole},
}
BY_NAME: Mapping[str, type[Line]] = {line.type: line for line in FIELDS}

# What a line may lack, because its class knows what to put there.
_DEFAULTED: Mapping[type[Line], frozenset[str]] = {
    cls: frozenset(f.name for f in fields(cls) if f.default is not MISSING or f.default_factory is not MISSING)
    for cls in FIELDS
}

# Added since the first records: a line that has nothing to say there looks as it always did.
_UNWRITTEN_IF_EMPTY = frozenset({"extra", "price"})

# `type` is taken by the kind of line in the classes.
_ATTRIBUTES = {"type": "captcha"}


def to_json(line: Line) -> dict[str, Any]:
    """Return what may leave of a line, in the order of contracts.md.

    Raises:
        RecordError: a field holds something it must not; the message names the field, never the value.
    """
    shown: dict[str, Any] = {"$type": line.type}
    for key, kind in FIELDS[type(line)].items():
        value = getattr(line, _attribute(key))
        try:
            shown[key] = kind(value)
        except WrongKind as wrong:
            raise RecordError(
                f"a record was not written: {key!r} of its {line.type} line must be {wrong}, not {type(value).__name__}"
            ) from None
    return {key: value for key, value in shown.items() if key not in _UNWRITTEN_IF_EMPTY or value not in (None, {})}


def encode(line: Line) -> bytes:
    """Return a line as UTF-8 with its newline; no character inside ends a line anywhere.

    Raises:
        RecordError: a field holds something it must not.
    """
    packed = json.dumps(to_json(line), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _LINE_BREAKERS.sub(lambda hit: f"\\u{ord(hit.group()):04x}", packed).encode() + b"\n"


def from_json(value: Mapping[str, Any]) -> Line | None:
    """Return the line that was written as `value`, None for a kind of line we do not know.

    Unknown fields are skipped.

    Raises:
        WrongKind: a field we need is missing or is not what it should be.
    """
    name = value.get("$type")
    cls = BY_NAME.get(name) if isinstance(name, str) else None
    if cls is None:
        return None
    given = {}
    for key, kind in FIELDS[cls].items():
        if key in value or _attribute(key) not in _DEFAULTED[cls]:
            given[_attribute(key)] = _read(key, kind, value)
    return cls(**given)


def _read(key: str, kind: Kind, value: Mapping[str, Any]) -> Any:
    try:
        return kind(value.get(key))
    except WrongKind as wrong:
        found = f"{key!r} is not {wrong}" if key in value else f"{key!r} is missing"
        raise WrongKind(found) from None


def _attribute(key: str) -> str:
    return _ATTRIBUTES.get(key, key)


def _mapping(value: object) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise WrongKind("a mapping")
    return value


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise WrongKind("a number")
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _scalar(value: object) -> Any:
    if isinstance(value, str):
        return text()(value)
    if isinstance(value, float):
        return seconds(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return None
    return value
