"""Attempts that stand in more than one file: a copy beside its original, a Parquet beside the lines it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# Every attempt with its id; one that was only started gives way to one that was recorded.
_KEYS = """
SELECT file AS part, rowid AS row, NULL AS line, id_hash AS key, true AS recorded FROM staged WHERE kind = 1
UNION ALL SELECT part, -1 - rowid, line, hash(id), recorded FROM odd_lines
UNION ALL SELECT own, NULL, line, hash(id), recorded FROM packed WHERE kind = 'attempt' AND own IN (
    SELECT h.part FROM parts h JOIN parts p ON p.run_id = h.run_id AND p.position > 0 WHERE h.position < 0)
"""
_LINES = "SELECT count(*) FROM parts WHERE position > 0"
_TWICE = f"SELECT count(*) > count(DISTINCT key) FROM ({_KEYS})"
_RANKED = f"""
CREATE TEMP TABLE ranked AS
WITH keyed AS (SELECT k.* REPLACE (coalesce(k.line, k.row - p.first_row + 1) AS line), p.run_id, p.complete, p.position
    FROM ({_KEYS}) k JOIN parts p USING (part)),
sized AS (SELECT part, count(*) FILTER (recorded) AS size FROM keyed GROUP BY part)
SELECT k.part, k.row, row_number() OVER (
    PARTITION BY k.run_id, k.key
    ORDER BY NOT k.recorded, k.row IS NOT NULL, s.size DESC, NOT k.complete, k.position, k.line) AS place
FROM keyed k JOIN sized s USING (part)
"""
_COPIES = "SELECT part FROM ranked GROUP BY part HAVING min(place) > 1 AND count(row) > 0"


def drop_copies(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Leave each attempt of a run in one place; return the files that held nothing else, which are left out whole.

    Of an attempt, the one that was recorded stays, in history, in the part with most attempts, in a complete one, in
    the first.
    """
    # Of history alone every attempt stands in one place.
    if not all(connection.execute(query).fetchall()[0][0] for query in (_LINES, _TWICE)):
        return []
    connection.execute(_RANKED)
    connection.execute("UPDATE staged SET kind = 3 WHERE rowid IN (SELECT row FROM ranked WHERE place > 1)")
    connection.execute("DELETE FROM odd_lines WHERE -1 - rowid IN (SELECT row FROM ranked WHERE place > 1)")
    query = f"DELETE FROM parts WHERE part IN ({_COPIES}) RETURNING file, position"
    dropped = sorted(connection.execute(query).fetchall(), key=lambda found: int(found[1]))
    connection.execute("DROP TABLE ranked")
    return [str(file) for file, _ in dropped]
