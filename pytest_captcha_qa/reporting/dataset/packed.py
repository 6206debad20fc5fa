"""History as Parquet: one file an environment and release, which holds all that its runs' record files told.

Three kinds of rows in this order: `part` (one for each writer, its facts in `writer`), `event`, `attempt` (those that
were started and not recorded have `recorded` false). `part` numbers the writers of the file, `line` is the number of
the line in the record file that `writer.file` names, relative to the folder of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.reporting.dataset.columns import ATTEMPT, PART
from pytest_captcha_qa.reporting.dataset.database import literal

if TYPE_CHECKING:
    import duckdb

VERSION = "1"
ENDING = ".parquet"
MARK = "captcha_qa_history"

_PARTS = 2_000_000_000  # above the numbers of parts of other files
_PER_FILE = 1_000_000
_OWN = ("part", "first_row", "position")

WRITER = {name: sql for name, sql in PART.items() if name not in _OWN}
FIELDS = ", ".join(f'l."{name}"' for name in ATTEMPT)
_NO_ATTEMPT = ", ".join(f'NULL::{column.sql} AS "{name}"' for name, column in ATTEMPT.items() if name != "ts")
_NO_WRITER = f"NULL::STRUCT({', '.join(f'{name} {sql}' for name, sql in WRITER.items())}) AS writer"
_FACTS = ", ".join(f"'{name}': {'shown' if name == 'file' else name}" for name in WRITER)

# What a file of history is made of; `chosen` has the parts with their new numbers and the files as they are shown.
ROWS = f"""
SELECT * EXCLUDE (rank) FROM (
    SELECT 1 AS rank, 'part' AS kind, number AS part, NULL::BIGINT AS line, {{{_FACTS}}} AS writer,
        NULL::BOOLEAN AS recorded, NULL::VARCHAR AS name, NULL::JSON AS data, NULL::VARCHAR AS ts, {_NO_ATTEMPT}
    FROM chosen
    UNION ALL BY NAME
    SELECT 2 AS rank, 'event' AS kind, c.number AS part, e.line, e.name, e.data, e.ts
    FROM event_lines e JOIN chosen c USING (part)
    UNION ALL BY NAME
    SELECT 3 AS rank, 'attempt' AS kind, c.number AS part, l.line, l.recorded, {FIELDS}
    FROM all_lines l JOIN chosen c USING (part)
)
ORDER BY rank, part, line
"""

_NUMBER = f"({_PARTS} + file_index * {_PER_FILE} + part)::BIGINT"
_LINES = f"""
CREATE VIEW packed AS SELECT *, file_index AS history, {_NUMBER} AS own
FROM read_parquet(getvariable('packed'), union_by_name = true)
"""
_NONE = f"""
CREATE VIEW packed AS SELECT NULL::VARCHAR AS kind, NULL::BIGINT AS part, NULL::BIGINT AS own, NULL::BIGINT AS line,
    {_NO_WRITER}, NULL::BOOLEAN AS recorded, NULL::VARCHAR AS name, NULL::JSON AS data, NULL::VARCHAR AS ts,
    {_NO_ATTEMPT}
WHERE false
"""
_INTO_PARTS = f"""
INSERT INTO parts BY NAME
SELECT own AS part, f.folder || '/' || writer.file AS file, {", ".join(f"writer.{n}" for n in WRITER if n != "file")},
    NULL AS first_row, row_number() OVER (ORDER BY own) - 1000000000 AS position
FROM packed JOIN folders f USING (history) WHERE kind = 'part'
"""
# A writer's file is known by its name, its run and when it began and ended; what history has of it goes first.
_TWICE = f"""
DELETE FROM parts WHERE part IN (SELECT part FROM (
    SELECT part, max(part) OVER same >= {_PARTS} AS kept,
        row_number() OVER (same ORDER BY part < {_PARTS}, part) AS place
    FROM parts WHERE header AND complete
    WINDOW same AS (PARTITION BY run_id, ts, last_ts, parse_filename(file))) WHERE kept AND place > 1)
RETURNING file, part < {_PARTS}
"""


def add_packed(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> set[str]:
    """Make the view `packed` of these files and add their parts to `parts` and their events to `event_lines`.

    Returns the record files of which history holds a part, which is left out of `parts`.

    Raises:
        ConfigError: a file is no history, or one that cannot be read.
    """
    for path in files:
        check(connection, path)
    connection.execute("SET VARIABLE packed = $files", {"files": [literal(path) for path in files]})
    connection.execute(_LINES if files else _NONE)
    if not files:
        return set()
    connection.execute("CREATE TEMP TABLE folders (history BIGINT, folder VARCHAR)")
    rows = [[index, str(path.parent.parent)] for index, path in enumerate(files)]
    connection.executemany("INSERT INTO folders VALUES (?, ?)", rows)
    connection.execute(_INTO_PARTS)
    connection.execute(
        "INSERT INTO event_lines BY NAME SELECT own AS part, line, ts, name, data FROM packed WHERE kind = 'event'"
    )
    twins = connection.execute(_TWICE).fetchall()
    return {str(file) for file, lines in twins if lines}


def history_of(part: int) -> int:
    """Return which of the files given to `add_packed` a part stands in; below zero for none of them."""
    return (part - _PARTS) // _PER_FILE


def check(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """See that a file is history of a version that can be read.

    Raises:
        ConfigError: it is not.
    """
    import duckdb

    query = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
    try:
        found = connection.execute(query, [literal(path), MARK]).fetchall()
    except duckdb.Error:
        raise ConfigError(f"the history file {path} cannot be read; it is damaged or no Parquet file") from None
    if not found:
        raise ConfigError(f"the file {path} is no history of records; name files that `captcha-qa compact` has written")
    if found[0][0] != VERSION:
        raise ConfigError(f"the history file {path} was written by a newer tool; upgrade pytest-captcha-qa to read it")
