"""Lines that another program wrote, proved sound by DuckDB: any order of keys, any spaces, fields we do not know.

A line is parsed by DuckDB, and every field that we know must be of the kind of JSON value that it must be, every word
one of its enumeration. What is not proved so is left to the exact reader, which says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pytest_captcha_qa.records.lines import DECIMALS, ERROR_KEYS, NODEID_LIMIT, PREFIX_LIMIT, STAGES, TEXT_LIMIT
from pytest_captcha_qa.reporting.dataset import columns

_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
_JSON: Mapping[str, tuple[str, ...]] = {
    "VARCHAR": ("VARCHAR",),
    "DOUBLE": _NUMBERS,
    "BIGINT": ("UBIGINT", "BIGINT"),
    "BOOLEAN": ("BOOLEAN",),
    "JSON": ("OBJECT",),
}
# Read in any case: without them a line is damaged, or their value decides.
_JUDGED = ("id", "run_id", "account", "generation", "submits", "polls", "http_status", "attempt")
_STARTED_TYPES = {"id": "VARCHAR", **{name: "VARCHAR" for name in columns.STARTED if name in columns.WORDS}}
# What the parser lets pass and JSON does not have, and what is not finite: the exact reader looks at such lines.
_LOOSE = r"[:\[,]\s*-?(?i:nan|inf|infinity)\s*[,\]}]|,\s*[\]}]"

_PROVED = {
    "attempt": [*columns.ATTEMPT, *(f"error.{key}" for key in ERROR_KEYS), *(f"seconds.{name}" for name in STAGES)],
    "started": list(columns.STARTED),
}


# So many lines of other programs the exact reader may as well read.
FEW = 2_000
_HEAD, _LOOKED_AT_FIRST = 1 << 14, 4
_TOLD = re.compile('.*"\\$type" ?: ?"(?:attempt|started)"')
_OURS = re.compile(f"{columns.pattern('attempt')}|{columns.pattern('started')}")


def is_foreign(path: Path) -> bool:
    """Return whether one of the first attempts of a file does not look as our writer writes them."""
    with path.open("rb") as stream:
        *lines, _ = stream.read(_HEAD).decode("utf-8", "replace").split("\n")
    told = islice((line for line in lines if _TOLD.match(line)), _LOOKED_AT_FIRST)
    return not all(_OURS.fullmatch(line) for line in told)


def claimed(line: str) -> str:
    """Return the condition that a line says it is an attempt or the start of one."""
    return " OR ".join(_claims(kind, line) for kind in _PROVED)


def _claims(kind: str, line: str = "l") -> str:
    # No text of JSON holds that: a quotation mark within one has a backslash before it.
    return f"""(contains({line}, '"$type": "{kind}"') OR contains({line}, '"$type":"{kind}"'))"""


@dataclass(frozen=True, slots=True)
class Steps:
    """The pieces of the query that sorts and reads lines: branches of CASE, columns, conditions."""

    likely: str
    parsed: str
    typed: str
    kind: str
    id_hash: str
    suspect: str
    fields: Mapping[str, str]


def steps(kept: Mapping[str, str], *, strict: bool) -> Steps:
    """Return how lines are found and read whoever wrote them; `kept`: the fields that are kept of an attempt."""
    return Steps(
        likely=f"WHEN {_claims('attempt')} THEN 3 WHEN {_claims('started')} THEN 4",
        parsed=", ".join(_parsed(kept)),
        typed=_typed_columns(strict),
        kind=_proved(strict),
        id_hash=f"CASE likely WHEN 3 THEN hash({_cut('f.id', TEXT_LIMIT)}) ELSE hash({_cut('s.id', TEXT_LIMIT)}) END",
        suspect=_suspect(strict),
        fields={name: _value(name, sql) for name, sql in kept.items()},
    )


def _parsed(kept: Mapping[str, str]) -> Iterator[str]:
    # Attempts `f`, with the fields besides that decide whether they are sound, and started lines `s`.
    attempt = {**{name: columns.ATTEMPT[name].sql for name in _JUDGED}, **kept}
    yield f"CASE likely WHEN 3 THEN TRY(json_transform(l, '{structure(attempt)}')) END AS f"
    yield f"CASE likely WHEN 4 THEN TRY(json_transform(l, '{structure(_STARTED_TYPES)}')) END AS s"


def structure(kept: Mapping[str, str]) -> str:
    """Return fields and their types as json_transform wants them."""
    return "{" + ", ".join(f'"{name}": {_structure(sql)}' for name, sql in kept.items()) + "}"


def _structure(sql: str) -> str:
    if not sql.startswith("STRUCT("):
        return f'"{sql}"'
    return structure(_inner(sql))


def _inner(sql: str) -> dict[str, str]:
    parts = (part.rsplit(" ", 1) for part in sql[len("STRUCT(") : -1].split(", "))
    return {name.strip('"'): kind for name, kind in parts}


def _types(kind: str) -> str:
    """Return the expression for the kinds of JSON value of all fields, a list; NULL for what is no JSON."""
    paths = ", ".join(f"'$.{path}'" for path in _PROVED[kind])
    return f"TRY(json_type(l, [{paths}]))"


def _typed_columns(strict: bool) -> str:
    """Return the column `types` of the lines whose fields are looked at one by one."""
    looked = "true" if strict else _LOOKED_AT
    return f"""CASE WHEN likely = 4 THEN {_types("started")}
        WHEN likely = 3 AND f IS NOT NULL AND {looked} THEN {_types("attempt")} END AS types"""


def _proved(strict: bool) -> str:
    """Return the branches of CASE that say of what is likely a line of another program whether it is one."""
    looked = "true" if strict else "types IS NOT NULL"
    return f"""
        WHEN likely = 3 THEN CASE WHEN f IS NULL OR NOT ({_attempt_may_be_sound(strict)}) THEN 0
            WHEN {looked} THEN CASE WHEN {_attempt_is_sound()} THEN 1 ELSE 0 END ELSE 1 END
        WHEN likely = 4 THEN CASE WHEN types IS NOT NULL AND {_started_is_sound(strict)} THEN 2 ELSE 0 END"""


def _suspect(strict: bool) -> str:
    """Return the condition that a line tells that those which were not looked at have to be."""
    if strict:
        return "false"
    wrong = f"kind = 0 AND types IS NOT NULL AND {_attempt_may_be_sound(strict)}"
    return f"""CASE WHEN likely = 3 AND f IS NOT NULL AND {_SAMPLED}
        AND ({wrong} OR kind > 0 AND NOT {_UNAMBIGUOUS}) THEN true ELSE false END"""


_SAMPLED = "hash(f.id) % 16 = 0"
# Something came out as NULL, or an attempt did not go well and is one of few.
_LOOKED_AT = f"""({
    _SAMPLED
} OR f.outcome <> 'ok' OR f.wait IS NULL OR f.generation IS NULL OR f.http_status IS NULL OR {
    " OR ".join(f'f.seconds."{stage}" IS NULL' for stage in columns.ASKED_STAGES)
})"""


def _attempt_may_be_sound(strict: bool) -> str:
    """Return the condition that nothing is missing of an attempt `f` and every word is one of its enumeration."""
    needed = (f'f."{name}" IS NOT NULL' for name in columns.ATTEMPT if _needed(name))
    words = (_worded("f", name) for name in columns.ATTEMPT if name in columns.WORDS)
    return " AND ".join([*needed, *words, *_clean(strict)])


def _needed(name: str) -> bool:
    return not _allowed(name)[1]


def _attempt_is_sound() -> str:
    """Return the condition on the `types` of a line, and on the whole numbers in `f`."""
    kinds = {path: _allowed(path) for path in _PROVED["attempt"]}
    # A whole number beyond 64 bits has become NULL.
    wholes = (
        f"""(f."{name}" IS NOT NULL OR {_type("attempt", name)} IS NULL OR {_type("attempt", name)} = 'NULL')"""
        for name in _JUDGED
        if columns.ATTEMPT[name].sql == "BIGINT"
    )
    extra = f"""CASE WHEN {_type("attempt", "extra")} IS NULL THEN true
        ELSE regexp_full_match(json(l->'$.extra'), $re${columns.ATTEMPT["extra"].shape}$re$) END"""
    return " AND ".join([*_typed("attempt", kinds), *wholes, extra])


def _started_is_sound(strict: bool) -> str:
    """Return the condition on `l`, its `types` and what was read of it, `s`."""
    kinds = {name: _allowed_started(name) for name in columns.STARTED}
    words = (_worded("s", name) for name in columns.STARTED if name in columns.WORDS)
    return " AND ".join([*_typed("started", kinds), *words, *_clean(strict)])


def _value(name: str, kept: str) -> str:
    """Return the expression for a field as the exact reader gives it: texts cut, numbers rounded."""
    field = f'f."{name}"'
    if kept == "VARCHAR":
        limit = {"nodeid": NODEID_LIMIT}.get(name, TEXT_LIMIT)
        return f"left({field}, {PREFIX_LIMIT})" if name == "token_prefix" else _cut(field, limit)
    if kept == "DOUBLE":
        return _rounded(field, 6 if name == "price" else DECIMALS)
    if kept.startswith("STRUCT("):
        return _struct(field, kept)
    return f"coalesce({field}, true)" if name == "synthetic" else field


def _struct(field: str, kept: str) -> str:
    shown = (
        f'"{name}" := {_cut(f"{field}.{name}", TEXT_LIMIT) if kind == "VARCHAR" else _rounded(f"{field}.{name}")}'
        for name, kind in _inner(kept).items()
    )
    return f"CASE WHEN {field} IS NOT NULL THEN struct_pack({', '.join(shown)}) END"


def _cut(text: str, limit: int) -> str:
    longer = f"strlen({text}) > {limit} AND length({text}) > {limit}"
    return f"CASE WHEN {longer} THEN left({text}, {limit - 1}) || '…' ELSE {text} END"


def _rounded(number: str, decimals: int = DECIMALS) -> str:
    """Return the number as Python rounds it: by what it is exactly, also where it lies halfway."""
    power = 10**decimals
    near = f"abs({number} * {power} - floor({number} * {power}) - 0.5) > 0.001 AND abs({number}) < {1e12 / power}"
    # Most numbers are round already, which is cheapest to see.
    return (
        f"CASE WHEN abs({number}) < {1e12 / power} AND {number} = round({number}, {decimals}) THEN {number}"
        f" WHEN {number} IS NULL OR NOT isfinite({number}) THEN NULL WHEN {near} THEN round({number}, {decimals})"
        f" WHEN abs({number}) < 1e16 THEN format('{{:.{decimals}f}}', {number})::DOUBLE ELSE {number} END"
    )


def _allowed(path: str) -> tuple[tuple[str, ...], bool]:
    """Return the kinds of JSON value that may stand there, and whether it may be missing."""
    outer, _, inner = path.partition(".")
    if inner:
        return (_JSON["VARCHAR"] if outer == "error" else _NUMBERS), True
    column = columns.ATTEMPT[path]
    kinds = _JSON["JSON" if column.sql.startswith("STRUCT(") else column.sql]
    null = column.shape.startswith("(?:null|") or path == "price"
    return (*kinds, *(["NULL"] if null else [])), null or column.optional or path == "synthetic"


def _allowed_started(name: str) -> tuple[tuple[str, ...], bool]:
    null = columns.STARTED[name].startswith("(?:null|")
    return ("VARCHAR", *(["NULL"] if null else [])), null or name == "project"


def _type(kind: str, path: str) -> str:
    return f"types[{_PROVED[kind].index(path) + 1}]"


def _typed(kind: str, allowed: Mapping[str, tuple[tuple[str, ...], bool]]) -> Iterator[str]:
    for path, (kinds, missing) in allowed.items():
        place = _type(kind, path)
        right = " OR ".join(f"{place} = '{one}'" for one in kinds)
        yield f"({place} IS NULL OR {right})" if missing else f"coalesce({right}, false)"


def _worded(struct: str, name: str) -> str:
    words = ", ".join(f"'{word}'" for word in columns.WORDS[name])
    return f'coalesce({struct}."{name}" IN ({words}), true)'


def _clean(strict: bool) -> Iterable[str]:
    return (_UNAMBIGUOUS,) if strict else ("NOT contains(l, 'NaN')", "NOT contains(l, 'Infinity')")


# All readers of JSON read the same there: no key twice, nothing that is no JSON.
_UNAMBIGUOUS = f"(NOT regexp_matches(l, $re${_LOOSE}$re$) AND list_unique(json_keys(l)) = len(json_keys(l)))"
