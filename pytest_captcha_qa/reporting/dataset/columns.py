"""What DuckDB reads of each kind of line, as what, and how our own writer writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_captcha_qa.model.attempt import Expect, Fault, KeyMode, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.token import Source
from pytest_captcha_qa.records.lines import STAGES

# Bytes of a line that may hold a text of 500 characters, which would have to be cut: such lines are read one by one.
LONGEST = 1_100

# No raw control character, and no escape of half a surrogate pair, which some readers refuse.
_CHARACTER = r'(?:[^"\\\x00-\x1f\x7f]|\\["\\/bfnrt]|\\u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))'
_TEXT = f'"{_CHARACTER}*"'
# As our writer does it, so that the id of an attempt begins at one place in every line.
_TIME = r'"[0-9T:.-]{23}Z"'
_ID = r'"[0-9a-f]{32}"'
_WHOLE = r"(?:0|-?[1-9][0-9]{0,15})"
_NUMBER = r"(?:0|-?[1-9][0-9]{0,11})(?:\.[0-9]{1,3})?"
_PRICE = r"(?:0|-?[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?"


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a line: its type in SQL, and the regular expression of what our writer puts there.

    `asked`: what nearly every question asks for of it, as a type in SQL; None for a field that is seldom asked for.
    `optional`: a line may lack it.
    """

    sql: str
    shape: str
    asked: str | None = None
    optional: bool = False


def _maybe(shape: str) -> str:
    return f"(?:null|{shape})"


def _word(choices: type[StrEnum]) -> str:
    return f'"(?:{"|".join(re.escape(choice) for choice in choices)})"'


ASKED_STAGES = ("blocked", "page", "submit", "verify")
_ASKED_STAGES = f"STRUCT({', '.join(f'{stage} DOUBLE' for stage in ASKED_STAGES)})"
_STAGE_TYPES = ", ".join(f'"{stage}" DOUBLE' for stage in STAGES)
_STAGE = f'"(?:{"|".join(STAGES)})":{_NUMBER}'
_EXTRA = f'"[A-Za-z_][A-Za-z0-9_]{{0,39}}":(?:null|true|false|{_WHOLE}|{_TEXT})'

WORDS: Mapping[str, type[StrEnum]] = {
    "verify_status": VerifyStatus,
    "key_mode": KeyMode,
    "purpose": Purpose,
    "expect": Expect,
    "outcome": Result,
    "fault": Fault,
    "source": Source,
}

ATTEMPT: Mapping[str, Column] = {
    "ts": Column("VARCHAR", _TIME, asked="VARCHAR"),
    "id": Column("VARCHAR", _ID),
    "slug": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "type": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "task_id": Column("VARCHAR", _maybe(_TEXT)),
    "wait": Column("DOUBLE", _maybe(_NUMBER), asked="DOUBLE"),
    "verify_status": Column("VARCHAR", _word(VerifyStatus), asked="VARCHAR"),
    "env": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "release": Column("VARCHAR", _maybe(_TEXT), asked="VARCHAR"),
    "run_id": Column("VARCHAR", _TEXT),
    "project": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "account": Column("VARCHAR", _TEXT),
    "provider": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "key_mode": Column("VARCHAR", _word(KeyMode), asked="VARCHAR"),
    "purpose": Column("VARCHAR", _word(Purpose), asked="VARCHAR"),
    "expect": Column("VARCHAR", _word(Expect), asked="VARCHAR"),
    "outcome": Column("VARCHAR", _word(Result), asked="VARCHAR"),
    "fault": Column("VARCHAR", _maybe(_word(Fault)), asked="VARCHAR"),
    "error": Column(
        "STRUCT(code VARCHAR, message VARCHAR)",
        _maybe(rf'\{{"code":{_TEXT},"message":{_TEXT}\}}'),
        asked="STRUCT(code VARCHAR)",
    ),
    "source": Column("VARCHAR", _maybe(_word(Source)), asked="VARCHAR"),
    "generation": Column("BIGINT", _maybe(_WHOLE)),
    "submits": Column("BIGINT", _WHOLE, asked="BIGINT"),
    "polls": Column("BIGINT", _WHOLE),
    "seconds": Column(f"STRUCT({_STAGE_TYPES})", rf"\{{(?:{_STAGE}(?:,{_STAGE})*)?\}}", asked=_ASKED_STAGES),
    "token_prefix": Column("VARCHAR", _maybe(r'"[^"\\\x00-\x1f\x7f]{0,6}"')),
    "http_status": Column("BIGINT", _maybe(_WHOLE)),
    "variant": Column("VARCHAR", _maybe(_TEXT)),
    "attempt": Column("BIGINT", _WHOLE, asked="BIGINT"),
    "worker": Column("VARCHAR", _maybe(_TEXT)),
    "worker_version": Column("VARCHAR", _TEXT, asked="VARCHAR"),
    "nodeid": Column("VARCHAR", _maybe(_TEXT)),
    "synthetic": Column("BOOLEAN", "(?:true|false)"),
    "extra": Column("JSON", rf"\{{{_EXTRA}(?:,{_EXTRA}){{0,19}}\}}", optional=True),
    "price": Column("DOUBLE", _PRICE, optional=True),
}

STARTED: Mapping[str, str] = {
    "ts": _TIME,
    "id": _ID,
    "slug": _TEXT,
    "type": _TEXT,
    "env": _TEXT,
    "run_id": _TEXT,
    "purpose": _word(Purpose),
    "expect": _maybe(_word(Expect)),
    "nodeid": _maybe(_TEXT),
    "worker": _maybe(_TEXT),
    "project": _TEXT,
    "account": _maybe(_TEXT),
    "key_mode": _maybe(_word(KeyMode)),
}
# Where the id stands, counted from 1, in `started` and `attempt` lines alike.
_LENGTHS = {_TIME: 24, _ID: 32}
ID_START, ID_LENGTH = 58, 32

EVENT: Mapping[str, str] = {"ts": "VARCHAR", "name": "VARCHAR", "run_id": "VARCHAR", "data": "JSON"}

# Where a line stands: the part (what one writer left in a file) and the number of the line in that file.
PLACE: Mapping[str, str] = {"part": "BIGINT", "line": "BIGINT"}

PART: Mapping[str, str] = {
    "part": "BIGINT",
    "file": "VARCHAR",
    "run_id": "VARCHAR",
    "env": "VARCHAR",
    "header": "BOOLEAN",
    "ts": "VARCHAR",
    "tool": "VARCHAR",
    "schema": "BIGINT",
    "release": "VARCHAR",
    "time_scale": "DOUBLE",
    "shard": "VARCHAR",
    "complete": "BOOLEAN",
    "last_ts": "VARCHAR",
    "damaged": "BIGINT",
    "first_row": "BIGINT",
    "position": "BIGINT",
}


def pattern(kind: str) -> str:
    """Return the regular expression of a whole line of our writer's, `kind` is `attempt` or `started`."""
    fields = {name: column.shape for name, column in ATTEMPT.items()} if kind == "attempt" else STARTED
    needed = [f'"{name}":{shape}' for name, shape in fields.items() if not _optional(name)]
    maybe = [f'(?:,"{name}":{shape})?' for name, shape in fields.items() if _optional(name)]
    return rf'\{{"\$type":"{kind}",{",".join(needed)}{"".join(maybe)}\}}'


def outline(kind: str) -> str:
    """Return a pattern for LIKE: the fields of a line in their order, text where it must be text."""
    fields = {name: column.shape for name, column in ATTEMPT.items()} if kind == "attempt" else STARTED
    needed = [f'"{name}":{_bounds(shape)}' for name, shape in fields.items() if not _optional(name)]
    return f'{{"$type":"{kind}",{",".join(needed)}%}}'


def _optional(name: str) -> bool:
    return name in ATTEMPT and ATTEMPT[name].optional


def _bounds(shape: str) -> str:
    if shape in _LENGTHS:
        return '"' + "_" * _LENGTHS[shape] + '"'
    return '"%"' if shape.startswith('"') else "%"
