"""What the gate is asked about: a run, or all runs of a release, of one environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.gate.results import RECORDS, GateResult, RuleResult, Status
from pytest_captcha_qa.reporting.wording import counted, some_of

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.figures import Rows


# More than machines of a team differ by, time zones that were taken for UTC included.
_SKEW = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question: an environment and a run, or a release; neither: its newest run.

    `selected` maps the forms that were to be measured to their captcha types, None: those in the records. `since`
    leaves out what an earlier run of the same id has recorded. `baseline` is a release, `previous`, or what the files
    are called that are open as `baseline_records`; `baseline_fault` says in a sentence why they cannot be had.
    """

    env: str
    run_id: str | None = None
    release: str | None = None
    since: datetime | None = None
    selected: Mapping[str, str] | None = None
    baseline: str | None = None
    baseline_records: Rows | None = field(default=None, repr=False)
    baseline_fault: str | None = None
    waivers: tuple[Waiver, ...] = ()
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def latest(self) -> datetime:
        """What is later than this was not recorded by a clock that is right."""
        return self.now + _SKEW

    @property
    def today(self) -> date:
        """The day in UTC."""
        return self.now.astimezone(UTC).date()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: `where` (SQL over `attempts`, `positive` and `events`) with its `parameters`.

    `incomplete` runs ended early, during the `changed` ones the release changed; `notes` say what was left aside.
    """

    env: str
    release: str | None
    runs: tuple[str, ...]
    label: str
    where: str
    parameters: tuple[object, ...]
    incomplete: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def nothing_recorded(asked: Asked) -> GateResult:
    """Return the answer where the records have nothing of what was asked."""
    what = f"run {asked.run_id}" if asked.run_id else f"release {asked.release}" if asked.release else "any run"
    said = f"the records hold nothing of {what} in environment {asked.env!r}"
    return GateResult(asked.env, what, asked.release, (), (RuleResult(RECORDS, Status.NOT_ENOUGH_DATA, said),))


def find_subject(dataset: Rows, asked: Asked) -> Subject | None:
    """Return what is judged, None where the records have nothing of it.

    The newest run is none of the future, as long as there is another: one wrong clock must not hide all that follows.
    """
    condition, parameters = "env = ?", [asked.env]
    if asked.run_id is not None:
        condition, parameters = f"{condition} AND run_id = ?", [*parameters, asked.run_id]
    elif asked.release is not None:
        condition, parameters = f"{condition} AND release = ?", [*parameters, asked.release]
    newest = "" if asked.release is not None else " LIMIT 1"
    found = dataset.rows(
        "SELECT run_id, release, complete, release_changed FROM runs "
        f"WHERE {condition} ORDER BY coalesce(started_at > ?, false), started_at DESC NULLS LAST, run_id DESC{newest}",
        [*parameters, asked.latest],
    )
    if not found:
        return None
    runs = [
        RunSeen(str(run), str(release) if release is not None else None, bool(whole), bool(changed))
        for run, release, whole, changed in found
    ]
    return _subject(asked, runs)


class RunSeen(NamedTuple):
    """What the view `runs` says of one of them."""

    run_id: str
    release: str | None
    complete: bool
    changed: bool


def _subject(asked: Asked, found: Sequence[RunSeen]) -> Subject:
    """Return what is judged of these runs, the newest first.

    Of several runs those are left out during which the release changed, and one that ended early is old news once a
    later one is complete.
    """
    steady = [run for run in found if not run.changed]
    runs = steady or found
    ended_early = list(takewhile(lambda run: not run.complete, runs))
    where, parameters = _narrowed(asked, [run.run_id for run in runs])
    release = asked.release or runs[0].release
    told = f"release {asked.release} ({counted(len(runs), 'run')})" if asked.release else f"run {runs[0].run_id}"
    return Subject(
        env=asked.env,
        release=release,
        runs=tuple(run.run_id for run in runs),
        label=told if asked.release or release is None else f"{told} of release {release}",
        where=where,
        parameters=parameters,
        incomplete=tuple(run.run_id for run in ended_early),
        changed=() if steady else tuple(run.run_id for run in found),
        notes=tuple(_left_aside(found, runs, ended_early)),
    )


def _narrowed(asked: Asked, names: Sequence[str]) -> tuple[str, tuple[object, ...]]:
    where, parameters = "env = ? AND run_id IN (SELECT unnest(?))", (asked.env, [*names])
    return (where, parameters) if asked.since is None else (f"{where} AND ts >= ?", (*parameters, asked.since))


def _left_aside(found: Sequence[RunSeen], runs: Sequence[RunSeen], ended_early: Sequence[RunSeen]) -> Iterator[str]:
    changed = [run.run_id for run in found if run not in runs]
    if changed:
        yield f"left out, since the release changed meanwhile: {counted(len(changed), 'run')} ({some_of(changed)})"
    older = [run.run_id for run in runs if not run.complete and run not in ended_early]
    if older:
        yield f"ended early, and judged by what they recorded: {counted(len(older), 'run')} ({some_of(older)})"
