"""The verdict on each form, and the figures behind it, from the attempts of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from pytest_captcha_qa.model.attempt import Expect, Fault, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.token import OWN_SOLVES
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.codes import FAULT_CODES, exit_code_of, fault_of, is_bypass, rank, was_left_open
from pytest_captcha_qa.reporting.wording import counted, one_line

_MEASURED = (VerifyStatus.PASS, VerifyStatus.FAIL)
_RATED = (Purpose.CHECK, Purpose.LOAD)

# What a fault means where no better sentence was recorded.
SENTENCES = {
    Fault.PRODUCT: "the form did not do what was expected",
    Fault.PROVIDER: "the provider did not deliver",
    Fault.INFRASTRUCTURE: "the network or the site could not be reached",
    Fault.SCOPE: "the target is not authorised",
    Fault.CONFIG: "the configuration cannot work",
    Fault.UNDETERMINED: "whose fault it was could not be found out",
}


class FormState(StrEnum):
    """What a run says about a form; the values are those of verdict.json."""

    OK = "ok"
    FAILED = "failed"
    INDETERMINATE = "indeterminate"
    REFUSALS_ONLY = "refusals only"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Pool:
    """Attempts that may be counted together: one captcha type, provider and key mode (R2.5).

    `not_submitted` counts those their tests left open, `measured` those the backend gave a verdict on; `judged` and
    `passed` count the verdicts on positive checks, `waits` are their solves' seconds, sorted.
    """

    type: str
    provider: str
    key_mode: str
    attempts: int
    ok: int
    not_submitted: int
    measured: int
    submits: int
    judged: int
    passed: int
    waits: tuple[float, ...]

    @property
    def pass_rate(self) -> float | None:
        """The share of positive checks the backend confirmed, None without any."""
        return self.passed / self.judged if self.judged else None

    @property
    def wait_median(self) -> float | None:
        """The median wait in seconds, None without a solve."""
        return round(median(self.waits), 3) if self.waits else None

    @property
    def wait_max(self) -> float | None:
        """The longest wait in seconds, None without a solve."""
        return self.waits[-1] if self.waits else None


@dataclass(frozen=True, slots=True)
class FormVerdict:
    """What the run says about one form, why, and from how many attempts.

    `hidden_code`: the exit code of what its tests did not report, 0 if there is nothing; `hidden_bypass`: among it is
    something that had to be refused. `flaky` counts its tests that failed and passed when they were run again.
    `waiver`, expired or not, is the team's; while it is in force the form is `waived`.
    """

    slug: str
    state: FormState
    fault: Fault | None
    hidden_code: int
    hidden_bypass: bool
    reason: str
    measured: bool
    positive: int
    negative: int
    not_submitted: int
    flaky: int
    outcomes: Counter[str]
    submits: int
    pools: tuple[Pool, ...]
    waiver: Waiver | None = None
    waived: bool = False

    @property
    def attempts(self) -> int:
        """All attempts, lost ones and those left open included."""
        return self.positive + self.negative


def is_measured(attempt: AttemptLine) -> bool:
    """Return whether the backend gave a verdict in this attempt."""
    return attempt.verify_status in _MEASURED


def always_counts(attempt: AttemptLine) -> bool:
    """Return whether the attempt counts though its test passed: unauthorised and lost ones do."""
    return attempt.outcome == Result.LOST or fault_of(attempt) is Fault.SCOPE


def judge_form(
    slug: str,
    attempts: Sequence[AttemptLine],
    failed_tests: Collection[str],
    excused: Collection[str] = (),
    flaky: Collection[str] = (),
) -> FormVerdict:
    """Return the verdict on a form from all its attempts.

    An attempt whose test passed is not held against the form, since the test may have expected it, with two exceptions
    that a forgotten assertion must not hide: what had to be refused was accepted, or no good token was ever accepted.
    `excused` tests, such as xfailed ones, hide both. An attempt that its test left open says nothing either way.
    `flaky` tests passed when they were run again; those of the form are counted.
    """
    submitted = [attempt for attempt in attempts if not was_left_open(attempt)]
    silent = _unreported(submitted, excused)
    untold = [a for a in silent if a.nodeid not in failed_tests]
    hidden = _worst(untold)
    against = [a for a in submitted if a.outcome != Result.OK and (_counts(a, failed_tests) or a in silent)]
    worst = _worst(against)
    not_submitted = len(attempts) - len(submitted)
    if worst is not None:
        state, reason = _state_of_worst(submitted, worst), _because(worst, against, len(submitted))
    else:
        state, reason = _state(submitted, not_submitted)
    expected = Counter(attempt.expect for attempt in attempts)
    return FormVerdict(
        slug=slug,
        state=state,
        fault=fault_of(worst) if worst else None,
        hidden_code=exit_code_of(hidden) if hidden else 0,
        hidden_bypass=any(map(is_bypass, untold)),
        reason=reason,
        measured=any(is_measured(attempt) for attempt in attempts),
        positive=len(attempts) - expected[Expect.REFUSE],
        negative=expected[Expect.REFUSE],
        not_submitted=not_submitted,
        flaky=len({attempt.nodeid for attempt in attempts}.intersection(flaky)),
        outcomes=Counter(str(attempt.outcome) for attempt in attempts),
        submits=sum(attempt.submits for attempt in attempts),
        pools=pools(attempts),
    )


def sentence_of(attempt: AttemptLine) -> str:
    """Return what went wrong in an attempt, as it was recorded or else as its fault says."""
    fault = fault_of(attempt) or Fault.UNDETERMINED
    return one_line((attempt.error or {}).get("message") or SENTENCES[fault])


def pools(attempts: Iterable[AttemptLine]) -> tuple[Pool, ...]:
    """Return the figures of the attempts, never mixing types, providers or key modes; lost ones have none."""
    grouped: dict[tuple[str, str, str], list[AttemptLine]] = {}
    for attempt in attempts:
        if attempt.outcome != Result.LOST:
            key = (attempt.captcha, attempt.provider, attempt.key_mode)
            grouped.setdefault(key, []).append(attempt)
    return tuple(_pool(key, group) for key, group in sorted(grouped.items()))


def _pool(key: tuple[str, str, str], group: Sequence[AttemptLine]) -> Pool:
    rated = [a for a in group if a.expect == Expect.ACCEPT and a.purpose in _RATED]
    statuses = Counter(attempt.verify_status for attempt in rated)
    return Pool(
        *key,
        attempts=len(group),
        ok=sum(attempt.outcome == Result.OK for attempt in group),
        not_submitted=sum(map(was_left_open, group)),
        measured=sum(map(is_measured, group)),
        submits=sum(attempt.submits for attempt in group),
        judged=statuses[VerifyStatus.PASS] + statuses[VerifyStatus.FAIL],
        passed=statuses[VerifyStatus.PASS],
        waits=tuple(sorted(a.wait for a in rated if a.wait is not None and a.source in OWN_SOLVES)),
    )


def _unreported(submitted: Sequence[AttemptLine], excused: Collection[str]) -> list[AttemptLine]:
    """Return the attempts that no passed test may hide; of a test that was rerun its last execution counts."""
    last: dict[str | None, int] = {}
    for attempt in submitted:
        last[attempt.nodeid] = max(attempt.attempt, last.get(attempt.nodeid, attempt.attempt))
    final = [a for a in submitted if a.attempt == last[a.nodeid] and a.nodeid not in excused and a.outcome != Result.OK]
    never_accepted = not any(a.expect == Expect.ACCEPT and a.outcome == Result.OK for a in submitted)
    return [attempt for attempt in final if (attempt.expect == Expect.ACCEPT and never_accepted) or is_bypass(attempt)]


def _counts(attempt: AttemptLine, failed_tests: Collection[str]) -> bool:
    return always_counts(attempt) or attempt.nodeid is None or attempt.nodeid in failed_tests


def _worst(against: Sequence[AttemptLine]) -> AttemptLine | None:
    """Return the attempt that says most; among those that say as much, one with the most frequent reason."""
    often = Counter(map(sentence_of, against))
    return min(against, key=lambda attempt: (*_weight(attempt), -often[sentence_of(attempt)]), default=None)


def _weight(attempt: AttemptLine) -> tuple[bool, int]:
    """Order attempts by how much they say: a broken product first, then by the strength of their code."""
    fault = fault_of(attempt) or Fault.UNDETERMINED
    return (fault is not Fault.PRODUCT, rank(FAULT_CODES[fault]))


def _state(submitted: Sequence[AttemptLine], not_submitted: int) -> tuple[FormState, str]:
    """Return the verdict where nothing is held against the form."""
    if not any(map(is_measured, submitted)):
        return FormState.NOT_MEASURED, _why_not_measured(submitted, not_submitted)
    met = [attempt for attempt in submitted if attempt.outcome == Result.OK]
    if any(attempt.expect == Expect.ACCEPT for attempt in met):
        besides = f"; {not_submitted} not submitted" if not_submitted else ""
        return FormState.OK, f"{len(met)} of {counted(len(submitted), 'attempt')} went as expected{besides}"
    if met and all(attempt.expect == Expect.REFUSE for attempt in submitted):
        return (
            FormState.REFUSALS_ONLY,
            "nothing shows yet that it accepts a good token; a form that refuses everything looks the same",
        )
    which = "attempt with a good token" if met else "attempt"
    return FormState.INDETERMINATE, f"its tests passed, but no {which} met its expectation"


def _why_not_measured(submitted: Sequence[AttemptLine], not_submitted: int) -> str:
    if submitted:
        return "no attempt reached a verdict of the backend"
    if not_submitted:
        return f"not submitted ({counted(not_submitted, 'attempt')} only opened the page or obtained a token)"
    return "no attempt was made"


def _state_of_worst(submitted: Sequence[AttemptLine], worst: AttemptLine) -> FormState:
    if fault_of(worst) is Fault.PRODUCT:
        return FormState.FAILED
    return FormState.INDETERMINATE if any(map(is_measured, submitted)) else FormState.NOT_MEASURED


def _because(worst: AttemptLine, against: Sequence[AttemptLine], submitted: int) -> str:
    said = sentence_of(worst)
    alike = sum(sentence_of(attempt) == said for attempt in against)
    others = len(against) - alike
    more = f", and {others} more for {'another reason' if others == 1 else 'other reasons'}" if others else ""
    return f"{said} ({alike} of {counted(submitted, 'attempt')}{more})"
