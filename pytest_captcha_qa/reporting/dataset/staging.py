"""Lines that DuckDB finds sound and reads; every other line is left to the exact reader.

One pass reads the lines as they are, parses each, keeps the sound ones and hands out the rest. Looking at a line field
by field costs more than reading it. Of more than `PROVEN` bytes it is a sample that is looked at so, and of the others
what came out empty; one of the sample that is wrong has everything looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.reading import LINE_LIMIT
from pytest_captcha_qa.reporting.dataset import columns, proof, shared, values
from pytest_captcha_qa.reporting.dataset.database import listed, literal
from pytest_captcha_qa.reporting.dataset.joined import parted

if TYPE_CHECKING:
    import duckdb

# Bytes up to which each line is looked at field by field. Of more it is one in 1 + `SAMPLE` for each so many bytes,
# which makes always about as many.
PROVEN = 16 << 20
SAMPLE = 4
_LINES = f"""
read_csv($files, columns = {{'l': 'VARCHAR'}}, header = false, auto_detect = false, delim = '\x01', quote = '',
    escape = '', comment = '', nullstr = '\x02', strict_mode = false, ignore_errors = true,
    max_line_size = {LINE_LIMIT})
"""
# Each file that is read at once takes memory of its own until all of them are.
_AT_ONCE = 512
_HEAD = 1 << 16
_ROW = {
    "file": "INTEGER",
    "kind": "TINYINT",
    "size": "INTEGER",
    "id_hash": "UBIGINT",
    "rest": "VARCHAR",
    "shared": "UBIGINT",
}


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


def stage(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool) -> list[Staged]:
    """Make the tables `staged` and `shared` of these files, and return what each of them holds.

    `staged` has one row a line, in their order; what attempts share is in `shared`. `wide`: with every field of an
    attempt, else with those that are asked for all the time.
    """
    sizes = [_size(path) for path in files]
    one_in = 1 + sum(size for size, _ in sizes) // PROVEN * SAMPLE
    _create(connection, files, wide=wide, one_in=one_in)
    if connection.execute("SELECT count(*) FILTER (kind < 0) FROM staged").fetchall()[0][0]:
        _create(connection, files, wide=wide, one_in=1)
    held = _held(connection, files, sizes)
    # Also of those that grow meanwhile: what was there before may be wanted of them.
    shared.create(connection, {index: (files[index], one.first_row) for index, one in held.items()})
    return _summed_up(connection, sizes, held)


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


@dataclass(frozen=True, slots=True)
class _Held:
    """The rows of a file."""

    first_row: int
    lines: int
    whole: bool


def _held(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], sizes: Sequence[tuple[int, bool]]
) -> dict[int, _Held]:
    """Return the rows of each file that is not empty."""
    found = {}
    for file, first_row, lines, held, broken in connection.execute(_FILES).fetchall():
        size, ended = sizes[file]
        # DuckDB's lines are counted with their ends, which the last one need not have.
        whole = held == size + (not ended) and not _has_returns(files[file], size if broken else _HEAD)
        found[file] = _Held(first_row, lines, whole)
    return found


def _has_returns(path: Path, most: int) -> bool:
    """Return whether the first bytes of a file hold a carriage return, which ends a line for DuckDB where it stands.

    One within a line breaks it, which shows; to look for what parts sound lines the beginning of a file will do.
    """
    with path.open("rb") as stream:
        pieces = iter(partial(stream.read, min(most, 1 << 20)), b"")
        return any(b"\r" in piece for piece in islice(pieces, 1 + most // (1 << 20)))


def _summed_up(
    connection: duckdb.DuckDBPyConnection, sizes: Sequence[tuple[int, bool]], held: Mapping[int, _Held]
) -> list[Staged]:
    owners = parted(connection, {file: (one.first_row, one.lines) for file, one in held.items()}, len(sizes))
    parts = {row[0]: row[1:] for row in connection.execute(_PARTS).fetchall()}
    lost = _lost(connection, [part for part, (_, paired, _) in parts.items() if not paired])
    found = []
    for part in [*range(len(sizes)), *owners]:
        index = owners.get(part, part)
        size, ended = sizes[index]
        file = held.get(index, _Held(0, 0, not size))
        attempts, _, told = parts.get(part, (0, True, ()))
        missing, first = (
            tuple(row - file.first_row + 1 for row in rows if row is not None) for rows in (lost.get(part, ()), told)
        )
        found.append(Staged(index, part, file.whole, file.first_row, file.lines, attempts, missing, first, ended))
    return found


def _lost(connection: duckdb.DuckDBPyConnection, parts: Sequence[int]) -> dict[int, list[int]]:
    """Return the rows of attempts that were started and not recorded, by part."""
    found: dict[int, list[int]] = {}
    if parts:
        for part, row in connection.execute(_LOST, {"parts": list(parts)}).fetchall():
            found.setdefault(part, []).append(row)
    return found


_FILES = """
SELECT file, min(rowid), count(*), sum(size),
    count(*) FILTER (kind = 0 AND NOT (starts_with(rest, '{') AND ends_with(rest, '}')))
FROM staged GROUP BY file
"""
_PARTS = """
SELECT file, count(*) FILTER (kind = 1),
    count(*) FILTER (kind = 2) = 0 OR (
        coalesce(sum(id_hash) FILTER (kind = 1), 0) = coalesce(sum(id_hash) FILTER (kind = 2), 0)
        AND count(*) FILTER (kind = 1) = count(*) FILTER (kind = 2)),
    [min(rowid) FILTER (kind = 1), min(rowid) FILTER (kind = 2)]
FROM staged GROUP BY file
"""
_LOST = """
SELECT file, rowid FROM staged s WHERE kind = 2 AND list_contains($parts, file) AND NOT EXISTS (
    FROM staged a WHERE a.kind = 1 AND a.file = s.file AND a.id_hash = s.id_hash)
ORDER BY rowid
"""


def _create(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool, one_in: int) -> None:
    import duckdb

    try:
        _insert(connection, files, wide=wide, one_in=one_in, tried=False)
    except duckdb.InvalidInputException:
        # One line that ends as JSON does and is none: to allow for such ones costs an eighth more.
        _insert(connection, files, wide=wide, one_in=one_in, tried=True)


def _insert(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool, one_in: int, tried: bool
) -> None:
    fields = columns.own(wide=wide)
    connection.execute(f"CREATE OR REPLACE TABLE staged ({listed(_ROW | fields)})")
    insert = f"INSERT INTO staged {_query(fields, one_in=one_in, maybe='TRY' if tried else '')}"
    for first in range(0, len(files), _AT_ONCE):
        given = [literal(path) for path in files[first : first + _AT_ONCE]]
        connection.execute(insert, {"files": given, "first": first})


def _query(fields: Mapping[str, str], *, one_in: int, maybe: str) -> str:
    """Return the query of the lines: kind 1 are attempts, 2 started lines, 0 is for the exact reader.

    -1: it is of the sample and not what it looks like, so that every line has to be looked at.
    """
    parsed = values.structure({**proof.JUDGED, **columns.shared(), **fields})
    kept = ", ".join(f'{values.value(name, sql)} AS "{name}"' for name, sql in fields.items())
    return f"""
    WITH lines AS (SELECT (file_index + $first)::INTEGER AS file, l, {_ENDS} AS ends, ends AND {_BEGINS} AS begins
        FROM {_LINES}),
    parsed AS (SELECT file, l, begins,
        {maybe}(json_transform(CASE WHEN ends AND NOT begins THEN l END, '{parsed}')) AS f,
        CASE WHEN begins THEN {maybe}(json_extract_string(l, '$.id')) END AS begun FROM lines),
    named AS (SELECT *, coalesce(begun, f.id) AS id, hash(id) AS id_hash FROM parsed),
    asked AS (SELECT *, {proof.is_attempt()} AS attempt, {proof.is_started("begins")} AS started,
        {proof.has_empty()} AS has_empty FROM named),
    sorted AS (SELECT *, CASE WHEN attempt THEN 1 WHEN started THEN 2 ELSE 0 END::TINYINT AS likely FROM asked),
    looked_at AS (SELECT *, {proof.proved(one_in)} AS proved FROM sorted),
    judged AS (SELECT *, CASE WHEN proved IS NULL THEN likely WHEN {proof.is_suspect(one_in)} THEN -1
        WHEN proved THEN likely ELSE 0 END::TINYINT AS kind FROM looked_at)
    SELECT file, kind, (strlen(l) + 1)::INTEGER AS size, id_hash, CASE WHEN kind = 0 THEN l END AS rest,
        {shared.KEY} AS shared, {kept}
    FROM judged
    """


# A line that was cut off does not end so; others that are no JSON are rare.
_ENDS = "(ends_with(l, '}') OR ends_with(l, ' '))"
# Started lines of most programs are known by that, and need not be parsed whole.
_BEGINS = """starts_with(l, '{"$type":"started"')"""
