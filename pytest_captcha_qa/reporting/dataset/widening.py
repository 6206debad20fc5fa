"""The fields that are seldom asked for, read when they are: of the lines that were there when the files were opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.reporting.dataset import views
from pytest_captcha_qa.reporting.dataset.copies import drop_copies
from pytest_captcha_qa.reporting.dataset.staging import Staged, stage

if TYPE_CHECKING:
    import duckdb

_MOVED = """
CREATE OR REPLACE TEMP TABLE moved AS
SELECT unnest($new::BIGINT[]) AS new, unnest($part::BIGINT[]) AS part, unnest($first_row::BIGINT[]) AS first_row,
    unnest($lines::BIGINT[]) AS lines
"""
_NEW_LINES = """
UPDATE staged SET kind = 3 FROM moved m WHERE staged.file = m.new AND staged.rowid - m.first_row >= m.lines
"""
_PARTS = "UPDATE staged SET file = coalesce((SELECT m.part FROM moved m WHERE m.new = staged.file), -1)"
_PLACES = [
    f"UPDATE {table} SET first_row = m.first_row FROM moved m WHERE {table}.part = m.part AND {table}.first_row"
    " IS NOT NULL"
    for table in ("parts", "places")
]


def widen(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], before: Sequence[Staged]) -> None:
    """Read the attempts again, with every field; `before` is what the files held then, which may have grown since.

    Raises:
        ConfigError: a file cannot be read any more.
    """
    import duckdb

    try:
        now = stage(connection, files, wide=True)
    except (duckdb.IOException, OSError) as failure:
        raise ConfigError(f"the record files cannot be read once more: {failure}; ask again from the start") from None
    if _layout(now) != _layout(before):
        new, part, first_row, lines = ([*values] for values in zip(*_matched(before, now), strict=True))
        connection.execute(_MOVED, {"new": new, "part": part, "first_row": first_row, "lines": lines})
        for statement in (_NEW_LINES, _PARTS, *_PLACES):
            connection.execute(statement)
    drop_copies(connection)
    views.create_attempts(connection, wide=True)


def _layout(files: Sequence[Staged]) -> list[tuple[int, int, int, int]]:
    return [(file.index, file.part, file.first_row, file.lines) for file in files]


def _matched(before: Sequence[Staged], now: Sequence[Staged]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the number a part has now, its number before, the first row of its file and how many lines that had."""
    pieces: dict[int, list[Staged]] = {}
    for one in now:
        pieces.setdefault(one.index, []).append(one)
    for one in before:
        if pieces.get(one.index):
            found = pieces[one.index].pop(0)
            yield found.part, one.part, found.first_row, one.lines
