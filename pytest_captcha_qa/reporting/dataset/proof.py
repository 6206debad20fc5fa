"""Whether a line is sound, whoever wrote it: any order of keys, any spaces, fields we do not know.

Every field that we know must be of the kind of JSON value that it must be, every word one of its enumeration. What is
not proved so is left to the exact reader, which says what is wrong with it. The conditions here are about a line `l`
and what was parsed of it: its `id`, and of one that may be an attempt its fields `f`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_captcha_qa.model.extra import LONGEST_NAME, LONGEST_TEXT, MOST_FIELDS
from pytest_captcha_qa.records.lines import ERROR_KEYS, STAGES
from pytest_captcha_qa.reporting.dataset import columns

# Parsed of an attempt in any case: without them it is damaged, or they are what tells that something is.
JUDGED = {
    "$type": "VARCHAR",
    **{name: columns.ATTEMPT[name].sql for name in ("id", "run_id", "generation", "polls", "http_status")},
}

_MAY_BE_EMPTY = ("wait", "generation", "http_status", *(f"seconds.{stage}" for stage in columns.ASKED_STAGES))
_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
_JSON: Mapping[str, tuple[str, ...]] = {
    "VARCHAR": ("VARCHAR",),
    "DOUBLE": _NUMBERS,
    "BIGINT": ("UBIGINT", "BIGINT"),
    "BOOLEAN": ("BOOLEAN",),
    "JSON": ("OBJECT",),
}
_MISSING = ""
# What the parser lets pass and JSON does not have, and what is not finite.
_LOOSE = r"[:\[,]\s*-?(?i:nan|inf|infinity)\s*[,\]}]|,\s*[\]}]"
# All readers of JSON read the same there: no key twice, nothing that is no JSON.
_UNAMBIGUOUS = f"(NOT regexp_matches(l, $re${_LOOSE}$re$) AND list_unique(json_keys(l)) = len(json_keys(l)))"
_EXTRA_TEXT = r'"(?:[^"\\\x00-\x1f\x7f]|\\["\\/bfnrt])*"'
_EXTRA_VALUE = rf"(?:null|true|false|(?:0|-?[1-9][0-9]{{0,15}})|{_EXTRA_TEXT})"
_EXTRA = rf'"[A-Za-z_][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}":{_EXTRA_VALUE}'


def sampled(one_in: int) -> str:
    """Return the condition that a line is of the sample that is looked at field by field, one in so many."""
    return f"id_hash % {one_in} = 0"


def is_attempt() -> str:
    """Return the condition that a line says it is an attempt and misses nothing that is kept with each by itself."""
    parsed = (*JUDGED, *columns.own(wide=False))
    return " AND ".join(["""f."$type" = 'attempt'""", *_there(name for name in parsed if name in columns.ATTEMPT)])


def is_started(begins: str) -> str:
    """Return the condition that a line says it is a started one; `begins`: what holds for those known without `f`."""
    return f"""id IS NOT NULL AND ({begins} OR f."$type" = 'started')"""


def shares_what_it_may() -> str:
    """Return the condition that of what many attempts share nothing is missing in `f`, and no word is wrong."""
    words = (f'coalesce(f."{name}" IN ({_listed(name)}), true)' for name in columns.WORDS)
    return " AND ".join([*_there(columns.SHARED), *words])


def _there(names: Iterable[str]) -> Iterator[str]:
    needed = (name for name in names if not (columns.ATTEMPT[name].null or columns.ATTEMPT[name].optional))
    return (f'f."{name}" IS NOT NULL' for name in needed)


def _listed(name: str) -> str:
    return ", ".join(f"'{word}'" for word in columns.WORDS[name])


def has_empty() -> str:
    """Return the condition that something came out empty of an attempt, as what is of the wrong kind does too."""
    return (
        " OR ".join(f"{_field(path)} IS NULL" for path in _MAY_BE_EMPTY) + " OR f.outcome <> 'ok' AND f.error IS NULL"
    )


def proved(one_in: int) -> str:
    """Return the expression for whether a line was looked at and is what it says; NULL for one that was not looked at.

    Those of the sample, one in so many, are looked at field by field; of others it is what came out empty.
    """
    plain = f" AND {_UNAMBIGUOUS}" if one_in == 1 else ""
    return f"""CASE WHEN likely = 1 AND {sampled(one_in)} THEN {_attempt_is_proved()}{plain}
        WHEN likely = 1 AND has_empty THEN {_empty_is_meant()}
        WHEN likely = 2 AND {sampled(one_in)} THEN {_started_is_proved()}{plain} END"""


def is_suspect(one_in: int) -> str:
    """Return the condition that a line that was looked at is of the sample and not what it says."""
    return "false" if one_in == 1 else f"{sampled(one_in)} AND (NOT proved OR NOT {_UNAMBIGUOUS})"


def _attempt_is_proved() -> str:
    fields = {name: _kinds(name) for name in columns.ATTEMPT}
    inner = {f"error.{key}": (*_JSON["VARCHAR"], _MISSING) for key in ERROR_KEYS}
    inner |= {f"seconds.{stage}": (*_NUMBERS, _MISSING) for stage in STAGES}
    # A whole number beyond 64 bits has become NULL.
    wholes = (_is_meant(name) for name, column in columns.ATTEMPT.items() if column.sql == "BIGINT")
    return " AND ".join([_holds(fields | inner), *wholes, _holds_what_extensions_may_add()])


def _empty_is_meant() -> str:
    return " AND ".join(_is_meant(path) for path in (*_MAY_BE_EMPTY, "error"))


def _is_meant(path: str) -> str:
    """Return the condition that a field holds something, or nothing because the line says so."""
    # Only CASE leaves out what need not be looked at.
    return (
        f"""CASE WHEN {_field(path)} IS NOT NULL THEN true ELSE coalesce(json_type(l, '$.{path}') = 'NULL', true) END"""
    )


def _field(path: str) -> str:
    return "f." + ".".join(f'"{name}"' for name in path.split("."))


def _holds_what_extensions_may_add() -> str:
    extra = rf"\{{{_EXTRA}(?:,{_EXTRA}){{0,{MOST_FIELDS - 1}}}\}}"
    found = "json_extract(l, '$.extra')"
    return f"""CASE WHEN {found} IS NULL THEN true
        ELSE regexp_full_match(json({found}), $re${extra}$re$) AND strlen(json({found})) <= {LONGEST_TEXT} END"""


def _started_is_proved() -> str:
    kinds = {name: ("VARCHAR", *(("NULL", _MISSING) if null else ())) for name, null in columns.STARTED.items()}
    # Its class knows what to put there.
    kinds["project"] = ("VARCHAR", _MISSING)
    words = (
        f"coalesce(json_extract_string(l, '$.{name}') IN ({_listed(name)}), true)"
        for name in columns.STARTED
        if name in columns.WORDS
    )
    return " AND ".join([_holds(kinds), *words])


def _kinds(name: str) -> tuple[str, ...]:
    """Return the kinds of JSON value that may stand there in an attempt."""
    column = columns.ATTEMPT[name]
    kinds = _JSON["JSON" if column.sql.startswith("STRUCT(") else column.sql]
    missing = column.null or column.optional
    return (*kinds, *(("NULL",) if column.null else ()), *((_MISSING,) if missing else ()))


def _holds(allowed: Mapping[str, Iterable[str]]) -> str:
    """Return the condition that at each path of a line stands a value of one of the kinds of JSON."""
    paths = ", ".join(f"'$.{path}'" for path in allowed)
    kinds = ",".join(f"(?:{'|'.join(map(_shown, kinds))})" for kinds in allowed.values())
    return rf"regexp_full_match(to_json(json_type(l, [{paths}]))::VARCHAR, $re$\[{kinds}\]$re$)"


def _shown(kind: str) -> str:
    return "null" if kind == _MISSING else f'"{kind}"'
