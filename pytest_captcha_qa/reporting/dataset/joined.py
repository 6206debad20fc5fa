"""Files that were joined: what stands from one header to the next one is a part of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.reading import scan_line

if TYPE_CHECKING:
    import duckdb

_HEADERS = """
SELECT file, rowid, rest FROM staged WHERE kind = 0 AND contains(rest, '"header"') ORDER BY rowid
"""
_MOVED = "UPDATE staged SET file = s.part FROM pieces s WHERE staged.rowid BETWEEN s.first AND s.last"


def parted(connection: duckdb.DuckDBPyConnection, files: Mapping[int, tuple[int, int]], number: int) -> dict[int, int]:
    """Give each part of `staged` but the first of its file a number of its own, from `number` on; return its file.

    `files`: the first row and the number of rows of each.
    """
    begun: dict[int, list[int]] = {}
    for index, row, raw in connection.execute(_HEADERS).fetchall():
        if row > files[index][0] and scan_line(1, raw.encode()).begins:
            begun.setdefault(index, []).append(row)
    pieces: list[tuple[int, int, int, int]] = []
    for index, rows in begun.items():
        end = files[index][0] + files[index][1]
        for first, after in zip(rows, [*rows[1:], end], strict=True):
            pieces.append((number + len(pieces), index, first, after - 1))
    if pieces:
        parts, _, firsts, lasts = (list(values) for values in zip(*pieces, strict=True))
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE pieces AS"
            " SELECT unnest($parts) AS part, unnest($firsts) AS first, unnest($lasts) AS last",
            {"parts": parts, "firsts": firsts, "lasts": lasts},
        )
        connection.execute(_MOVED)
    return {part: index for part, index, _, _ in pieces}
