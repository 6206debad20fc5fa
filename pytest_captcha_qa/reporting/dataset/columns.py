"""What DuckDB reads of each kind of line, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from pytest_captcha_qa.model.attempt import Expect, Fault, KeyMode, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.token import Source
from pytest_captcha_qa.records.lines import ERROR_KEYS, STAGES


class Kept(Enum):
    """Where a field of an attempt is kept: with those few values that many attempts share, or with the attempt.

    A field that is seldom asked for is kept only where all fields are.
    """

    SHARED = 1
    OWN = 2
    SELDOM = 3


@dataclass(frozen=True, slots=True)
class Column:
    """One field of an attempt: its type in SQL, whether it may be null, and whether a line may lack it."""

    sql: str
    kept: Kept = Kept.SELDOM
    null: bool = False
    optional: bool = False


ASKED_STAGES = ("blocked", "page", "submit", "verify")

WORDS: Mapping[str, type[StrEnum]] = {
    "verify_status": VerifyStatus,
    "key_mode": KeyMode,
    "purpose": Purpose,
    "expect": Expect,
    "outcome": Result,
    "fault": Fault,
    "source": Source,
}


def _structure(names: tuple[str, ...], sql: str) -> str:
    fields = ", ".join(f'"{name}" {sql}' for name in names)
    return f"STRUCT({fields})"


ATTEMPT: Mapping[str, Column] = {
    "ts": Column("VARCHAR", Kept.OWN),
    "id": Column("VARCHAR"),
    "slug": Column("VARCHAR", Kept.SHARED),
    "type": Column("VARCHAR", Kept.SHARED),
    "task_id": Column("VARCHAR", null=True),
    "wait": Column("DOUBLE", Kept.OWN, null=True),
    "verify_status": Column("VARCHAR", Kept.SHARED),
    "env": Column("VARCHAR", Kept.SHARED),
    "release": Column("VARCHAR", Kept.SHARED, null=True),
    "run_id": Column("VARCHAR"),
    "project": Column("VARCHAR", Kept.SHARED),
    "account": Column("VARCHAR", Kept.SHARED),
    "provider": Column("VARCHAR", Kept.SHARED),
    "key_mode": Column("VARCHAR", Kept.SHARED),
    "purpose": Column("VARCHAR", Kept.SHARED),
    "expect": Column("VARCHAR", Kept.SHARED),
    "outcome": Column("VARCHAR", Kept.SHARED),
    "fault": Column("VARCHAR", Kept.SHARED, null=True),
    "error": Column(_structure(ERROR_KEYS, "VARCHAR"), null=True),
    "source": Column("VARCHAR", Kept.SHARED, null=True),
    "generation": Column("BIGINT", null=True),
    "submits": Column("BIGINT", Kept.OWN),
    "polls": Column("BIGINT"),
    "seconds": Column(_structure(STAGES, "DOUBLE"), Kept.OWN),
    "token_prefix": Column("VARCHAR", null=True),
    "http_status": Column("BIGINT", null=True),
    "variant": Column("VARCHAR", null=True),
    "attempt": Column("BIGINT", Kept.OWN),
    "worker": Column("VARCHAR", null=True),
    "worker_version": Column("VARCHAR", Kept.SHARED),
    "nodeid": Column("VARCHAR", null=True),
    "synthetic": Column("BOOLEAN", optional=True),
    "extra": Column("JSON", optional=True),
    "price": Column("DOUBLE", null=True, optional=True),
}

# The text fields of a started line, and which of them may be null.
STARTED: Mapping[str, bool] = {
    "ts": False,
    "id": False,
    "slug": False,
    "type": False,
    "env": False,
    "run_id": False,
    "purpose": False,
    "expect": True,
    "nodeid": True,
    "worker": True,
    "project": False,
    "account": True,
    "key_mode": True,
}

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

SHARED = tuple(name for name, column in ATTEMPT.items() if column.kept is Kept.SHARED)
_CODE = "STRUCT(code VARCHAR)"


def own(*, wide: bool) -> dict[str, str]:
    """Return the fields that are kept with each attempt, and their types; `wide`: those seldom asked for too."""
    names = [name for name, column in ATTEMPT.items() if column.kept is Kept.OWN or (wide and name not in SHARED)]
    types = {name: ATTEMPT[name].sql for name in names}
    return types if wide else types | {"seconds": _structure(ASKED_STAGES, "DOUBLE")}


def shared() -> dict[str, str]:
    """Return the fields that many attempts share, and their types; of an error that is its code."""
    return {**{name: ATTEMPT[name].sql for name in SHARED}, "error": _CODE}
