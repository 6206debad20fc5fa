"""A failed attempt in at most twelve lines: what failed, whose fault it is, and what to run again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote as _quoted

from pytest_captcha_qa.model.attempt import Expect, Result, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.failures import read_kept
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.advice import advice
from pytest_captcha_qa.reporting.blaming import settled
from pytest_captcha_qa.reporting.codes import fault_of
from pytest_captcha_qa.reporting.evidence import evidence_by_attempt
from pytest_captcha_qa.reporting.forms import sentence_of
from pytest_captcha_qa.reporting.numbers import NOTHING
from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.reporting.wording import one_line

MOST_LINES = 12
MOST_RUNS = 10
# Longer sentences quote pages; the record has them whole.
_LONGEST_LINE = 400
_OF_THE_SUITE = re.compile(r"(?:.*/)?pytest_captcha_qa/suites/(\w+)\.py(::.*)", re.DOTALL)

# Steps of a record in the order in which an attempt goes through them, each with its phase in words.
_PHASES: Mapping[str, str] = {
    "page": "open the form",
    "blocked": "obtain the token",
    "rate": "submit the form",
    "submit": "submit the form",
    "verify": "verify",
    "confirm": "confirm the effect",
}
_BEFORE_ALL = "start"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt and what its record does not say.

    `owner`: the team that answers for the form; `tokens_tried` and `control` as the outcome has them, None where they
    are not known any more; `evidence`: the folder with what was sent and answered; `last_pass`: the form's last good
    attempt in an earlier run.
    """

    attempt: AttemptLine
    owner: str | None = None
    tokens_tried: int | None = None
    control: str | None = None
    evidence: Path | None = None
    last_pass: AttemptLine | None = None


@dataclass(frozen=True, slots=True)
class PastRun:
    """What one run said about one form; `ok` counts the good tokens it accepted."""

    run_id: str
    ts: str
    release: str | None
    ok: int
    failed: int

    @property
    def word(self) -> str:
        """`failed` if any attempt was held against anybody, else `ok`."""
        return "failed" if self.failed else "ok"


def failures_of(
    runs: Sequence[Run], slug: str, *, owners: Mapping[tuple[str, str], str] | None = None
) -> list[Failure]:
    """Return every failed attempt on a form, the newest last; `owners` by environment and form."""
    passes = _passes(runs, slug)
    found = [
        _failure(attempt, evidence.get(attempt.id), passes, owners or {})
        for run, evidence in ((run, evidence_by_attempt(run)) for run in runs)
        for attempt in settled(run.attempts)
        if attempt.slug == slug and fault_of(attempt) is not None
    ]
    return sorted(found, key=lambda failure: failure.attempt.ts)


def _failure(
    attempt: AttemptLine, folder: Path | None, passes: Sequence[AttemptLine], owners: Mapping[tuple[str, str], str]
) -> Failure:
    kept = read_kept(folder) if folder is not None else None
    earlier = (p for p in passes if p.env == attempt.env and p.run_id != attempt.run_id and p.ts < attempt.ts)
    return Failure(
        attempt=attempt,
        owner=owners.get((attempt.env, attempt.slug)),
        tokens_tried=kept.tokens_tried if kept else None,
        control=kept.control if kept else None,
        evidence=folder,
        last_pass=next(earlier, None),
    )


def explained(failure: Failure, root: Path) -> list[str]:
    """Return the lines about one failed attempt, names on the left; paths are relative to `root`."""
    rows = list(_rows(failure, root))
    width = max(len(name) for name, _ in rows)
    return [_line(name, text, width) for name, text in rows]


def as_json(failure: Failure, root: Path) -> dict[str, object]:
    """Return the same for a script."""
    attempt = failure.attempt
    fault = fault_of(attempt)
    return {
        "id": attempt.id,
        "run_id": attempt.run_id,
        "ts": attempt.ts,
        "form": attempt.slug,
        "type": attempt.captcha,
        "environment": attempt.env,
        "release": attempt.release,
        "owner": failure.owner,
        "phase": phase_of(attempt),
        "outcome": attempt.outcome,
        "fault": str(fault) if fault else None,
        "why": sentence_of(attempt),
        "tokens_tried": failure.tokens_tried,
        "http_status": attempt.http_status,
        "task_id": attempt.task_id,
        "last_pass": _pass_json(failure.last_pass),
        "control": failure.control,
        "evidence": relative(failure.evidence, root) if failure.evidence else None,
        "next": advice(attempt),
        "rerun": rerun_command(attempt),
    }


def phase_of(attempt: AttemptLine) -> str:
    """Return the phase in which an attempt ended: the last one that took any time."""
    reached = [phase for step, phase in _PHASES.items() if step in attempt.seconds]
    return reached[-1] if reached else _BEFORE_ALL


def rerun_command(attempt: AttemptLine) -> str | None:
    """Return the command that runs the attempt's test again, None if no test made it."""
    if attempt.nodeid is None:
        return None
    return f"pytest --captcha-env={_quoted(attempt.env)} {_arguments(attempt.nodeid)}"


def _arguments(nodeid: str) -> str:
    """Return what names a test to pytest; the built-in suite lies where packages do, on no path of a team's."""
    if nodeid.startswith("::"):  # of --pyargs, pytest itself forgets the module
        return f"--captcha-suite -k {_quoted(nodeid.removeprefix('::'))}"
    suite = _OF_THE_SUITE.fullmatch(nodeid)
    return f"--pyargs {_quoted(f'pytest_captcha_qa.suites.{suite[1]}{suite[2]}')}" if suite else _quoted(nodeid)


def is_pass(attempt: AttemptLine) -> bool:
    """Return whether the backend confirmed a good token."""
    accepted = attempt.expect == Expect.ACCEPT and attempt.verify_status == VerifyStatus.PASS
    return accepted and attempt.outcome == Result.OK


def last_passes(runs: Iterable[Run], env: str, *, but: str) -> dict[str, AttemptLine]:
    """Return the last good attempt of each form in an environment, of no run `but`."""
    passes = [attempt for attempt in _passes(runs) if attempt.env == env and attempt.run_id != but]
    return {attempt.slug: attempt for attempt in reversed(passes)}


def _passes(runs: Iterable[Run], slug: str | None = None) -> list[AttemptLine]:
    """Return the good attempts, on one form or all, the newest first."""
    attempts = (attempt for run in runs for attempt in run.attempts if slug is None or attempt.slug == slug)
    return sorted(filter(is_pass, attempts), key=lambda attempt: attempt.ts, reverse=True)


def history(runs: Iterable[Run], slug: str) -> list[PastRun]:
    """Return what the last ten runs said about a form, the newest first; runs that judged nothing are left out."""
    past = [_past(run.run_id, [a for a in settled(run.attempts) if a.slug == slug]) for run in runs]
    judged = sorted((run for run in past if run.ok or run.failed), key=lambda run: run.ts, reverse=True)
    return judged[:MOST_RUNS]


def history_line(past: Sequence[PastRun]) -> str:
    """Return that history in one line."""
    said = ", ".join(f"{run.word} {run.run_id}" + (f" ({run.release})" if run.release else "") for run in past)
    return one_line(f"history, newest first: {said or 'no run has judged it'}")


def _past(run_id: str, attempts: Sequence[AttemptLine]) -> PastRun:
    last = max(attempts, key=lambda attempt: attempt.ts, default=None)
    return PastRun(
        run_id=run_id,
        ts=last.ts if last else "",
        release=last.release if last else None,
        ok=sum(map(is_pass, attempts)),
        failed=sum(fault_of(attempt) is not None for attempt in attempts),
    )


def _rows(failure: Failure, root: Path) -> Iterator[tuple[str, str]]:
    attempt = failure.attempt
    name = f"{attempt.slug}:{attempt.variant}" if attempt.variant else attempt.slug
    yield "form", f"{name} ({attempt.captcha}), environment {attempt.env}"
    yield "when", _when(attempt)
    yield "owner", failure.owner or "not configured"
    yield "phase", phase_of(attempt)
    yield "fault", f"{fault_of(attempt) or attempt.outcome}: {sentence_of(attempt)}"
    yield "tokens tried", _tokens(failure)
    yield "HTTP status", NOTHING if attempt.http_status is None else str(attempt.http_status)
    yield "last pass", _pass(failure.last_pass)
    yield "control", failure.control or NOTHING
    yield "evidence", f"{relative(failure.evidence, root)}/" if failure.evidence else "none was kept"
    yield "next", advice(attempt)
    yield "run again", rerun_command(attempt) or "no test made this attempt"


def _tokens(failure: Failure) -> str:
    if failure.attempt.expect == Expect.REFUSE:
        return "no fresh one: a refusal was expected"
    return NOTHING if failure.tokens_tried is None else str(failure.tokens_tried)


def _pass(attempt: AttemptLine | None) -> str:
    if attempt is None:
        return "none in the earlier records"
    return _when(attempt)


def _when(attempt: AttemptLine) -> str:
    return f"release {attempt.release or 'unknown'}, {attempt.ts} (run {attempt.run_id})"


def _pass_json(attempt: AttemptLine | None) -> dict[str, str | None] | None:
    if attempt is None:
        return None
    return {"run_id": attempt.run_id, "release": attempt.release, "ts": attempt.ts}


def _line(name: str, text: str, width: int) -> str:
    shown = one_line(text)
    return f"{name:<{width}}  {shown if len(shown) <= _LONGEST_LINE else shown[: _LONGEST_LINE - 1] + '…'}"
