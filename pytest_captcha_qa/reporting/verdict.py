"""What a run comes to: the exit code with all its reasons, the verdict per form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.codes import (
    MEANINGS,
    exit_code_of,
    meaning,
    plain,
    rank,
    strongest,
)
from pytest_captcha_qa.reporting.forms import (
    FormState,
    FormVerdict,
    always_counts,
    judge_form,
    sentence_of,
)
from pytest_captcha_qa.reporting.wording import counted, one_line, plural

Mode = Literal["extended", "pytest"]

WEAK_EVIDENCE = "weak_evidence"  # the event's name, as engine.events has it


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for an exit code: a test report (with its node id), a breached gate, a probe.

    `failed` is False for a test that is shown as skipped, as an outage may be.
    """

    code: int
    what: str
    nodeid: str | None = None
    failed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What pytest, or a command, knows at the end of a run.

    `causes` has one entry per failed test report; `captcha_tests` counts the selected ones.
    `stopped_by_failures` says that pytest's 2 came from -x or --maxfail, not from a user or from collection.
    `tests_failed` is pytest's own count: if it is higher than the failed reports among the causes, another
    plugin failed the run. `excused` tests were expected to fail. `prices` are per 1000 submits by account.
    """

    pytest_exit: int
    causes: Sequence[Cause] = ()
    selected_forms: Sequence[str] = ()
    captcha_tests: int = 0
    environment: str | None = None
    mode: Mode = "extended"
    stopped_by_failures: bool = False
    tests_failed: int | None = None
    excused: Collection[str] = ()
    prices: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodeReasons:
    """One exit code and what led to it, each sentence with how often."""

    code: int
    reasons: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        """The meaning of the code and its most frequent reason."""
        first, times = self.reasons[0]
        often = f" ({times} times)" if times > 1 else ""
        more = _more_reasons(len(self.reasons) - 1)
        return f"{meaning(self.code)}: {first}{often}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of a run. `exit` is for the process, `codes` are all that apply, the strongest first.

    `weak_evidence` maps each origin whose proof is weak to the solves a day a real account gets there, None if unknown.
    """

    exit: int
    codes: tuple[CodeReasons, ...]
    mode: Mode
    environment: str | None
    captcha_tests: int
    forms: tuple[FormVerdict, ...]
    measured: int
    selected: int
    submits: int
    price: float | None
    run_id: str | None = None
    releases: tuple[str, ...] = ()
    key_modes: tuple[str, ...] = ()
    time_scale: float = 1.0
    complete: bool | None = None
    lost: int = 0
    damaged: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    weak_evidence: Mapping[str, int | None] = field(default_factory=dict)
    records: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The exit code in words."""
        if self.codes:
            extended = self.codes[0].code
            number = f"exit {self.exit}" if extended == self.exit else f"exit {self.exit} (extended {extended})"
            return f"{number}: {self.codes[0]}"
        return f"exit {self.exit}: {self._success()}"

    def _success(self) -> str:
        if self.captcha_tests == 0:
            return f"{MEANINGS[0]}; no captcha test was selected"
        if self.environment is None:
            return f"{MEANINGS[0]}; captcha tests were skipped, no environment was chosen"
        return "; ".join([MEANINGS[0], *self._counts()])

    def _counts(self) -> Iterator[str]:
        states = Counter(form.state for form in self.forms)
        refusing = states[FormState.REFUSALS_ONLY]
        if refusing < len(self.forms) or not self.forms:
            yield f"{states[FormState.OK]} of {counted(len(self.forms), 'form')} ok"
        if refusing:
            accept = "it accepts" if refusing == 1 else "they accept"
            yield f"{counted(refusing, 'form')} saw only refusals, so nothing shows yet that {accept} a good token"


def decide(session: Session, run: Run | None) -> Verdict:
    """Return the verdict on a run from the causes that tests gave and the records they left.

    The records' footers must be written by then: a run without one is incomplete and never green.
    """
    attempts = run.attempts if run else ()
    forms = _judge_forms(session, attempts)
    codes = _by_code(_found(session, run, forms))
    decided = strongest(reasons.code for reasons in codes)
    selected = set(session.selected_forms)
    return Verdict(
        exit=plain(decided) if session.mode == "pytest" else decided,
        codes=codes,
        mode=session.mode,
        environment=session.environment,
        captcha_tests=session.captcha_tests,
        forms=forms,
        measured=sum(form.measured for form in forms if form.slug in selected),
        selected=len(selected),
        submits=sum(attempt.submits for attempt in attempts),
        price=_price(attempts, session.prices),
        **_about(run),
    )


def _more_reasons(count: int) -> str:
    return f" and {count} more {plural(count, 'reason')}" if count else ""


def _found(session: Session, run: Run | None, forms: Sequence[FormVerdict]) -> Iterator[Cause]:
    yield from (cause for cause in session.causes if cause.code != 0)
    yield from _of_pytest(session)
    if run is not None:
        yield from _of_records(session, run)
    yield from _unreported(session, forms)
    unmeasured = not any(form.measured or form.state is FormState.FAILED for form in forms)
    if session.environment is not None and session.captcha_tests > 0 and unmeasured:
        yield Cause(11, f"no form was measured by {counted(session.captcha_tests, 'selected captcha test')}")


def _unreported(session: Session, forms: Sequence[FormVerdict]) -> Iterator[Cause]:
    """Yield what a form has against it that no failed test has told."""
    told = {cause.code for cause in session.causes}
    for form in forms:
        if form.hidden_code and form.hidden_code not in told:
            yield Cause(form.hidden_code, f"form {form.slug!r}: {form.reason}, and no test has failed of it")


def _of_pytest(session: Session) -> Iterator[Cause]:
    reported = sum(cause.failed and cause.nodeid is not None for cause in session.causes)
    replaced = session.pytest_exit in (0, 1) or (session.pytest_exit == 2 and session.stopped_by_failures)
    if not replaced:
        yield Cause(session.pytest_exit, f"pytest ended with {session.pytest_exit}")
    elif session.pytest_exit != 0 and reported == 0:
        yield Cause(1, f"pytest ended with {session.pytest_exit} and no captcha fault explains it")
    elif session.tests_failed is not None and session.tests_failed > reported:
        yield Cause(1, "a failure that no test report explains, perhaps of another plugin")


def _of_records(session: Session, run: Run) -> Iterator[Cause]:
    told = {(cause.nodeid, cause.code) for cause in session.causes}
    for attempt in run.attempts:
        code = exit_code_of(attempt)
        if always_counts(attempt) and (attempt.nodeid, code) not in told:
            yield Cause(code, sentence_of(attempt), attempt.nodeid)
    yield from (Cause(12, f"the records are incomplete: {gap}") for gap in run.gaps)


def _by_code(causes: Iterable[Cause]) -> tuple[CodeReasons, ...]:
    grouped: dict[int, Counter[str]] = {}
    for cause in causes:
        grouped.setdefault(cause.code, Counter())[one_line(cause.what)] += 1
    codes = sorted(grouped, key=rank)
    return tuple(CodeReasons(code, tuple(grouped[code].most_common())) for code in codes)


def _judge_forms(session: Session, attempts: Sequence[AttemptLine]) -> tuple[FormVerdict, ...]:
    failed_tests = {cause.nodeid for cause in session.causes if cause.nodeid is not None and cause.code != 0}
    by_form: dict[str, list[AttemptLine]] = {slug: [] for slug in session.selected_forms}
    for attempt in attempts:
        by_form.setdefault(attempt.slug, []).append(attempt)
    return tuple(judge_form(slug, group, failed_tests, session.excused) for slug, group in sorted(by_form.items()))


def _about(run: Run | None) -> dict[str, Any]:
    if run is None:
        return {}
    return {
        "run_id": run.run_id,
        "releases": run.releases,
        "key_modes": run.key_modes,
        "time_scale": run.time_scale,
        "complete": run.complete,
        "lost": len(run.lost),
        "damaged": run.damaged,
        "events": Counter(event.name for event in run.events),
        "weak_evidence": _weak_evidence(run),
        "records": tuple(dict.fromkeys(file.path for file in run.files)),
        "notes": run.notes,
    }


def _weak_evidence(run: Run) -> dict[str, int | None]:
    told = [event.data for event in run.events if event.name == WEAK_EVIDENCE]
    return {str(data.get("origin", "an unnamed origin")): data.get("most_solves_a_day") for data in told}


def _price(attempts: Iterable[AttemptLine], prices: Mapping[str, float]) -> float | None:
    submits: Counter[str] = Counter()
    for attempt in attempts:
        submits[attempt.account] += attempt.submits
    paid = {account: count for account, count in submits.items() if count}
    if not prices or not paid.keys() <= prices.keys():
        return None
    return round(sum(prices[account] * count / 1000 for account, count in paid.items()), 4)
