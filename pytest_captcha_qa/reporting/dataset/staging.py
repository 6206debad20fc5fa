"""Lines that DuckDB finds sound and reads; every other line is left to the exact reader.

One pass reads the lines as they are, keeps the sound ones and hands out the rest. Of files that our own writer wrote, a
line is taken only if every field stands where it belongs and is what it must be, by a regular expression over the whole
line. That costs as much as reading; where there is more than `PROVEN` bytes, one line in sixteen is looked at so and
all others by their outline, and one that fails has everything looked at. `foreign` says how other lines are proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.reading import LINE_LIMIT
from pytest_captcha_qa.reporting.dataset import columns, foreign
from pytest_captcha_qa.reporting.dataset.joined import parted

if TYPE_CHECKING:
    import duckdb

PROVEN = 64 << 20
_SAMPLED = f"substr(l, {columns.ID_START}, 1) = '0'"  # one id in sixteen
_LINES = f"""
read_csv($files, columns = {{'l': 'VARCHAR'}}, header = false, auto_detect = false, delim = '\x01', quote = '',
    escape = '', comment = '', nullstr = '\x02', strict_mode = false, ignore_errors = true,
    max_line_size = {LINE_LIMIT})
"""
# Each file that is read at once takes memory of its own until all of them are.
_AT_ONCE = 256
_NO_LINES = "(SELECT 0 AS file_index, NULL::VARCHAR AS l WHERE false)"


@dataclass(frozen=True, slots=True)
class Rest:
    """A line that the exact reader has to look at; `number` counts from 1."""

    number: int
    raw: str


@dataclass(frozen=True, slots=True)
class Staged:
    """What DuckDB took of a part: a file, or what stands in it from one header to the next one.

    `index` is that of its file, `part` its own number; `whole`: DuckDB saw every byte of the file, so that its lines
    can be numbered; `first_row` and `lines` are those of the file, and `ended` says that its last line is.
    `lost`: numbers of the lines of attempts that were started and, as far as DuckDB saw, not recorded; `told`: of the
    first lines of both kinds, which say whose the part is where it has no header.
    """

    index: int
    part: int
    whole: bool
    first_row: int
    lines: int
    attempts: int
    lost: tuple[int, ...]
    told: tuple[int, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class _How:
    """How lines are read: with all fields, each proved by itself, and whether those of other programs are too."""

    wide: bool
    strict: bool
    foreign: bool


def stage(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool) -> list[Staged]:
    """Make the table `staged` of these files, one row a line in their order, and return what each of them holds.

    `wide`: with every field of an attempt, else with those that are asked for all the time.
    """
    sizes = [_size(path) for path in files]
    how = _How(wide, sum(size for size, _ in sizes) <= PROVEN, any(map(foreign.is_foreign, files)))
    _create(connection, files, how)
    if not how.foreign and connection.execute(_LEFT).fetchall()[0][0] > foreign.FEW:
        how = replace(how, foreign=True)
        _create(connection, files, how)
    if not how.strict and connection.execute("SELECT count(*) FILTER (suspect) FROM staged").fetchall()[0][0]:
        _create(connection, files, replace(how, strict=True))
    return _summed_up(connection, sizes)


def rest(connection: duckdb.DuckDBPyConnection, files: Sequence[Staged]) -> dict[int, list[Rest]]:
    """Return the lines that DuckDB did not take, in their order, by the number of their part."""
    found: dict[int, list[Rest]] = {}
    first_rows = {file.part: file.first_row for file in files}
    query = "SELECT file, rowid, rest FROM staged WHERE kind = 0 ORDER BY rowid"
    for part, row, raw in connection.execute(query).fetchall():
        found.setdefault(part, []).append(Rest(row - first_rows[part] + 1, raw))
    return found


def _size(path: Path) -> tuple[int, bool]:
    """Return how many bytes a file has, and whether its last line is ended."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 1))
        return size, stream.read(1) == b"\n"


def _summed_up(connection: duckdb.DuckDBPyConnection, sizes: Sequence[tuple[int, bool]]) -> list[Staged]:
    files = {row[0]: row[1:] for row in connection.execute(_FILES).fetchall()}
    owners = parted(connection, files, len(sizes))
    parts = {row[0]: row[1:] for row in connection.execute(_PARTS).fetchall()}
    lost = _lost(connection, [part for part, (_, paired, _) in parts.items() if not paired])
    found = []
    for part in [*range(len(sizes)), *owners]:
        index = owners.get(part, part)
        first_row, lines, held = files.get(index, (0, 0, 0))
        attempts, _, told = parts.get(part, (0, True, ()))
        size, ended = sizes[index]
        # DuckDB's lines are counted with their ends, which the last one need not have.
        whole = held == (size if ended or not size else size + 1)
        missing, first = (
            tuple(row - first_row + 1 for row in rows if row is not None) for rows in (lost.get(part, ()), told)
        )
        found.append(Staged(index, part, whole, first_row, lines, attempts, missing, first, ended))
    return found


def _lost(connection: duckdb.DuckDBPyConnection, parts: Sequence[int]) -> dict[int, list[int]]:
    """Return the rows of attempts that were started and not recorded, by part."""
    found: dict[int, list[int]] = {}
    if parts:
        for part, row in connection.execute(_LOST, {"parts": list(parts)}).fetchall():
            found.setdefault(part, []).append(row)
    return found


_FILES = "SELECT file, min(rowid), count(*), sum(size) FROM staged GROUP BY file"
_PARTS = """
SELECT file, count(*) FILTER (kind = 1),
    count(*) FILTER (kind = 2) = 0 OR (
        coalesce(bit_xor(id_hash) FILTER (kind = 1), 0) = coalesce(bit_xor(id_hash) FILTER (kind = 2), 0)
        AND count(*) FILTER (kind = 1) = count(*) FILTER (kind = 2)),
    [min(rowid) FILTER (kind = 1), min(rowid) FILTER (kind = 2)]
FROM staged GROUP BY file
"""
_LOST = """
SELECT file, rowid FROM staged s WHERE kind = 2 AND list_contains($parts, file) AND NOT EXISTS (
    FROM staged a WHERE a.kind = 1 AND a.file = s.file AND a.id_hash = s.id_hash)
ORDER BY rowid
"""
_LEFT = f"SELECT count(*) FILTER ({foreign.claimed('rest')}) FROM staged WHERE kind = 0"


def _create(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], how: _How) -> None:
    connection.execute(f"CREATE OR REPLACE TABLE staged AS {_query(_NO_LINES, how)}", {"first": 0})
    insert = f"INSERT INTO staged {_query(_LINES, how)}"
    for first in range(0, len(files), _AT_ONCE):
        given = [str(path) for path in files[first : first + _AT_ONCE]]
        connection.execute(insert, {"files": given, "first": first})


def _query(source: str, how: _How) -> str:
    """Return the query of the lines; likely: 1 and 2 as our writer writes them, 3 and 4 as any program may."""
    kept = _kept(wide=how.wide)
    step = foreign.steps(kept, strict=how.strict) if how.foreign else _steps(kept, how)
    fields = ", ".join(f'{value} AS "{name}"' for name, value in step.fields.items())
    return f"""
    WITH lines AS (SELECT (file_index + $first)::INTEGER AS file, l FROM {source}),
    kinds AS (SELECT file, l, CASE {step.likely} ELSE 0 END::TINYINT AS likely FROM lines),
    parsed AS (SELECT file, l, likely, {step.parsed} FROM kinds),
    typed AS (SELECT *, {step.typed} FROM parsed),
    sorted AS (SELECT *, CASE {step.kind} ELSE 0 END::TINYINT AS kind FROM typed)
    SELECT file, kind, (strlen(l) + 1)::INTEGER AS size, CASE WHEN kind > 0 THEN {step.id_hash} END AS id_hash,
        CASE WHEN kind = 0 THEN l END AS rest, {step.suspect} AS suspect, {fields}
    FROM sorted
    """


def _steps(kept: Mapping[str, str], how: _How) -> foreign.Steps:
    """Return how our own lines are found and read."""
    return foreign.Steps(
        likely=f"""
            WHEN starts_with(l, '{{"$type":"attempt"') AND {_looks_right("attempt", how)} THEN 1
            WHEN starts_with(l, '{{"$type":"started"') AND {_looks_right("started", how)} THEN 2""",
        parsed=f"CASE likely WHEN 1 THEN TRY(json_transform(l, '{foreign.structure(kept)}')) END AS a",
        typed="NULL AS types",
        kind="WHEN likely = 1 AND a IS NOT NULL THEN 1 WHEN likely = 2 THEN 2",
        id_hash=f"hash(substr(l, {columns.ID_START}, {columns.ID_LENGTH}))",
        suspect=_suspicion(how),
        fields={name: f'a."{name}"' for name in kept},
    )


def _kept(*, wide: bool) -> Mapping[str, str]:
    fields = columns.ATTEMPT.items()
    types = {name: column.sql if wide else column.asked for name, column in fields}
    return {name: sql for name, sql in types.items() if sql is not None}


def _looks_right(kind: str, how: _How) -> str:
    if how.strict:
        return f"strlen(l) <= {columns.LONGEST} AND regexp_full_match(l, $re${columns.pattern(kind)}$re$)"
    return f"strlen(l) <= {columns.LONGEST} AND l LIKE $like${columns.outline(kind)}$like$"


def _suspicion(how: _How) -> str:
    if how.strict:
        return "false"
    either = f"{columns.pattern('attempt')}|{columns.pattern('started')}"
    # Only WHEN looks at the next condition for those alone that the first one holds for.
    return f"""CASE WHEN kind > 0 AND {_SAMPLED} AND NOT regexp_full_match(l, $re${either}$re$)
        THEN true ELSE false END"""
