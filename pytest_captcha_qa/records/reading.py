"""Record files read back as runs: damaged lines are counted and named, and none is fatal."""

from __future__ import annotations

import glob
import gzip
import json
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.record import (
    SCHEMA_VERSION,
    AttemptLine,
    EventLine,
    Footer,
    Header,
    Line,
    Started,
)
from pytest_captcha_qa.records.lines import WrongKind, from_json
from pytest_captcha_qa.records.runs import Run, RunFile
from pytest_captcha_qa.records.upcast import readable, upcast

__all__ = ["Run", "RunFile", "find", "read", "read_file"]

LINE_LIMIT = 1 << 20
NAMED_DAMAGE = 20
ENDINGS = (".jsonl", ".jsonl.gz")


def read(paths: Iterable[Path | str], *, since: str | None = None) -> list[Run]:
    """Return the runs in these files, folders (searched whole) and patterns, each with all its files.

    `since`, a timestamp as in records, leaves out files whose header is older: those of an earlier run of the
    same id.

    Raises:
        ConfigError: a file or folder that was named does not exist or cannot be read.
    """
    runs: dict[str, list[RunFile]] = {}
    for path in find(paths):
        for file in read_file(path):
            if since is None or file.header is None or file.header.ts >= since:
                runs.setdefault(file.run_id, []).append(file)
    return [Run(run_id, tuple(files)) for run_id, files in runs.items()]


def find(paths: Iterable[Path | str], endings: Sequence[str] = ENDINGS) -> list[Path]:
    """Return every record file that is meant, each once; of a folder those whose names have one of the endings.

    Raises:
        ConfigError: a file or folder that was named does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        try:
            meant = _meant(Path(path), endings)
        except OSError as failure:
            raise ConfigError(f"the records {failure.filename or path} cannot be read: {failure.strerror}") from None
        for file in meant:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_file(path: Path) -> list[RunFile]:
    """Return what each writer left in the file: one entry, or one per header where files were joined.

    Raises:
        ConfigError: the file cannot be read.
    """
    files = [RunFile(path)]
    for one in scan(path):
        if one.begins:
            files = _next_writer(files)
        add_scanned(files[-1], one)
    return files


def add_scanned(file: RunFile, one: Scanned) -> None:
    """Add a line to what its writer left."""
    if one.begins:
        _note_newer(file, one.version)
    if one.damage is not None:
        _damaged(file, one.number, one.damage)
    elif one.line is not None:
        _sort_in(file, one.line)


@dataclass(frozen=True, slots=True)
class Scanned:
    """A line of a file: what it says, or why it says nothing; both None for a kind of line we do not know.

    `begins`: it is a header, so that what follows is another writer's; `version` is the schema it is written in.
    """

    number: int
    version: int
    line: Line | None = None
    damage: str | None = None
    begins: bool = False


def scan(path: Path) -> Iterator[Scanned]:
    """Yield the lines of a record file, plain or gzip, in their order; empty ones are left out.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        with opened(path) as stream:
            yield from _scanned(stream)
    except OSError as failure:
        raise ConfigError(f"the record file {path} cannot be read: {failure.strerror or failure}") from None


def opened(path: Path) -> IO[bytes]:
    """Return the bytes of a record file, unpacked where its name ends in `.gz`."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def numbered(path: Path, wanted: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield those lines of a plain file with their numbers, counted from 1; it is not read any further."""
    with path.open("rb") as stream:
        lines = enumerate(islice(stream, max(wanted, default=0)), 1)
        yield from ((number, raw) for number, raw in lines if number in wanted)


def scan_line(number: int, raw: bytes, version: int = SCHEMA_VERSION) -> Scanned:
    """Return what one line of a record file says, in the schema of the header before it."""
    return _scanned_line(number, raw, version)


def _scanned(stream: IO[bytes]) -> Iterator[Scanned]:
    version = SCHEMA_VERSION
    for number, raw in _lines(stream):
        one = _scanned_line(number, raw, version)
        version = one.version
        yield one


def _scanned_line(number: int, raw: bytes | WrongKind, version: int) -> Scanned:
    begins = False
    try:
        value = _parsed(raw)
        if value.get("$type") == Header.type:
            version, begins = _version(value), True
        line = from_json(upcast(value, version))
    except ValueError as why:
        return Scanned(number, version, damage=str(why), begins=begins)
    return Scanned(number, version, line, begins=begins)


def _meant(path: Path, endings: Sequence[str]) -> list[Path]:
    if path.is_dir():
        return sorted(hit for hit in _below(path) if hit.name.endswith(tuple(endings)) and hit.is_file())
    if path.exists():
        return [path]
    if any(sign in str(path) for sign in "*?["):
        return [Path(hit) for hit in sorted(glob.glob(str(path), recursive=True)) if Path(hit).is_file()]
    raise ConfigError(f"there is no record file or folder {path}; name one, or a pattern like 'reports/records/**'")


def _below(folder: Path) -> Iterator[Path]:
    """Yield what is below a folder; what may not be looked into must not pass for empty, as `rglob` lets it."""

    def refuse(failure: OSError) -> None:
        if not isinstance(failure, FileNotFoundError):
            raise failure

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in names)


def _next_writer(files: list[RunFile]) -> list[RunFile]:
    first = files[-1]
    untouched = first == RunFile(first.path)
    return files if untouched else [*files, RunFile(first.path)]


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | WrongKind]]:
    """Yield number and bytes of each line that is not empty, why it is not a record where that shows before reading."""
    number = 0
    try:
        while raw := stream.readline(LINE_LIMIT):
            number += 1
            too_long = len(raw) == LINE_LIMIT and not raw.endswith(b"\n")
            while len(raw) == LINE_LIMIT and not raw.endswith(b"\n"):
                raw = stream.readline(LINE_LIMIT)
            if too_long or raw.strip():
                yield number, WrongKind("the line is too long for a record") if too_long else raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield number + 1, WrongKind("the compressed data are damaged or cut off here")


def _parsed(raw: bytes | WrongKind) -> dict[str, Any]:
    if isinstance(raw, WrongKind):
        raise raw
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        cut = "" if raw.endswith(b"\n") else ", perhaps cut off"
        raise WrongKind(f"not a line of JSON{cut}") from None
    if not isinstance(value, dict):
        raise WrongKind("not a JSON object")
    return value


def _version(header: dict[str, Any]) -> int:
    version = header.get("schema")
    if not isinstance(version, int) or isinstance(version, bool) or not readable(version):
        raise WrongKind("the header's schema version is unknown")
    return version


def _note_newer(file: RunFile, version: int) -> None:
    if version > SCHEMA_VERSION:
        file.notes.append(
            f"{file.path}: written by a newer tool (schema {version}, ours is {SCHEMA_VERSION});"
            " only what this version knows was read"
        )


def _sort_in(file: RunFile, line: Line) -> None:
    match line:
        case Header():
            file.header = line
        case Started():
            file.started.append(line)
        case AttemptLine():
            file.attempts.append(line)
        case EventLine():
            file.events.append(line)
        case Footer():
            file.footer = line


def _damaged(file: RunFile, number: int, why: str) -> None:
    file.damaged += 1
    if len(file.damage) < NAMED_DAMAGE:
        file.damage.append(f"{file.path}:{number}: {why}")
