"""What to do about an error of one solve: pure decisions over the tables of R3.3."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.policy import RetryPolicy

SUBMIT_FAULTS = RetryPolicy(tries=3, first=1.0, ceiling=30.0)
BUSY = RetryPolicy(first=5.0, ceiling=30.0)  # as long as the deadline lasts
TASKS_PER_KEY = 2  # a task that was unsolvable or got lost is made once more


@dataclass(slots=True)
class SubmitTries:
    """Counts what went wrong before a task was accepted and says how to go on.

    `scale` shortens the pauses for a sandbox whose solve times are scaled.
    """

    scale: float = 1.0
    faults: int = 0
    busy: int = 0

    def pause_after(self, error: CaptchaQAError) -> float | None:
        """Return the seconds to wait before the next submit, or None if there must not be one."""
        match error:
            case ProviderBusy():
                self.busy += 1
                return self._pause(BUSY, self.busy, error)
            case ProviderUnavailable():
                self.faults += 1
                return self._pause(SUBMIT_FAULTS, self.faults, error) if self.faults < SUBMIT_FAULTS.tries else None
            case _:
                return None

    def _pause(self, policy: RetryPolicy, failures: int, error: CaptchaQAError) -> float:
        # A pause of 0 is no answer: it would send one submit after the other until the deadline.
        return error.retry_after or policy.pause(failures) * self.scale


def may_have_made_a_task(error: CaptchaQAError) -> bool:
    """Return whether a submit that failed with this may have been accepted, so that it counts."""
    return isinstance(error, ProviderUnavailable) and error.sent


def ends_task(error: CaptchaQAError) -> bool:
    """Return whether an accepted task is over; everything else leaves it to be resumed, for it may be paid."""
    return isinstance(error, ProviderError) and not isinstance(error, ProviderUnavailable | ProviderBusy)


def may_make_another_task(error: CaptchaQAError, failed_before: int) -> bool:
    """Return whether a new task may replace one that failed after it was accepted."""
    return isinstance(error, Unsolvable | TaskUnknown) and failed_before + 1 < TASKS_PER_KEY


def poll_pause(interval: float, faults: int) -> float:
    """Return the seconds until the next poll: the interval, doubled per fault in a row up to eight times."""
    return float(interval * min(8, 2**faults))
