"""From files to tables: DuckDB takes what it can prove to be sound, the exact reader takes the rest."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.record import SCHEMA_VERSION, AttemptLine
from pytest_captcha_qa.records.reading import (
    ENDINGS,
    LINE_LIMIT,
    Scanned,
    add_scanned,
    find,
    numbered,
    opened,
    scan,
    scan_line,
)
from pytest_captcha_qa.records.runs import RunFile
from pytest_captcha_qa.reporting.dataset import columns
from pytest_captcha_qa.reporting.dataset.database import literal, reader
from pytest_captcha_qa.reporting.dataset.packed import ENDING
from pytest_captcha_qa.reporting.dataset.sieve import ATTEMPTS, EVENTS, PARTS, Part, Sieve, by_writer
from pytest_captcha_qa.reporting.dataset.staging import Rest, Staged, rest, stage

if TYPE_CHECKING:
    import duckdb

_ROUGH = 1_000_000_000  # numbers of parts that DuckDB did not read itself


@dataclass(frozen=True, slots=True)
class Source:
    """A record file: where it is, and where its lines can be read as they are."""

    path: Path
    plain: Path


def sorted_out(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files of history and those of lines that are meant by files, folders and patterns.

    Raises:
        ConfigError: a file or folder that was named does not exist.
    """
    files = find(sources, (*ENDINGS, ENDING))
    return [path for path in files if path.suffix == ENDING], [path for path in files if path.suffix != ENDING]


def plain_sources(paths: Iterable[Path], folder: Path) -> list[Source]:
    """Return the files with their lines unpacked into `folder`, ended by newlines only.

    A damaged one stays packed, its reader names it.
    """
    return [Source(path, _unpacked(path, folder / f"{number}.jsonl")) for number, path in enumerate(paths)]


def _unpacked(path: Path, place: Path) -> Path:
    if path.suffix != ".gz" and not os.access(path, os.R_OK):
        raise ConfigError(f"the record file {path} cannot be read: permission is denied")
    try:
        if path.suffix != ".gz" and not _ends_as_windows_does(path):
            return path
        with opened(path) as stream, place.open("wb") as plain:
            if path.suffix == ".gz":
                shutil.copyfileobj(stream, plain, 1 << 20)
            else:
                plain.writelines(raw[:-2] + b"\n" if raw.endswith(b"\r\n") else raw for raw in stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        place.write_bytes(b"")
    except OSError as failure:
        raise ConfigError(f"the record file {path} cannot be read: {failure.strerror or failure}") from None
    return place


def _ends_as_windows_does(path: Path) -> bool:
    """Return whether the first line of a file ends in a carriage return and a newline."""
    with path.open("rb") as stream:
        return stream.readline(LINE_LIMIT).endswith(b"\r\n")


def load(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], sieve: Sieve, *, wide: bool) -> list[Staged]:
    """Make the tables `staged`, `parts`, `odd_lines` and `event_lines`; return what DuckDB took.

    Raises:
        ConfigError: a file cannot be read.
    """
    staged = _staged(connection, [source.plain for source in sources], wide=wide)
    rough = _ROUGH
    lines = rest(connection, staged)
    pieces: dict[int, list[Staged]] = {}
    for one in staged:
        pieces.setdefault(one.index, []).append(one)
    with sieve:
        for index, source in enumerate(sources):
            parts = _taken(source, pieces[index], lines)
            for found, part in zip(pieces[index], parts or (), strict=bool(parts)):
                if part.file != RunFile(source.path) or len(pieces[index]) == 1:
                    sieve.keep(part, found.part, found.first_row)
            if parts is None:
                for part in by_writer(source.path, scan(source.path)):
                    sieve.keep(part, rough)
                    rough += 1
    for table, (name, read) in _TABLES.items():
        connection.execute(f"CREATE TABLE {table} AS {reader(read)}", {"files": [literal(sieve.files[name])]})
    return staged


def _staged(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, wide: bool) -> list[Staged]:
    """Return what DuckDB took; nothing of any file where one of them is more than it can read."""
    import duckdb

    try:
        return stage(connection, files, wide=wide)
    except (duckdb.Error, OSError):
        stage(connection, (), wide=wide)
        return [Staged(index, index, False, 0, 0, 0, (), (), False) for index in range(len(files))]


_FIELDS = {name: column.sql for name, column in columns.ATTEMPT.items()}
_ODD = {**columns.PLACE, **_FIELDS, "recorded": "BOOLEAN"}
_TABLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "parts": (PARTS, columns.PART),
    "odd_lines": (ATTEMPTS, _ODD),
    "event_lines": (EVENTS, {**columns.PLACE, **columns.EVENT}),
}


def _taken(source: Source, pieces: Sequence[Staged], lines: Mapping[int, Sequence[Rest]]) -> list[Part] | None:
    """Return the parts of a file that DuckDB has read; None if the exact reader has to read all of it.

    That is so for a file of an older schema and one with lines that are not read as they stand.
    """
    torn = source.plain != source.path and not source.plain.stat().st_size
    if torn or not all(found.whole for found in pieces):
        return None
    scanned = [list(_scanned(found, lines.get(found.part, ()))) for found in pieces]
    if any(one.begins and (one.damage or one.version < SCHEMA_VERSION) for part in scanned for one in part):
        return None
    wanted: set[int] = set()
    for found, part in zip(pieces, scanned, strict=True):
        wanted |= {*found.lost, *(() if any(one.begins for one in part) else found.told)}
    told = dict(numbered(source.plain, wanted)) if wanted else {}
    return [_part(source, found, part, told) for found, part in zip(pieces, scanned, strict=True)]


def _part(source: Source, found: Staged, scanned: Sequence[Scanned], told: Mapping[int, bytes]) -> Part:
    """Return a part of the lines that DuckDB did not take and of those that it took and that are `told` once more."""
    again = [scan_line(number, told[number]) for number in {*found.lost, *found.told} if number in told]
    kept = sum(isinstance(one.line, AttemptLine) for one in again)
    part = Part(RunFile(source.path, counted=found.attempts - kept))
    lost = frozenset(found.lost)
    for one in sorted([*scanned, *again], key=lambda one: one.number):
        if one.number in told and one.number not in lost:
            add_scanned(part.file, one)
        else:
            part.add(one)
    return part


def _scanned(found: Staged, lines: Iterable[Rest]) -> Iterator[Scanned]:
    version = SCHEMA_VERSION
    for line in lines:
        raw = line.raw.encode()
        if not raw.strip():
            continue
        ended = found.ended or line.number < found.lines
        one = scan_line(line.number, raw + (b"\n" if ended else b""), version)
        version = one.version
        yield one
