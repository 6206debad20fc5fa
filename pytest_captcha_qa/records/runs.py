"""A run as its files tell it: attempts with the lost ones, events, and why it is incomplete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pytest_captcha_qa.engine.events import CREATED, RELEASE_CHANGED
from pytest_captcha_qa.model.attempt import Expect, Fault, Result, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line, Started

# The names of events, for those who read records and nothing that runs.
CHANGED, MADE = RELEASE_CHANGED, CREATED
LOST = {"code": "lost", "message": "the attempt was started but never recorded: its worker ended in between"}


@dataclass(slots=True)
class RunFile:
    """What one writer left: the lines of a file from a header to the next one or the end.

    `damaged` counts lines that could not be read, `damage` names the first twenty (`file:line: why`); `notes`
    says what was read with reservations; `counted`: attempts that the reader has counted and not kept here.
    """

    path: Path
    header: Header | None = None
    started: list[Started] = field(default_factory=list)
    attempts: list[AttemptLine] = field(default_factory=list)
    events: list[EventLine] = field(default_factory=list)
    footer: Footer | None = None
    damaged: int = 0
    damage: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counted: int = 0

    @property
    def recorded(self) -> int:
        """How many attempts the writer has recorded."""
        return len(self.attempts) + self.counted

    @property
    def run_id(self) -> str:
        """The run the file belongs to; the file's name where no line says it."""
        lines: list[Line] = [
            *([self.header] if self.header else []),
            *self.started,
            *self.attempts,
            *self.events,
        ]
        return lines[0].run_id if lines else self.path.stem

    def is_of(self, run_id: str, shard: str | None) -> bool:
        """Return whether the file belongs to that shard of that run; one without a header to neither or both."""
        return self.run_id == run_id and (self.header is None or self.header.shard == shard)

    @property
    def gaps(self) -> list[str]:
        """Why the file is not the whole story, in sentences; empty for a complete one."""
        said = [f"{self.path}: {why}" for why in self._shortfalls()]
        if self.damaged:
            said.append(f"{self.path}: {self.damaged} damaged lines, the first at {self.damage[0]}")
        return said

    def _shortfalls(self) -> Iterator[str]:
        if self.header is None:
            yield "no header"
        if self.footer is None:
            yield "no footer: its writer ended early"
        elif not self.footer.complete:
            yield "closed as incomplete"
        elif self.footer.attempts != self.recorded:
            yield f"its footer counts {self.footer.attempts} attempts, {self.recorded} can be read"


@dataclass(frozen=True)
class Run:
    """All files of one run, those of its xdist workers and shards included.

    `attempts` are in the order of their time and hold the lost ones, made up from their `started` line.
    """

    run_id: str
    files: tuple[RunFile, ...]

    @cached_property
    def attempts(self) -> tuple[AttemptLine, ...]:
        """Every attempt of the run, each once."""
        return tuple(sorted((attempt for _, attempt in self._told), key=lambda attempt: attempt.ts))

    @cached_property
    def originals(self) -> tuple[RunFile, ...]:
        """The files without copies: those that hold attempts and none that another file does not hold as well."""
        told = {place for place, _ in self._told}
        return tuple(f for i, f in enumerate(self.files) if i in told or not (f.attempts or f.started))

    @cached_property
    def _told(self) -> tuple[tuple[int, AttemptLine], ...]:
        """Each attempt with the place of the file that tells it.

        One that was recorded goes before one that was only started; then comes the file with most attempts, a
        complete one, the first one.
        """
        order = sorted(range(len(self.files)), key=lambda i: (-self.files[i].recorded, bool(self.files[i].gaps), i))
        found: dict[str, tuple[int, AttemptLine]] = {}
        for i in order:
            for attempt in self.files[i].attempts:
                found.setdefault(attempt.id, (i, attempt))
        for i in order:
            for started in self.files[i].started:
                if started.id not in found:
                    found[started.id] = (i, lost_of(started, self.files[i].header))
        return tuple(found.values())

    @cached_property
    def events(self) -> tuple[EventLine, ...]:
        """Every event of the run, by time."""
        return tuple(sorted((e for file in self.originals for e in file.events), key=lambda event: event.ts))

    @property
    def lost(self) -> tuple[AttemptLine, ...]:
        """The attempts that were started and never recorded."""
        return tuple(attempt for attempt in self.attempts if attempt.outcome == Result.LOST)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Why the run is incomplete, in sentences."""
        return tuple(gap for file in self.originals for gap in file.gaps)

    @property
    def complete(self) -> bool:
        """Whether every file has its footer, all its attempts and no damaged line."""
        return bool(self.files) and not self.gaps

    @property
    def damaged(self) -> int:
        """How many lines could not be read."""
        return sum(file.damaged for file in self.originals)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read with reservations."""
        return tuple(note for file in self.files for note in file.notes)

    @property
    def headers(self) -> tuple[Header, ...]:
        """The headers that could be read."""
        return tuple(file.header for file in self.originals if file.header is not None)

    @property
    def time_scale(self) -> float:
        """By what the waits are scaled: 1 for real ones; the smallest where files differ."""
        return min((header.time_scale for header in self.headers), default=1.0)

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments under test, each once."""
        return _once([h.env for h in self.headers] + [a.env for a in self.attempts])

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases seen under test, each once, the one a process found at its end included."""
        found = [event.data.get("to") for event in self.events if event.name == CHANGED]
        seen = [h.release for h in self.headers] + [a.release for a in self.attempts]
        return _once([*seen, *(release for release in found if isinstance(release, str))])

    @property
    def key_modes(self) -> tuple[str, ...]:
        """The key modes of the attempts, each once."""
        return _once([a.key_mode for a in self.attempts])


def lost_of(started: Started, header: Header | None) -> AttemptLine:
    """Return what stands for an attempt that was started and never recorded."""
    return AttemptLine(
        ts=started.ts,
        id=started.id,
        slug=started.slug,
        captcha=started.captcha,
        task_id=None,
        wait=None,
        verify_status=VerifyStatus.SKIPPED.value,
        env=started.env,
        release=header.release if header else None,
        run_id=started.run_id,
        project=started.project,
        account=started.account or "",
        provider="",
        key_mode=started.key_mode or "",
        purpose=started.purpose,
        expect=started.expect or Expect.ACCEPT.value,
        outcome=Result.LOST.value,
        fault=Fault.INFRASTRUCTURE.value,
        error=LOST,
        source=None,
        generation=None,
        submits=0,
        polls=0,
        seconds={},
        token_prefix=None,
        http_status=None,
        variant=None,
        attempt=1,
        worker=started.worker,
        worker_version="",
        nodeid=started.nodeid,
    )


def _once(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
