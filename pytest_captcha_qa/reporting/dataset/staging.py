"""Lines that our own writer wrote, found and read by DuckDB; every other line is left to the exact reader.

One pass reads the lines as they are, keeps those that look as our writer writes them, and hands out the rest. A line
is taken only if every field stands where it belongs and is what it must be, by a regular expression over the whole
line. That costs as much as reading; where there is more than `PROVEN` bytes, one line in sixteen is looked at so and
all others by their outline, and one that fails has everything looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.reading import LINE_LIMIT
from pytest_captcha_qa.reporting.dataset import columns

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
    """What DuckDB took of a file: how many attempts it has, whether it has started what it did not record.

    `whole`: DuckDB saw every byte of the file, so that its lines can be numbered; `ended`: its last line is.
    """

    index: int
    whole: bool
    first_row: int
    lines: int
    attempts: int
    paired: bool
    ended: bool


def stage(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool) -> list[Staged]:
    """Make the table `staged` of these files, one row a line in their order, and return what each of them holds.

    `wide`: with every field of an attempt, else with those that are asked for all the time.
    """
    sizes = [path.stat().st_size for path in files]
    strict = sum(sizes) <= PROVEN
    _create(connection, files, wide=wide, strict=strict)
    if not strict and connection.execute("SELECT count(*) FILTER (suspect) FROM staged").fetchall()[0][0]:
        _create(connection, files, wide=wide, strict=True)
    found = {row[0]: row[1:] for row in connection.execute(_SUMMARY).fetchall()}
    nothing = (0, 0, 0, 0, True)
    return [_staged(index, size, found.get(index, nothing)) for index, size in enumerate(sizes)]


def rest(connection: duckdb.DuckDBPyConnection, files: Sequence[Staged]) -> dict[int, list[Rest]]:
    """Return the lines that DuckDB did not take, in their order, by the index of their file."""
    found: dict[int, list[Rest]] = {}
    query = "SELECT file, rowid, rest FROM staged WHERE kind = 0 ORDER BY rowid"
    for index, row, raw in connection.execute(query).fetchall():
        found.setdefault(index, []).append(Rest(row - files[index].first_row + 1, raw))
    return found


def _staged(index: int, size: int, found: tuple[int, int, int, int, bool]) -> Staged:
    first_row, lines, held, attempts, paired = found
    # A last line without its end is one byte less.
    return Staged(index, held in (size, size + 1), first_row, lines, attempts, paired, held == size)


_SUMMARY = """
SELECT file, min(rowid), count(*), sum(size), count(*) FILTER (kind = 1),
    coalesce(bit_xor(id_hash) FILTER (kind = 1), 0) = coalesce(bit_xor(id_hash) FILTER (kind = 2), 0)
        AND count(*) FILTER (kind = 1) = count(*) FILTER (kind = 2)
FROM staged GROUP BY file
"""


def _create(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool, strict: bool) -> None:
    connection.execute(f"CREATE OR REPLACE TABLE staged AS {_query(_NO_LINES, wide=wide, strict=strict)}", {"first": 0})
    insert = f"INSERT INTO staged {_query(_LINES, wide=wide, strict=strict)}"
    for first in range(0, len(files), _AT_ONCE):
        given = [str(path) for path in files[first : first + _AT_ONCE]]
        connection.execute(insert, {"files": given, "first": first})


def _query(source: str, *, wide: bool, strict: bool) -> str:
    kept = _kept(wide=wide)
    wanted = ", ".join(f'"{name}": {_structure(sql)}' for name, sql in kept.items())
    fields = ", ".join(f'a."{name}" AS "{name}"' for name in kept)
    return f"""
    WITH lines AS (SELECT (file_index + $first)::INTEGER AS file, l FROM {source}),
    kinds AS (SELECT file, l, CASE
        WHEN starts_with(l, '{{"$type":"attempt"') AND {_looks_right("attempt", strict)} THEN 1
        WHEN starts_with(l, '{{"$type":"started"') AND {_looks_right("started", strict)} THEN 2
        ELSE 0 END AS likely FROM lines),
    parsed AS (SELECT file, l, likely,
        CASE likely WHEN 1 THEN TRY(json_transform(l, '{{{wanted}}}')) END AS a FROM kinds),
    sorted AS (SELECT *, CASE WHEN likely = 1 AND a IS NULL THEN 0 ELSE likely END::TINYINT AS kind FROM parsed)
    SELECT file, kind, (strlen(l) + 1)::INTEGER AS size,
        CASE WHEN kind > 0 THEN hash(substr(l, {columns.ID_START}, {columns.ID_LENGTH})) END AS id_hash,
        CASE WHEN kind = 0 THEN l END AS rest,
        {_suspicion(strict)} AS suspect,
        {fields}
    FROM sorted
    """


def _kept(*, wide: bool) -> Mapping[str, str]:
    fields = columns.ATTEMPT.items()
    types = {name: column.sql if wide else column.asked for name, column in fields}
    return {name: sql for name, sql in types.items() if sql is not None}


def _looks_right(kind: str, strict: bool) -> str:
    if strict:
        return f"strlen(l) <= {columns.LONGEST} AND regexp_full_match(l, $re${columns.pattern(kind)}$re$)"
    return f"strlen(l) <= {columns.LONGEST} AND l LIKE $like${columns.outline(kind)}$like$"


def _suspicion(strict: bool) -> str:
    if strict:
        return "false"
    either = f"{columns.pattern('attempt')}|{columns.pattern('started')}"
    # Only WHEN looks at the next condition for those alone that the first one holds for.
    asked = f"kind > 0 AND {_SAMPLED} AND NOT regexp_full_match(l, $re${either}$re$)"
    return f"CASE WHEN {asked} THEN true ELSE false END"


def _structure(sql: str) -> str:
    """Return a type as json_transform wants it."""
    if not sql.startswith("STRUCT("):
        return f'"{sql}"'
    inner = (part.rsplit(" ", 1) for part in sql[len("STRUCT(") : -1].split(", "))
    return "{" + ", ".join(f'"{name.strip(chr(34))}": "{kind}"' for name, kind in inner) + "}"
