"""Erasing a run: its lines, its rows in history, the evidence of its failures and its verdict.

What is kept is kept byte for byte, or row for row; each file is replaced in one step.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from pytest_captcha_qa.errors import ConfigError, RecordError
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Started
from pytest_captcha_qa.records.failures import failures_folder
from pytest_captcha_qa.records.jsonl import safe_name
from pytest_captcha_qa.records.reading import opened, scan
from pytest_captcha_qa.reporting.dataset import packed
from pytest_captcha_qa.reporting.dataset.database import connect, literal, write
from pytest_captcha_qa.reporting.dataset.loading import sorted_out
from pytest_captcha_qa.reporting.dataset.sieve import Part, by_writer
from pytest_captcha_qa.reporting.drafts import draft_of, drop_abandoned

STILL_WRITTEN = 600.0  # seconds: a file without a footer that is younger than this may have a writer
_VERDICT = "verdict.json"
_SHORT = 8  # an id as short as that may be an everyday word


@dataclass(slots=True)
class Traces:
    """Where a run has left something: `lines` by file with their numbers, `history` by file with the number of rows.

    `open`: files without a footer that were written to a moment ago; `left`: where the id still stood
    afterwards, or may stand, since another process was making that file.
    """

    run_id: str
    lines: dict[Path, frozenset[int]] = field(default_factory=dict)
    history: dict[Path, int] = field(default_factory=dict)
    evidence: list[Path] = field(default_factory=list)
    verdict: Path | None = None
    events: list[EventLine] = field(default_factory=list)
    open: list[Path] = field(default_factory=list)
    left: list[Path] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether no record tells of the run."""
        return not (self.lines or self.history or self.verdict)


def traces(records: Path, run_id: str) -> Traces:
    """Return what the records below a folder, and what lies beside it, hold of a run; nothing is changed.

    Raises:
        ConfigError: there are no records in that folder, or history cannot be read for want of the extra `gate`.
    """
    if not records.is_dir():
        raise ConfigError(f"there are no records in {records}; name their folder with --records DIR")
    found = Traces(run_id)
    history, files = sorted_out([records])
    ids: set[str] = set()
    for path in files:
        _look_into(path, found, ids)
    if history:
        _look_into_history(history, found, ids)
    places = (failures_folder(records) / safe_name(one) for one in sorted(ids))
    found.evidence = [place for place in places if place.is_dir()]
    found.verdict = _verdict_of(records.parent / _VERDICT, run_id)
    return found


def erase(records: Path, found: Traces) -> None:
    """Erase what was found, and look whether the id stands anywhere below the records or beside them afterwards.

    Raises:
        RecordError: a file cannot be written; what was erased before it stays erased, a second call goes on.
    """
    try:
        for path, numbers in found.lines.items():
            _without_lines(path, numbers)
        for path in found.history:
            _without_rows(path, found.run_id)
        for place in found.evidence:
            shutil.rmtree(place)
        if found.verdict is not None:
            found.verdict.unlink()
    except OSError as failure:
        raise RecordError(f"{failure.filename} cannot be changed: {failure.strerror}; what it held stays") from None
    again, unsure = traces(records, found.run_id), drop_abandoned(records)
    found.left = list(dict.fromkeys([*again.lines, *again.history, *_mentions(records, found.run_id), *unsure]))


def _look_into(path: Path, found: Traces, ids: set[str]) -> None:
    numbers: set[int] = set()
    for part, first, last in _parts(path):
        if part.file.run_id == found.run_id:
            numbers.update(range(first, last))
            if part.file.footer is None and time.time() - path.stat().st_mtime < STILL_WRITTEN:
                found.open.append(path)
        for number, line in [*part.rows, *part.started]:
            if line.run_id == found.run_id:
                numbers.add(number)
            if number in numbers:
                if isinstance(line, AttemptLine | Started):
                    ids.add(line.id)
                else:
                    found.events.append(line)
    if numbers:
        found.lines[path] = frozenset(numbers)


def _parts(path: Path) -> Iterator[tuple[Part, int, int]]:
    """Yield what each writer left in a file, with the numbers of its first line and of the one after its last."""
    lines = list(scan(path))
    parts = list(by_writer(path, lines))
    begins = [one.number for one in lines if one.begins]
    # A part ends where the next header begins; what comes before the first header is one of its own.
    starts = [1, *begins[len(begins) - len(parts) + 1 :]] if len(parts) > 1 else [1]
    ends = [*starts[1:], (lines[-1].number if lines else 0) + 1]
    yield from zip(parts, starts, ends, strict=True)


def _without_lines(path: Path, numbers: frozenset[int]) -> None:
    new = draft_of(path)
    try:
        with opened(path) as old, _writable(new, packed=path.suffix == ".gz") as stream:
            kept = _copied(old, stream, numbers)
        shutil.copymode(path, new)
        if kept:
            new.replace(path)
        else:
            path.unlink()
    finally:
        new.unlink(missing_ok=True)


def _copied(old: IO[bytes], new: IO[bytes], numbers: frozenset[int]) -> int:
    """Copy the other lines, as far as they can be unpacked, and return how many are not empty."""
    kept = 0
    with suppress(EOFError, zlib.error, gzip.BadGzipFile):
        for number, raw in enumerate(old, 1):
            if number not in numbers:
                kept += bool(raw.strip())
                new.write(raw)
    return kept


def _writable(path: Path, *, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "wb")) if packed else path.open("wb")


_OF_RUN = "part IN (SELECT part FROM read_parquet($file) WHERE kind = 'part' AND writer.run_id = $run)"
_IDS = f"SELECT id FROM read_parquet($file) WHERE kind = 'attempt' AND {_OF_RUN}"
_EVENTS = f"SELECT ts, name, data FROM read_parquet($file) WHERE kind = 'event' AND {_OF_RUN} ORDER BY part, line"
_COUNT = f"SELECT count(*), count(*) FILTER ({_OF_RUN}) FROM read_parquet($file)"
_KEPT = f"""
COPY (SELECT * FROM read_parquet($file) WHERE NOT {_OF_RUN}
    ORDER BY CASE kind WHEN 'part' THEN 1 WHEN 'event' THEN 2 ELSE 3 END, part, line)
TO $new (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{packed.MARK}: '{packed.VERSION}'}})
"""


def _look_into_history(history: Sequence[Path], found: Traces, ids: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="captcha-qa-") as folder, connect(Path(folder), "512MB") as connection:
        for path in history:
            packed.check(connection, path)
            asked = {"file": literal(path), "run": found.run_id}
            rows = connection.execute(_COUNT, asked).fetchall()[0][1]
            if rows:
                found.history[path] = rows
                ids.update(row[0] for row in connection.execute(_IDS, asked).fetchall())
                for ts, name, data in connection.execute(_EVENTS, asked).fetchall():
                    found.events.append(EventLine(ts=ts, name=name, run_id=found.run_id, data=json.loads(data)))


def _without_rows(path: Path, run_id: str) -> None:
    new = draft_of(path)
    asked = {"file": literal(path), "run": run_id}
    try:
        with tempfile.TemporaryDirectory(prefix="captcha-qa-") as folder, connect(Path(folder), "512MB") as connection:
            everything, gone = connection.execute(_COUNT, asked).fetchall()[0]
            if everything == gone:
                path.unlink()
                return
            write(connection, _KEPT, {**asked, "new": str(new)})
        shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _verdict_of(path: Path, run_id: str) -> Path | None:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return path if isinstance(said, dict) and said.get("run_id") == run_id else None


def _mentions(records: Path, run_id: str) -> Iterator[Path]:
    """Yield the files below the records and of evidence in which the id still stands; a short one only as a run's."""
    said = re.escape(json.dumps(run_id, ensure_ascii=False).encode())
    pattern = re.compile(re.escape(run_id.encode()) if len(run_id) > _SHORT else rb'"run_id":\s*' + said)
    for folder in (records, failures_folder(records)):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and pattern.search(path.read_bytes()):
                yield path
