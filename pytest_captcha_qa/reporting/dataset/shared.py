"""What many attempts have in common, kept once: `staged.shared` says which row of the table `shared` it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.reading import numbered
from pytest_captcha_qa.reporting.dataset import columns, proof, values
from pytest_captcha_qa.reporting.dataset.database import listed

if TYPE_CHECKING:
    import duckdb

# One hash over all of it, of a parsed line `f`.
KEY = f"""hash({", ".join(f'f."{name}"' for name in columns.SHARED)}, f.error.code)"""

_AT_ONCE = 10_000
_STRUCTURE = values.structure(columns.shared())
_FIELDS = ", ".join(f'{values.value(name, sql)} AS "{name}"' for name, sql in columns.shared().items())
# Not materialized, a line would be parsed anew for each condition.
_KNOWN = f"""
WITH parsed AS MATERIALIZED (
    SELECT key, TRY(json_transform(l, '{_STRUCTURE}')) AS f
    FROM (SELECT unnest($keys)::UBIGINT AS key, unnest($lines)::VARCHAR AS l))
SELECT key AS shared, {_FIELDS} FROM parsed WHERE key = {KEY} AND {proof.shares_what_it_may()}
"""
# Of each row an attempt that stands as near to the beginning of its file as any, and where that is.
_FIRST = """
SELECT shared, arg_min(file, row - first_row), min(row - first_row) + 1
FROM (SELECT rowid AS row, * FROM staged WHERE kind = 1) JOIN read_files USING (file)
GROUP BY shared
"""
_FILES = """
CREATE OR REPLACE TEMP TABLE read_files AS
SELECT unnest($files::INTEGER[]) AS file, unnest($rows::BIGINT[]) AS first_row
"""
_UNKNOWN = """
SELECT row, file, row - first_row + 1
FROM (SELECT rowid AS row, * FROM staged WHERE kind = 1) ANTI JOIN shared USING (shared) JOIN read_files USING (file)
"""
_GIVEN_BACK = """
UPDATE staged SET kind = 0, rest = l
FROM (SELECT unnest($keys)::BIGINT AS row, unnest($lines)::VARCHAR AS l) WHERE staged.rowid = row
"""


def create(connection: duckdb.DuckDBPyConnection, files: Mapping[int, tuple[Path, int]]) -> None:
    """Make the table `shared` of the attempts in these files, each with its first row in `staged`.

    Attempts that miss something there, or say what is no word of its enumeration, are left to the exact reader.
    """
    connection.execute(f"CREATE OR REPLACE TABLE shared ({listed({'shared': 'UBIGINT', **columns.shared()})})")
    if not files:
        return
    connection.execute(_FILES, {"files": list(files), "rows": [first_row for _, first_row in files.values()]})
    for query, into in ((_FIRST, f"INSERT INTO shared {_KNOWN}"), (_UNKNOWN, _GIVEN_BACK)):
        lines = _lines(connection.execute(query).fetchall(), files)
        while found := dict(islice(lines, _AT_ONCE)):
            connection.execute(into, {"keys": list(found), "lines": list(found.values())})


def _lines(places: Sequence[tuple[int, int, int]], files: Mapping[int, tuple[Path, int]]) -> Iterator[tuple[int, str]]:
    """Yield each key with the line at its place, number and line of a file; an empty one where the file has shrunk.

    Each file is read once, however many of its lines are asked for.
    """
    wanted: dict[int, dict[int, int]] = {}
    for key, file, number in places:
        wanted.setdefault(file, {})[number] = key
    for file, keys in wanted.items():
        for number, raw in numbered(files[file][0], set(keys)):
            yield keys.pop(number), raw.decode("utf-8", "replace")
        yield from ((key, "") for key in keys.values())
