"""History made of record files: one Parquet file an environment and release, read back before anything is deleted."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError, RecordError
from pytest_captcha_qa.records.jsonl import safe_name
from pytest_captcha_qa.records.runs import MADE
from pytest_captcha_qa.reporting.dataset import packed, views
from pytest_captcha_qa.reporting.dataset.copies import drop_copies
from pytest_captcha_qa.reporting.dataset.database import connect, literal, write
from pytest_captcha_qa.reporting.dataset.loading import load, plain_sources, sorted_out
from pytest_captcha_qa.reporting.dataset.sieve import Sieve
from pytest_captcha_qa.reporting.drafts import draft_of, drop_abandoned

if TYPE_CHECKING:
    import duckdb

_MEMORY = "512MB"
_UNKNOWN = "unknown"
# Seconds. All that a run's processes wrote may be there while the run itself has yet to read it for its verdict.
STILL_READ = 600.0


@dataclass(slots=True)
class Compacted:
    """What was done: files of history written, with their runs; why other runs were left; what was deleted."""

    written: dict[Path, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    deleted: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """A part, where it comes from and where it belongs."""

    part: int
    file: Path
    run_id: str
    env: str | None
    release: str | None
    complete: bool

    @property
    def target(self) -> tuple[str, str]:
        """Folder and name of the file of history it belongs to."""
        return safe_name(self.env or _UNKNOWN), safe_name(self.release or _UNKNOWN)


def compact(records: Path, *, delete: bool = False, cleaned: bool = False) -> Compacted:
    """Write what the complete runs below `records` told to `<records>/<env>/<release>.parquet`.

    Runs that are incomplete, or still being written, stay as they are. `delete`: delete the record files that are
    told whole by history, after it was read back and found equal, but those of runs that ended a moment ago; without
    `cleaned` those stay that list what a run created on the site, since `cleanup` needs them.

    Raises:
        ConfigError: the extra `gate` is missing, or there are no records in that folder.
        RecordError: a file of history cannot be written, or is not what was to be written.
    """
    if not records.is_dir():
        raise ConfigError(f"there are no records in {records}; name the folder of the records")
    drop_abandoned(records)
    done = Compacted()
    with _loaded(records) as (connection, history, _):
        places = _places(connection)
        done.left = _left(places)
        for target, chosen in sorted(_by_target(places).items()):
            path = records / target[0] / f"{target[1]}{packed.ENDING}"
            if own := _new(chosen, path, history):
                _write(connection, own, records, path)
                done.written[path] = list(dict.fromkeys(place.run_id for place in own))
    if delete:
        _delete(records, done, cleaned=cleaned)
    return done


def _delete(records: Path, done: Compacted, *, cleaned: bool) -> None:
    with _loaded(records) as (connection, _, told):
        kept = {str(place.file) for place in _places(connection) if packed.history_of(place.part) < 0}
        made = {str(row[0]) for row in connection.execute("SELECT file FROM events WHERE name = ?", [MADE]).fetchall()}
        young = "SELECT file FROM places WHERE abs(epoch(ended_at) - ?) < ?"
        recent = {str(row[0]) for row in connection.execute(young, [time.time(), STILL_READ]).fetchall()}
    for name in sorted(told - kept):
        if name in recent:
            done.left.append(f"{name} was written within ten minutes, and its run may still read it: it goes next time")
        elif name in made and not cleaned:
            done.left.append(f"{name} lists what its run created: run `captcha-qa cleanup` first, then pass --cleaned")
        else:
            try:
                Path(name).unlink()
            except OSError as failure:
                raise RecordError(
                    f"{name} cannot be deleted: {failure.strerror}; history tells it all the same"
                ) from None
            done.deleted.append(Path(name))


@contextmanager
def _loaded(records: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[Path], set[str]]]:
    """Give a database with everything that is below `records`, the files of history, and the files they tell whole."""
    folder = Path(tempfile.mkdtemp(prefix="captcha-qa-"))
    try:
        connection = connect(folder, _MEMORY)
        history, lines = sorted_out([records])
        load(connection, plain_sources(lines, folder), Sieve(folder), wide=True)
        told = packed.add_packed(connection, history)
        drop_copies(connection)
        views.create(connection, wide=True)
        connection.execute(f"CREATE VIEW all_lines AS {views.LINES}")
        yield connection, history, told
        connection.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _places(connection: duckdb.DuckDBPyConnection) -> list[_Place]:
    query = "SELECT part, file, run_id, env, release, complete FROM places ORDER BY started_at, file, part"
    return [_Place(row[0], Path(row[1]), *row[2:]) for row in connection.execute(query).fetchall()]


def _left(places: Sequence[_Place]) -> list[str]:
    """Return which runs stay as they are."""
    runs = dict.fromkeys((place.run_id, place.env) for place in places if not place.complete)
    return [f"run {run} of {env or 'an unknown environment'} is incomplete or still running" for run, env in runs]


def _by_target(places: Sequence[_Place]) -> dict[tuple[str, str], list[_Place]]:
    found: dict[tuple[str, str], list[_Place]] = {}
    for place in places:
        if place.complete:
            found.setdefault(place.target, []).append(place)
    return found


def _new(chosen: Sequence[_Place], path: Path, history: Sequence[Path]) -> list[_Place]:
    """Return the parts that the file is to hold, the ones it has among them; none if it has them all."""
    known = history.index(path) if path in history else None
    lines = [place for place in chosen if packed.history_of(place.part) < 0]
    return [place for place in chosen if packed.history_of(place.part) == known] + lines if lines else []


def _write(connection: duckdb.DuckDBPyConnection, chosen: Sequence[_Place], records: Path, path: Path) -> None:
    connection.execute("CREATE OR REPLACE TEMP TABLE picked (part BIGINT, number BIGINT, shown VARCHAR)")
    rows = [[place.part, n, os.path.relpath(place.file, records)] for n, place in enumerate(chosen)]
    connection.executemany("INSERT INTO picked VALUES (?, ?, ?)", rows)
    connection.execute("CREATE OR REPLACE TEMP VIEW chosen AS SELECT * FROM parts JOIN picked USING (part)")
    new = draft_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(
            connection,
            f"COPY ({packed.ROWS}) TO $file (FORMAT parquet, COMPRESSION zstd,"
            f" KV_METADATA {{{packed.MARK}: '{packed.VERSION}'}})",
            {"file": str(new)},
        )
        _compare(connection, new, path)
        with new.open("rb+") as stream:
            os.fsync(stream.fileno())
        new.replace(path)
    except OSError as failure:
        raise RecordError(f"the history {path} cannot be written: {failure.strerror}") from None
    finally:
        new.unlink(missing_ok=True)


def _compare(connection: duckdb.DuckDBPyConnection, new: Path, path: Path) -> None:
    """Read the file back.

    Raises:
        RecordError: it does not hold what it was made of, each row as often.
    """
    wanted = connection.execute(_sum(packed.ROWS)).fetchall()
    if connection.execute(_sum("SELECT * FROM read_parquet($file)"), {"file": literal(new)}).fetchall() != wanted:
        raise RecordError(f"the history {path} was not written: read back, it is not what the records tell")


def _sum(query: str) -> str:
    """Return the query of what tells one set of rows from another."""
    return f"SELECT count(*), sum(hash(t)::HUGEINT), bit_xor(hash(t)) FROM ({query}) t"
