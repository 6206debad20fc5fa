"""The exact reader beside DuckDB: what `records.reading` makes of lines, as tables of sound ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Header, Line, Started
from pytest_captcha_qa.records.lines import to_json
from pytest_captcha_qa.records.reading import Scanned, add_scanned
from pytest_captcha_qa.records.runs import RunFile, lost_of

PARTS, ATTEMPTS, EVENTS = "parts", "attempts", "events"
TABLES = (PARTS, ATTEMPTS, EVENTS)


@dataclass(slots=True)
class Part:
    """What one writer left in a file: the lines that were read exactly, with their numbers."""

    file: RunFile
    rows: list[tuple[int, AttemptLine | EventLine]] = field(default_factory=list)
    started: list[tuple[int, Started]] = field(default_factory=list)

    def add(self, one: Scanned) -> None:
        """Take a line in."""
        add_scanned(self.file, one)
        match one.line:
            case AttemptLine() | EventLine():
                self.rows.append((one.number, one.line))
            case Started():
                self.started.append((one.number, one.line))

    @property
    def lost(self) -> Iterator[tuple[int, AttemptLine]]:
        """The attempts that were started and not recorded, each with the number of its line."""
        known = {attempt.id for attempt in self.file.attempts}
        for number, started in self.started:
            if started.id not in known:
                yield number, lost_of(started, self.file.header)


def by_writer(path: Path, lines: Iterable[Scanned]) -> Iterator[Part]:
    """Yield what each writer left: one part, or one per header where files were joined."""
    part = Part(RunFile(path))
    for one in lines:
        if one.begins and part.file != RunFile(path):
            yield part
            part = Part(RunFile(path))
        part.add(one)
    yield part


class Sieve:
    """Writes parts to one file a table in `folder`, a private one; says what was wrong with the rest."""

    def __init__(self, folder: Path) -> None:
        self.damaged = 0
        self.problems: list[str] = []
        self.files = {name: folder / f"{name}.jsonl" for name in TABLES}
        self._streams: dict[str, IO[str]] = {}
        self._parts = 0

    def __enter__(self) -> Sieve:
        self._streams = {name: path.open("w", encoding="utf-8") for name, path in self.files.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams.values():
            stream.close()

    def keep(self, part: Part, number: int, first_row: int | None = None) -> None:
        """Keep a part under a number of its own; `first_row`: where DuckDB keeps its other lines."""
        file = part.file
        self.damaged += file.damaged
        self.problems += [*file.notes, *file.damage]
        self._parts += 1
        self._write(PARTS, {"part": number, "first_row": first_row, "position": self._parts, **_facts(file)})
        for line, one in part.rows:
            table = ATTEMPTS if isinstance(one, AttemptLine) else EVENTS
            self._write(table, {"part": number, "line": line, "recorded": True, **_shown(one)})
        for line, one in part.lost:
            self._write(ATTEMPTS, {"part": number, "line": line, "recorded": False, **_shown_lost(one)})

    def _write(self, table: str, value: Mapping[str, Any]) -> None:
        packed = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        self._streams[table].write(packed + "\n")


def _facts(file: RunFile) -> dict[str, Any]:
    header = file.header
    first: list[Header | Started | AttemptLine] = [*([header] if header else []), *file.started, *file.attempts]
    return {
        "file": str(file.path),
        "run_id": file.run_id,
        "env": first[0].env if first else None,
        "header": header is not None,
        "ts": header.ts if header else None,
        "tool": header.tool if header else None,
        "schema": header.schema if header else None,
        "release": header.release if header else None,
        "time_scale": header.time_scale if header else None,
        "shard": header.shard if header else None,
        "complete": not file.gaps,
        "last_ts": file.footer.ts if file.footer else None,
        "damaged": file.damaged,
    }


def _shown(line: Line) -> dict[str, Any]:
    shown = to_json(line)
    shown.pop("$type")
    return shown


def _shown_lost(line: AttemptLine) -> dict[str, Any]:
    # Its started line need not say the key mode, and a record of an attempt must.
    return _shown(replace(line, key_mode=line.key_mode or KeyMode.LIVE.value)) | {"key_mode": line.key_mode}
