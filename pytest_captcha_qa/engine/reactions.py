"""What to do about an error of one solve: pure decisions over the tables of R3.3."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_captcha_qa.engine.ports import ThreadsInfo
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ProviderBusy,
    ProviderDown,
    ProviderError,
    ProviderNotRunning,
    ProviderUnavailable,
    TaskSilent,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.policy import RetryPolicy, pause_asked

# Three tries over more than ten seconds: a shorter blip costs no attempt.
SUBMIT_FAULTS = RetryPolicy(tries=3, first=3.5, ceiling=30.0)
BUSY = RetryPolicy(first=5.0, ceiling=30.0)  # as long as the deadline lasts
TASKS_PER_KEY = 2  # a task that was unsolvable or got lost is made once more
# Seconds of empty answers after which a task is given up: CapSkip answers so shortly after a submit, but also for an
# unknown task and for one whose token was read before, which would go on for ever.
SILENCE = 60.0


@dataclass(slots=True)
class SubmitTries:
    """Counts what went wrong before a task was accepted and says how to go on.

    `scale` shortens the pauses for a sandbox whose solve times are scaled.
    """

    scale: float = 1.0
    faults: int = 0
    busy: int = 0
    idle: int = 0

    def is_busy(self, threads: ThreadsInfo | None) -> bool:
        """Return whether a zero balance may only mean that all threads are in use (CaptchaAI uses one code for both).

        One may have become free since the refusal; refused twice while some are free means that there is no balance.
        """
        if threads is None or threads.threads <= 0:
            return False
        self.idle = 0 if threads.working >= threads.threads else self.idle + 1
        return self.idle < 2

    def pause_after(self, error: CaptchaQAError) -> float | None:
        """Return the seconds to wait before the next submit, or None if there must not be one."""
        match error:
            case ProviderDown() | ProviderNotRunning():
                return None
            case ProviderBusy():
                self.busy += 1
                return self._pause(BUSY, self.busy, error)
            case ProviderUnavailable():
                self.faults += 1
                return self._pause(SUBMIT_FAULTS, self.faults, error) if self.faults < SUBMIT_FAULTS.tries else None
            case _:
                return None

    def _pause(self, policy: RetryPolicy, failures: int, error: CaptchaQAError) -> float:
        # A service that asks for less than that, or for nothing, would get one submit after the other.
        return max(pause_asked(error.retry_after), policy.pause(failures) * self.scale)


@dataclass(slots=True)
class PollTries:
    """Counts what went wrong since a poll was last answered and says how to go on.

    `interval`: seconds between two polls; `silence`: seconds for which the service has said nothing about the task.
    """

    interval: float
    scale: float = 1.0
    faults: int = 0
    silence: float = 0.0
    _silent_since: float | None = None

    def heard(self) -> float:
        """Return the seconds until the next poll after an answer."""
        self.faults, self.silence, self._silent_since = 0, 0.0, None
        return self.interval

    def pause_after(self, error: CaptchaQAError, now: float) -> float | None:
        """Return the seconds until the next poll, None if the task was silent for too long; `now` in seconds."""
        if isinstance(error, TaskSilent):
            if self._silent_since is None:
                self._silent_since = now
            self.faults, self.silence = 0, now - self._silent_since
            return self.interval if self.silence < SILENCE * self.scale else None
        self.faults += 1
        return max(pause_asked(error.retry_after), poll_pause(self.interval, self.faults))


def may_have_made_a_task(error: CaptchaQAError) -> bool:
    """Return whether a submit that failed with this may have been accepted, so that it counts."""
    return isinstance(error, ProviderUnavailable) and error.sent


def ends_task(error: CaptchaQAError) -> bool:
    """Return whether an accepted task is over; everything else leaves it to be resumed, for it may be paid."""
    return isinstance(error, ProviderError) and not isinstance(error, ProviderUnavailable | ProviderBusy | TaskSilent)


def may_make_another_task(error: CaptchaQAError, failed_before: int) -> bool:
    """Return whether a new task may replace one that failed after it was accepted."""
    return isinstance(error, Unsolvable | TaskUnknown) and failed_before + 1 < TASKS_PER_KEY


def poll_pause(interval: float, faults: int) -> float:
    """Return the seconds until the next poll: the interval, doubled with each further fault up to eight times."""
    return float(interval * min(8, 2 ** max(0, faults - 1)))
