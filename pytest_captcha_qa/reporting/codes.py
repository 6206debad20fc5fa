"""Exit codes: their order, their meaning, and which one an attempt's fault leads to (contracts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_captcha_qa.errors import all_errors
from pytest_captcha_qa.model.attempt import Expect, Fault, Result, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine

STRONGEST_FIRST = (3, 4, 2, 15, 14, 1, 10, 13, 12, 16, 11, 5, 0)

MEANINGS: Mapping[int, str] = {
    0: "no failure was found",
    1: "a form is broken or a test failed",
    2: "interrupted",
    3: "an internal error ended the run",
    4: "the configuration or the command line cannot work",
    5: "no test was collected",
    10: "the gate is breached",
    11: "not enough data",
    12: "no verdict on the product",
    13: "budget or balance is exhausted",
    14: "the verification can be bypassed",
    15: "a target is not authorised",
    16: "the baseline is missing or incompatible",
}

FAULT_CODES: Mapping[Fault, int] = {
    Fault.PRODUCT: 1,
    Fault.PROVIDER: 12,
    Fault.INFRASTRUCTURE: 12,
    Fault.SCOPE: 15,
    Fault.CONFIG: 4,
    Fault.UNDETERMINED: 12,
}

# Faults that another try of the same test, a moment later, does not change.
HOPELESS = frozenset({Fault.PROVIDER, Fault.INFRASTRUCTURE, Fault.SCOPE, Fault.CONFIG})

# Codes an error may claim against its fault: a budget is configuration, a balance the provider's; both: 13.
_CLAIMED_BY_ERRORS = frozenset({4, 13, 15})
_OURS = range(10, 17)


def rank(code: int) -> int:
    """Return the place of a code, the strongest first; one we do not know is another plugin's and wins."""
    return STRONGEST_FIRST.index(code) if code in STRONGEST_FIRST else -1


def strongest(codes: Iterable[int]) -> int:
    """Return the code that decides, 0 where there is none."""
    return min(codes, key=rank, default=0)


def meaning(code: int) -> str:
    """Return what the code says, in words."""
    return MEANINGS.get(code, "set by another plugin")


def plain(code: int) -> int:
    """Return the code in pytest's own range: ours become 1, never 0."""
    return 1 if code in _OURS else code


def was_left_open(attempt: AttemptLine) -> bool:
    """Return whether its test ended without submitting it: it opened the page or obtained a token, and no more."""
    nothing_said = attempt.outcome == Result.INDETERMINATE and attempt.verify_status == VerifyStatus.SKIPPED
    return nothing_said and attempt.fault is None and attempt.error is None


def is_bypass(attempt: AttemptLine) -> bool:
    """Return whether what had to be refused was accepted."""
    return attempt.expect == Expect.REFUSE and attempt.outcome == Result.FAILED


def fault_of(attempt: AttemptLine) -> Fault | None:
    """Return whose fault an attempt is, None when it met its expectation or was not submitted.

    An accepted submit that had to be refused is the product's, unless the record says otherwise.
    """
    if attempt.outcome == Result.OK or was_left_open(attempt):
        return None
    if attempt.fault is not None:
        return Fault(attempt.fault)
    return Fault.PRODUCT if is_bypass(attempt) else Fault.UNDETERMINED


def exit_code_of(attempt: AttemptLine) -> int:
    """Return the exit code one attempt stands for, 0 when it is nobody's fault."""
    fault = fault_of(attempt)
    if fault is None:
        return 0
    if attempt.outcome == Result.LOST:
        return 12
    error = all_errors().get((attempt.error or {}).get("code", ""))
    claimed = error.exit_code if error is not None else 0
    return claimed if claimed in _CLAIMED_BY_ERRORS else FAULT_CODES[fault]
