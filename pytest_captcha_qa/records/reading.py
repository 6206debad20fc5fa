"""Record files read back as runs: damaged lines are counted and named, and none is fatal."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

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


def find(paths: Iterable[Path | str]) -> list[Path]:
    """Return every record file that is meant, each once.

    Raises:
        ConfigError: a file or folder that was named does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for file in _meant(Path(path)):
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_file(path: Path) -> list[RunFile]:
    """Return what each writer left in the file: one entry, or one per header where files were joined.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return _read_stream(path, stream)
    except OSError as failure:
        raise ConfigError(f"the record file {path} cannot be read: {failure.strerror}") from None


def _meant(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob("*.jsonl"))
    if path.exists():
        return [path]
    if any(sign in str(path) for sign in "*?["):
        return [Path(hit) for hit in sorted(glob.glob(str(path), recursive=True)) if Path(hit).is_file()]
    raise ConfigError(f"there is no record file or folder {path}; name one, or a pattern like 'reports/records/**'")


def _read_stream(path: Path, stream: IO[bytes]) -> list[RunFile]:
    files = [RunFile(path)]
    version = SCHEMA_VERSION
    for number, raw in _lines(stream):
        try:
            value = _parsed(raw)
            if value.get("$type") == Header.type:
                version = _version(value)
                files = _next_writer(files)
                _note_newer(files[-1], version)
            line = from_json(upcast(value, version))
        except ValueError as why:
            _damaged(files[-1], number, str(why))
            continue
        if line is not None:
            _sort_in(files[-1], line)
    return files


def _next_writer(files: list[RunFile]) -> list[RunFile]:
    first = files[-1]
    untouched = first == RunFile(first.path)
    return files if untouched else [*files, RunFile(first.path)]


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield number and bytes of each line that is not empty, None for one that is too long to be a record."""
    number = 0
    while raw := stream.readline(LINE_LIMIT):
        number += 1
        too_long = len(raw) == LINE_LIMIT and not raw.endswith(b"\n")
        while len(raw) == LINE_LIMIT and not raw.endswith(b"\n"):
            raw = stream.readline(LINE_LIMIT)
        if too_long or raw.strip():
            yield number, None if too_long else raw


def _parsed(raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        raise WrongKind("the line is too long for a record")
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
