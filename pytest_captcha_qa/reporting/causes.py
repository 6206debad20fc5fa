"""Why a run fails: what its test reports, its records, pytest itself and the forms have against it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Literal

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.codes import exit_code_of
from pytest_captcha_qa.reporting.forms import FormState, FormVerdict, always_counts, sentence_of
from pytest_captcha_qa.reporting.gate.results import BREACH, NO_BASELINE, NO_DATA
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.probing import CONCLUSIVE, ProbeFinding, found_by_probes
from pytest_captcha_qa.reporting.waiving import WAIVABLE
from pytest_captcha_qa.reporting.wording import counted

Mode = Literal["extended", "pytest"]

_NO_VERDICT = 12


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for an exit code: a test report (with its node id), a breached gate, a probe.

    `failed` is False for a test that is shown as skipped, as an outage may be. One that is not `waivable` counts
    whatever is waived: the teardown of a test fails of something besides the form.
    """

    code: int
    what: str
    nodeid: str | None = None
    failed: bool = True
    waivable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What pytest, or a command, knows at the end of a run.

    `causes` has one entry per failed test report; `captcha_tests` counts the selected ones.
    `stopped_by_failures` says that pytest's 2 came from -x or --maxfail, not from a user or from collection.
    `tests_failed` is pytest's own count: if it is higher than the failed reports among the causes, another
    plugin failed the run. `excused` tests were expected to fail; `flaky` ones failed and passed when they were run
    again. `prices` are per 1000 submits by account. `waivers` are those of the environment's forms, `day` is today in
    UTC. `budget` is the most submits the run was allowed, `budget_given` says that a person set it. `owners` are the
    teams that answer for the forms. `gate` is what the gate says of the run, None without one.
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
    flaky: Collection[str] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    waivers: Collection[Waiver] = ()
    day: date = field(default_factory=lambda: datetime.now(UTC).date())
    budget: int | None = None
    budget_given: bool = False
    owners: Mapping[str, str | None] = field(default_factory=dict)
    gate: GateAnswer | None = None


def settled_causes(
    causes: Sequence[Cause], recorded: Sequence[AttemptLine], known: Sequence[AttemptLine]
) -> tuple[Cause, ...]:
    """Return the causes; a test that could not tell whose fault it was says now what the whole run shows."""
    turned = {after.nodeid: after for before, after in zip(recorded, known, strict=True) if after is not before}
    return tuple(
        replace(cause, code=exit_code_of(turned[cause.nodeid]), what=sentence_of(turned[cause.nodeid]))
        if cause.code == _NO_VERDICT and cause.nodeid in turned
        else cause
        for cause in causes
    )


def found(
    session: Session,
    run: Run | None,
    forms: Sequence[FormVerdict],
    counting: Sequence[Cause],
    probed: Sequence[ProbeFinding] = (),
) -> Iterator[Cause]:
    """Yield every reason against the run; `counting` are the session's causes that no waiver covers.

    `probed` are what conformance probes found.
    """
    yield from (cause for cause in counting if cause.code != 0)
    yield from _of_pytest(session)
    if session.stopped_by_failures and session.causes and not counting:
        yield Cause(11, "a waived failure has stopped the run before its end (-x or --maxfail)")
    if run is not None:
        yield from _of_records(counting, run)
    yield from _unreported(counting, forms)
    for code, what, nodeid in found_by_probes(probed, ((cause.nodeid, cause.code) for cause in session.causes)):
        yield Cause(code, what, nodeid)
    measured = any(form.measured or form.state is FormState.FAILED for form in forms)
    unmeasured = not measured and not any(finding.verdict in CONCLUSIVE for finding in probed)
    if session.environment is not None and session.captcha_tests > 0 and unmeasured:
        why = f": {probed[0].form!r}, {probed[0].probe}: {probed[0].reason}" if probed else ""
        yield Cause(11, f"no form was measured by {counted(session.captcha_tests, 'selected captcha test')}{why}")
    yield from _of_gate(session.gate)


def _of_gate(answer: GateAnswer | None) -> Iterator[Cause]:
    """Yield what an enforced gate holds against the run; of outages and gaps the run's own records tell."""
    if answer is None or not answer.counts:
        return
    if answer.result is None:
        yield Cause(answer.fault_code, f"the gate could not be judged: {answer.fault}")
        return
    for result in answer.result.rules:
        if result.code in (BREACH, NO_DATA, NO_BASELINE):
            yield Cause(result.code, result.sentence)


def _unreported(causes: Sequence[Cause], forms: Sequence[FormVerdict]) -> Iterator[Cause]:
    """Yield what a form has against it that no failed test has told, unless it is waived."""
    told = {cause.code for cause in causes}
    for form in forms:
        if form.hidden_code and form.hidden_code not in told and not hides_what_is_waived(form):
            yield Cause(form.hidden_code, f"form {form.slug!r}: {form.reason}, and no test has failed of it")


def hides_what_is_waived(form: FormVerdict) -> bool:
    """Return whether what no test has told of the form is waived with the form."""
    return form.waived and form.hidden_code in WAIVABLE and not form.hidden_bypass


def _of_pytest(session: Session) -> Iterator[Cause]:
    reported = sum(cause.failed and cause.nodeid is not None for cause in session.causes)
    replaced = session.pytest_exit in (0, 1) or (session.pytest_exit == 2 and session.stopped_by_failures)
    if not replaced:
        yield Cause(session.pytest_exit, f"pytest ended with {session.pytest_exit}")
    elif session.pytest_exit != 0 and reported == 0:
        yield Cause(1, f"pytest ended with {session.pytest_exit} and no captcha fault explains it")
    elif session.tests_failed is not None and session.tests_failed > reported:
        yield Cause(1, "a failure that no test report explains, perhaps of another plugin")


def _of_records(causes: Sequence[Cause], run: Run) -> Iterator[Cause]:
    told = {(cause.nodeid, cause.code) for cause in causes}
    for attempt in run.attempts:
        code = exit_code_of(attempt)
        if always_counts(attempt) and (attempt.nodeid, code) not in told:
            yield Cause(code, sentence_of(attempt), attempt.nodeid)
    yield from (Cause(12, f"the records are incomplete: {gap}") for gap in run.gaps)
