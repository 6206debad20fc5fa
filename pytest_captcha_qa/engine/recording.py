"""The lines of one attempt: what is said of it before anything is sent, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_captcha_qa.engine.extending import Extensions
from pytest_captcha_qa.engine.obtaining import Held
from pytest_captcha_qa.engine.ports import RecordSink
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import CaptchaQAError, PageError, TargetUnavailable, VerifierError
from pytest_captcha_qa.model.attempt import (
    AttemptRequest,
    Expect,
    Fault,
    KeyMode,
    Outcome,
    Result,
    Verdict,
    VerifyStatus,
)
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.record import AttemptLine, Started
from pytest_captcha_qa.model.redact import token_prefix
from pytest_captcha_qa.model.token import TOKEN, Solution

_STEPS = ("blocked", "queue", "solve", "detect", "page", "rate", "submit", "verify", "confirm")


@dataclass(frozen=True)
class About:
    """What every record of a run says: where, for whom, by whom.

    `account` is what the configuration calls it, `account_id` the same for all who use its key.
    """

    env: str
    run_id: str
    account: str
    account_id: str
    provider: str
    key_mode: KeyMode
    boundary: str
    worker_version: str
    release: str | None = None
    project: str = "default"
    worker: str | None = None


@dataclass(frozen=True)
class Ended:
    """What is known of an attempt at its end.

    `held`: the token that was in its hand and is recorded here; `seconds` by step.
    """

    outcome: Outcome
    error: BaseException | None
    held: Held | None
    tally: Tally
    seconds: Mapping[str, float]


def started_line(about: About, request: AttemptRequest, form: FormSpec, *, id: str, ts: str) -> Started:
    """Return the line that is written before anything is sent."""
    return Started(
        ts=ts,
        id=id,
        slug=form.slug,
        captcha=form.type,
        env=about.env,
        run_id=about.run_id,
        purpose=request.purpose,
        nodeid=request.nodeid,
        worker=about.worker,
        project=about.project,
        account=about.account,
        key_mode=about.key_mode,
    )


def attempt_line(
    about: About, request: AttemptRequest, form: FormSpec, ended: Ended, *, id: str, ts: str
) -> AttemptLine:
    """Return the line that says what became of the attempt."""
    outcome, held, tally = ended.outcome, ended.held, ended.tally
    solution = held.ready.solution if held else None
    return AttemptLine(
        ts=ts,
        id=id,
        slug=form.slug,
        captcha=form.type,
        task_id=(solution.task_id if solution else None) or tally.task_id,
        wait=solution.wait if solution else None,
        verify_status=outcome.verdict.status,
        env=about.env,
        release=about.release,
        run_id=about.run_id,
        project=about.project,
        account=about.account,
        provider=about.provider,
        key_mode=about.key_mode,
        purpose=request.purpose,
        expect=outcome.expect,
        outcome=outcome.result,
        fault=outcome.fault,
        error=_error_field(ended.error, outcome),
        source=held.source if held else None,
        generation=held.ready.generation if held else None,
        submits=tally.submits,
        polls=tally.polls,
        seconds=ended.seconds,
        token_prefix=_prefix_of(solution),
        http_status=outcome.http_status,
        variant=form.variant,
        attempt=request.attempt,
        worker=about.worker,
        worker_version=about.worker_version,
        nodeid=request.nodeid,
        price=tally.price,
    )


def write_extended(line: AttemptLine, extensions: Extensions, records: RecordSink) -> AttemptLine:
    """Write the line with what extensions add to it and return it so; without it, if an interrupt ends them."""
    try:
        line = replace(line, extra=extensions.extra(line))
    finally:
        records.write(line)
    return line


def seconds_by_step(steps: Mapping[str, float], tally: Tally) -> dict[str, float]:
    """Return the seconds of each step in the order of the records; the solve's parts come from its tally."""
    known = {**steps, "queue": tally.queue, "solve": tally.solve, "detect": tally.detect}
    return {name: known[name] for name in _STEPS if name in known}


def outcome_of(error: BaseException | None, expect: Expect, *, tokens: int = 0) -> Outcome:
    """Return the outcome of an attempt that an error, or its caller, ended before a verdict.

    `tokens`: how many fresh ones may have reached the site.
    """
    if error is None:
        verdict = Verdict(VerifyStatus.SKIPPED, "the attempt ended before anything was submitted")
        return Outcome(Result.INDETERMINATE, verdict, expect)
    fault = Fault(error.fault) if isinstance(error, CaptchaQAError) else Fault.UNDETERMINED
    code = error.code if isinstance(error, CaptchaQAError) else type(error).__name__
    reason = error.message if isinstance(error, CaptchaQAError) else f"interrupted by {code}"
    result = Result.FAILED if fault is Fault.PRODUCT else Result.INDETERMINATE
    status = VerifyStatus.ERROR if isinstance(error, VerifierError) else VerifyStatus.SKIPPED
    answered = error.status if isinstance(error, TargetUnavailable | PageError) else None
    return Outcome(result, Verdict(status, reason, answered), expect, fault, code, answered, tokens_tried=tokens)


def _prefix_of(solution: Solution | None) -> str | None:
    text = solution.parts.get(TOKEN, "") if solution is not None else ""
    return token_prefix(text) or None


def _error_field(error: BaseException | None, outcome: Outcome) -> Mapping[str, str] | None:
    if outcome.ok or (error is None and outcome.fault is None):
        return None
    return {"code": outcome.error or "verdict", "message": outcome.verdict.reason}
