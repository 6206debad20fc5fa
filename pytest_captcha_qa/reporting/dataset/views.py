"""The SQL of the dataset: tables and views that everybody reads from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_captcha_qa.records.lines import STAGES
from pytest_captcha_qa.records.runs import CHANGED
from pytest_captcha_qa.reporting.dataset.columns import ASKED_STAGES, ATTEMPT, SHARED, Kept

if TYPE_CHECKING:
    import duckdb


RUNS = f"""
CREATE TABLE runs AS
WITH homes AS (
    SELECT *, coalesce(p.env, min(p.env) OVER (PARTITION BY p.run_id)) AS home FROM parts p
), unknown AS (
    SELECT part FROM parts WHERE coalesce(release, '') = ''
), told AS MATERIALIZED (
    -- The place of the first attempt costs much, and is asked for only where the header does not say the release.
    SELECT part, release, count(*) AS attempts, count(*) FILTER (outcome = 'lost') AS lost,
        min((ts, line)) FILTER (part IN (FROM unknown)) AS place
    FROM attempt_lines GROUP BY ALL
), undated AS (
    SELECT part FROM homes
    WHERE NOT complete OR try_cast(ts AS TIMESTAMPTZ) IS NULL OR try_cast(last_ts AS TIMESTAMPTZ) IS NULL
), dated AS (
    -- So do times, and a complete part lies between those of its header and its footer.
    SELECT part, min(try_cast(ts AS TIMESTAMPTZ)) AS first_at, max(try_cast(ts AS TIMESTAMPTZ)) AS last_at
    FROM attempt_lines WHERE part IN (FROM undated) GROUP BY part
), changes AS (
    SELECT h.run_id, h.home, e.data->>'$.to' AS release, (e.ts, h.position, e.line) AS place
    FROM event_lines e JOIN homes h USING (part)
    WHERE e.name = '{CHANGED}' AND json_type(e.data, '$.to') = 'VARCHAR'
), seen AS (
    SELECT run_id, home, release, NULL AS place FROM homes
    UNION ALL SELECT h.run_id, h.home, t.release, NULL FROM told t JOIN homes h USING (part)
    UNION ALL SELECT * FROM changes
), releases AS (
    SELECT run_id, home, count(DISTINCT release) > 1 AS changed, arg_min(release, place) AS later
    FROM seen WHERE release <> '' GROUP BY ALL
), counted AS (
    SELECT h.run_id, h.home, sum(t.attempts)::BIGINT AS attempts, sum(t.lost)::BIGINT AS lost,
        min(d.first_at) AS first_at, max(d.last_at) AS last_at,
        arg_min(t.release, (t.place[1], h.position, t.place[2])) FILTER (t.release <> '') AS release
    FROM told t JOIN homes h USING (part) LEFT JOIN dated d USING (part) GROUP BY ALL
)
SELECT h.run_id, h.home AS env,
    coalesce(arg_min(h.release, h.position) FILTER (h.release <> ''), any_value(c.release), any_value(r.later))
        AS release,
    list(DISTINCT h.shard ORDER BY h.shard) FILTER (h.shard IS NOT NULL) AS shards,
    least(min(try_cast(h.ts AS TIMESTAMPTZ)), any_value(c.first_at)) AS started_at,
    greatest(max(try_cast(h.last_ts AS TIMESTAMPTZ)), max(try_cast(h.ts AS TIMESTAMPTZ)), any_value(c.last_at))
        AS ended_at,
    bool_and(h.complete) AS complete,
    coalesce(min(h.time_scale), 1.0) AS time_scale,
    coalesce(any_value(r.changed), false) AS release_changed,
    arg_min(h.tool, h.position) AS tool, max(h.schema) AS schema,
    coalesce(any_value(c.attempts), 0) AS attempts, coalesce(any_value(c.lost), 0) AS lost
FROM homes h
LEFT JOIN releases r ON r.run_id = h.run_id AND r.home IS NOT DISTINCT FROM h.home
LEFT JOIN counted c ON c.run_id = h.run_id AND c.home IS NOT DISTINCT FROM h.home
GROUP BY h.run_id, h.home
"""

PLACES = """
CREATE TABLE places AS
SELECT p.part, p.file, p.first_row, r.*
FROM (SELECT *, coalesce(env, min(env) OVER (PARTITION BY run_id)) AS home FROM parts) p
JOIN runs r ON r.run_id = p.run_id AND r.env IS NOT DISTINCT FROM p.home
"""

_SHOWN: Mapping[str, str] = {
    "ts": "try_cast(l.ts AS TIMESTAMPTZ)",
    "release": "coalesce(nullif(l.release, ''), r.release)",
    "run_id": "r.run_id",
    "error": "",
    "seconds": "",
}


def _attempts(source: str, line: str, *, wide: bool) -> str:
    """Return the query of the attempts in one table."""
    names = [
        name
        for name, column in ATTEMPT.items()
        if (wide or column.kept is not Kept.SELDOM) and name not in ("error", "seconds")
    ]
    shown = [f"{_SHOWN.get(name, f'l.{name}')} AS {name}" for name in dict.fromkeys([*names, "run_id"])]
    stages = [f'l.seconds."{stage}" AS "{stage}"' for stage in (STAGES if wide else ASKED_STAGES)]
    errors = [f"l.error.{name} AS error_{name}" for name in (("code", "message") if wide else ("code",))]
    fields = ", ".join([*shown, *errors, *stages])
    return f"""
    SELECT {fields}, r.file, {line} AS line, r.time_scale, r.complete,
        coalesce(l.fault IN ('provider', 'infrastructure', 'undetermined'), false) AS outage
    FROM {source} l JOIN places r USING (part)
    """


_TAKEN = "FROM staged s JOIN shared c USING (shared) WHERE s.kind = 1"


def attempts(*, wide: bool) -> str:
    """Return the query of all attempts, wherever they are kept."""
    # Of an error that is shared by many attempts its code is known.
    common = "c.* EXCLUDE (shared, error)" if wide else "c.* EXCLUDE (shared)"
    taken = f"(SELECT s.*, {common}, s.rowid AS row, s.file AS part {_TAKEN})"
    packed = "(SELECT * EXCLUDE (part), own AS part FROM packed WHERE kind = 'attempt')"
    places = {taken: "l.row - r.first_row + 1", "odd_lines": "l.line", packed: "l.line"}
    return " UNION ALL ".join(_attempts(source, line, wide=wide) for source, line in places.items())


def create(connection: duckdb.DuckDBPyConnection, *, wide: bool) -> None:
    """Make the views over the loaded tables; `wide`: with the fields that are seldom asked for."""
    connection.execute(_LINES)
    for statement in (RUNS, PLACES):
        connection.execute(statement)
    for statement in (EVENTS, PROBES):
        connection.execute(statement)
    create_attempts(connection, wide=wide)


def create_attempts(connection: duckdb.DuckDBPyConnection, *, wide: bool) -> None:
    """Make the views of attempts, anew if they were there."""
    connection.execute(f"CREATE OR REPLACE VIEW attempts AS {attempts(wide=wide)}")
    connection.execute(POSITIVE)


_OF_STAGED = ", ".join(f'{"c" if name in SHARED else "s"}."{name}"' for name in ATTEMPT)
_FIELDS = ", ".join(f'"{name}"' for name in ATTEMPT)
# Every attempt as its line tells it, for history.
LINES = f"""
SELECT s.file AS part, s.rowid - p.first_row + 1 AS line, true AS recorded, {_OF_STAGED}
FROM staged s JOIN shared c USING (shared) JOIN parts p ON p.part = s.file WHERE s.kind = 1
UNION ALL SELECT part, line, recorded, {_FIELDS} FROM odd_lines
UNION ALL SELECT own, line, recorded, {_FIELDS} FROM packed WHERE kind = 'attempt'
"""

# What the facts of runs are made of.
_LINES = f"""
CREATE VIEW attempt_lines AS
SELECT s.file AS part, s.rowid AS line, s.ts, c.release, c.outcome {_TAKEN}
UNION ALL SELECT part, line, ts, release, outcome FROM odd_lines
UNION ALL SELECT own, line, ts, release, outcome FROM packed WHERE kind = 'attempt'
"""

POSITIVE = """
CREATE OR REPLACE VIEW positive AS SELECT * FROM attempts WHERE expect = 'accept' AND purpose IN ('check', 'load')
"""

EVENTS = """
CREATE VIEW events AS
SELECT try_cast(l.ts AS TIMESTAMPTZ) AS ts, l.name, r.run_id, r.env, r.release, l.data, r.file, l.line
FROM event_lines l JOIN places r USING (part)
"""

_SAID = ("probe", "form", "slug", "family", "title", "severity", "verdict", "reason", "exchange")
_TEXTS = ", ".join(f"coalesce(data->>'$.{name}', '') AS {name}" for name in _SAID)

PROBES = f"""
CREATE VIEW probes AS
SELECT ts, run_id, env, release, {_TEXTS}, coalesce(data->>'$.standards', '') AS standards,
    coalesce(data->>'$.safe_behaviour', '') AS safe_behaviour,
    coalesce(json_type(data, '$.fails') = 'BOOLEAN' AND data->>'$.fails' = 'true', false) AS fails,
    coalesce(json_type(data, '$.counts') = 'BOOLEAN' AND data->>'$.counts' = 'true', false) AS counts,
    coalesce(data->>'$.key_mode', '') AS key_mode, nullif(data->>'$.nodeid', '') AS nodeid, file, line
FROM events WHERE name = 'probe'
"""
