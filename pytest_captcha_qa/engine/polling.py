"""From an accepted task to its token: ask, wait, and never lose what is paid for."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.breaker import Breaker
from pytest_captcha_qa.engine.ports import Clock, Provider
from pytest_captcha_qa.engine.reactions import PollTries
from pytest_captcha_qa.engine.store import Ready, StateStore
from pytest_captcha_qa.engine.task import Keeper, Task
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    KeyRejected,
    ProviderBusy,
    ProviderDown,
    ProviderUnavailable,
    RateLimited,
    TaskSilent,
    TaskUnknown,
)
from pytest_captcha_qa.model.token import Solution

# A task that is being polled is paid for: these say nothing about it, so it is asked for again (R3.2).
_FAULTS = (ProviderUnavailable, ProviderBusy, BalanceExhausted, TaskSilent)


@dataclass(frozen=True)
class Poller:
    """Polls tasks until their tokens are stored; `breaker` knows whether the service gives out results at all."""

    provider: Provider
    store: StateStore
    admission: Admission
    breaker: Breaker
    keeper: Keeper
    clock: Clock

    def token(self, task: Task, *, first: float) -> Ready:
        """Return the stored token of a task; the first poll is after so many seconds.

        Raises:
            TaskUnknown, Unsolvable, RequestRejected, ProviderError: what ended the task.
            ProviderUnavailable, ProviderBusy, BalanceExhausted, KeyRejected: the service gives out no results for now;
                the task stays in the store with its id, so who comes later resumes it.
            DeadlineExceeded, Stopped: so it does here.
        """
        tries = PollTries(self.provider.polling(task.challenge).interval, self.admission.scale)
        pause = first
        while True:
            self.keeper.wait(task, pause)
            while self.admission.polls_are_held:
                self.keeper.wait(task, tries.interval)
            asked = self.clock.monotonic()
            try:
                solution = self._ask(task)
            except _FAULTS as error:
                pause = self._pause_after(tries, error, task)
            except KeyRejected as error:
                self.keeper.tell_hold(error, self.admission.pause(error))
                raise
            else:
                if solution is not None:
                    return self._keep(task, solution)
                task.not_ready, pause = asked, tries.heard()
            self.keeper.keep_in_time(task)

    def _ask(self, task: Task) -> Solution | None:
        call = task.deadline.part(task.lease.times.http, what="a poll of the provider")
        try:
            with self.breaker.call():
                task.tally.polls += 1
                return self.provider.poll(task.challenge, task.known_id, call)
        except CaptchaQAError as error:
            error.task_id = task.id
            raise

    def _pause_after(self, tries: PollTries, error: CaptchaQAError, task: Task) -> float:
        """Return the seconds until the next poll, or raise what makes it senseless."""
        pause = tries.pause_after(error, self.clock.monotonic())
        if pause is None:
            # Nothing was heard of the task for so long that it was read before, or never was.
            said = f"{error.message}, for {tries.silence:.0f} s; the task is given up"
            raise TaskUnknown(said, task_id=task.id) from None
        if isinstance(error, RateLimited):
            self.admission.hold_polls(pause)
            self.keeper.tell_hold(error, pause)
        down = isinstance(error, ProviderDown) or (isinstance(error, ProviderUnavailable) and self.breaker.is_out)
        if down or pause >= task.deadline.remaining():
            raise error
        return pause

    def _keep(self, task: Task, solution: Solution) -> Ready:
        now, tally = self.clock.monotonic(), task.tally
        tally.solve, tally.detect = task.not_ready - task.accepted, now - task.not_ready
        if solution.price is not None:
            tally.price = (tally.price or 0.0) + solution.price
        timed = solution.timed(task_id=task.known_id, wait=now - task.accepted)
        return self.keeper.written(task, lambda: self.store.solved(task.lease, timed, age_bound=tally.detect))
