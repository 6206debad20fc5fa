"""From a challenge to a solution: submit under admission, poll, react to what the provider says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.breaker import Breaker
from pytest_captcha_qa.engine.polling import Poller
from pytest_captcha_qa.engine.ports import Clock, GrantSource, Provider, ThreadsInfo
from pytest_captcha_qa.engine.reactions import (
    SubmitTries,
    ends_task,
    may_have_made_a_task,
    may_make_another_task,
)
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import Granted, Ready, Resume, StateStore
from pytest_captcha_qa.engine.task import Keeper, Tally, Task, Told, untold
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    CaptchaQAError,
    ConfigError,
    DeadlineExceeded,
    KeyRejected,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
    Stopped,
    StoreError,
    StoreUnavailable,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.scope import ScopeGrant

_TROUBLE_LASTS = 2.0  # seconds in which others who wait for the same key learn of it instead of trying again
_THREADS_CALL = 3.0  # seconds for a question that the submit does not depend on


@dataclass
class Solver:
    """Turns a challenge into a stored token; the store is told before and after every costly step."""

    provider: Provider
    store: StateStore
    admission: Admission
    clock: Clock
    stop: Stop
    emit: events.Emit = events.silent

    def __post_init__(self) -> None:
        self._submits, self._results = self._breaker("submits"), self._breaker("results")
        self._keeper = Keeper(self.store, self.admission, self.clock, self.stop, self.emit)
        self._poller = Poller(self.provider, self.store, self.admission, self._results, self._keeper, self.clock)

    def _breaker(self, calls: str) -> Breaker:
        admission = self.admission
        return Breaker(f"{admission.account}:{calls}", admission.name, admission.limits, self.clock, admission.scale)

    def solve(
        self,
        challenge: Challenge,
        grants: GrantSource,
        granted: Granted,
        deadline: Deadline,
        tally: Tally,
        lost: Told = untold,
    ) -> Ready:
        """Return the token of a new task; `lost` is told of its error, before the store is, if another may be made.

        Raises:
            ProviderError, BalanceExhausted, KeyRejected, BudgetExhausted, ScopeDenied: what ended it. The key is marked
                failed, and retryable if another task may be made; a task that was accepted and is not at its end stays.
            ConfigError: the provider is polled at times at which no token can be had; nothing was submitted.
            OwnerLost: another owner took the key over.
            DeadlineExceeded, Stopped: the task id stays in the store, so the next caller resumes.
        """
        task = Task(challenge, grants, granted.lease, deadline, tally, granted.tries, lost)
        with self._given_up_on_error(task):
            self._check_polling(task)
            return self._submit_until_accepted(task)

    def resume(
        self,
        challenge: Challenge,
        grants: GrantSource,
        resume: Resume,
        deadline: Deadline,
        tally: Tally,
        lost: Told = untold,
    ) -> Ready:
        """Return the token of a task that was submitted earlier, here or by a worker that is gone."""
        task = Task(challenge, grants, resume.lease, deadline, tally, resume.tries, lost)
        task.resumed(resume, self.clock.monotonic())
        with self._given_up_on_error(task), self.admission.occupied() as task.slot:
            return self._poller.token(task, first=0.0)

    def _check_polling(self, task: Task) -> None:
        """Refuse to pay for a token that could not be used (R1.8); an extension says itself when it is polled."""
        polling = self.provider.polling(task.challenge)
        problems = task.lease.times.polling_problems(polling.first, polling.interval)
        if problems:
            raise ConfigError(f"the provider of account {self.admission.name!r} cannot be used: {'; '.join(problems)}")

    def _submit_until_accepted(self, task: Task) -> Ready:
        tries = SubmitTries(self.admission.scale)
        failure: CaptchaQAError | None = None
        while True:
            with self._admitted(task):
                try:
                    self._submit(task)
                except (ProviderError, BalanceExhausted, KeyRejected) as error:
                    failure, pause = error, self._pause_after(tries, error, task)
                except BudgetExhausted:
                    if failure is None:
                        raise
                    # The tries that failed before have used the budget up: what failed them is what happened.
                    raise failure from None
                else:
                    return self._poller.token(task, first=self.provider.polling(task.challenge).first)
            task.slot = None
            self._keeper.wait(task, pause)

    @contextmanager
    def _admitted(self, task: Task) -> Iterator[None]:
        """Wait until the account may submit, and hold one of its slots for the time of the block."""
        queued = self.clock.monotonic()
        self._results.check()  # a task whose result nobody can read is not paid for

        def keep() -> None:
            self._submits.check()  # slots that are long in coming are no reason to wait for a service that is down
            self._keeper.keep(task)

        self.admission.wait_for_probation(task.challenge, task.grant, task.deadline, keep)
        if not self._submits.is_out:
            self.admission.slots.learn(lambda: self._threads(task))
        with self.admission.slot(task.deadline, keep) as task.slot:
            self._keeper.wait_for_turn(task, self.admission.turn(task.deadline))
            task.tally.queue += self.clock.monotonic() - queued
            yield

    def _submit(self, task: Task) -> None:
        grant = task.grant
        with self._submits.call(), self._counted(task, grant):
            self.store.intend(task.lease)
            call = task.deadline.part(task.lease.times.http, what="the submit to the provider")
            task_id = self.provider.submit(task.challenge, grant, call)
        task.accept(task_id, self.clock.monotonic())
        self._keeper.written(task, lambda: self.store.submitted(task.lease, task_id))

    @contextmanager
    def _counted(self, task: Task, grant: ScopeGrant) -> Iterator[None]:
        """Count a submit before it is sent; take that back where it is certain that no task came of it."""
        counted = self.admission.count_submit(task.challenge, grant)
        task.tally.submits += 1
        try:
            yield
        except CaptchaQAError as error:
            if not may_have_made_a_task(error):
                task.tally.submits -= 1
                self.admission.take_back(counted)
            raise

    def _pause_after(self, tries: SubmitTries, error: CaptchaQAError, task: Task) -> float:
        """Return the seconds until the next submit, or raise what ends the solve."""
        if isinstance(error, BalanceExhausted) and self._is_busy(tries, task):
            error = ProviderBusy("the provider answered 'zero balance' while all threads were in use")
        pause = tries.pause_after(error)
        self._tell_account(error, task, pause)
        if isinstance(error, ProviderUnavailable) and error.sent:
            self.emit(events.Event(events.SUBMIT_UNKNOWN, {"key": task.lease.key[:8], "code": error.code}))
        if pause is None or self._submits.is_out or pause >= task.deadline.remaining():
            raise error
        self.emit(events.Event(events.SOLVE_RETRIED, {"code": error.code, "pause": round(pause, 3)}))
        return pause

    def _tell_account(self, error: CaptchaQAError, task: Task, pause: float | None) -> None:
        """Let all workers of the account know what concerns them too."""
        if isinstance(error, BalanceExhausted | KeyRejected):
            self._keeper.tell_hold(error, self.admission.pause(error))
        if isinstance(error, ProviderBusy) and task.slot is not None:
            if not isinstance(error, RateLimited):
                self.admission.slots.learn(lambda: self._threads(task), anew=True)
            self.admission.slow_down(task.slot, hold=pause if isinstance(error, RateLimited) else None)
            if isinstance(error, RateLimited) and pause is not None:
                self._keeper.tell_hold(error, pause)

    def _is_busy(self, tries: SubmitTries, task: Task) -> bool:
        """Return whether a zero balance may only mean that all threads are in use."""
        try:
            threads = self._threads(task)
        except (ProviderError, KeyRejected, BalanceExhausted):
            return False
        self.admission.slots.learned(threads)
        return tries.is_busy(threads)

    def _threads(self, task: Task) -> ThreadsInfo | None:
        seconds = min(_THREADS_CALL, task.lease.times.http)
        return self.provider.threads(task.deadline.part(seconds, what="threadsinfo"))

    @contextmanager
    def _given_up_on_error(self, task: Task) -> Iterator[None]:
        """Mark the key failed on an error that ends the solve, so that those who wait for it learn why."""
        try:
            yield
        except (StoreError, DeadlineExceeded, Stopped):
            raise
        except CaptchaQAError as error:
            if task.id is None or ends_task(error):
                if may_make_another_task(error, task.tries):
                    task.lost(error)  # first, or a crash after the write leaves a second task that nobody told of
                with suppress(StoreUnavailable):  # the lease lapses by itself; what happened matters more
                    self.store.failed(task.lease, error.code, not_before=_retry_from(error, task.tries))
            raise


def _retry_from(error: CaptchaQAError, failed_before: int) -> float | None:
    """Return the seconds from which on the key may be tried again, or None for never."""
    if may_make_another_task(error, failed_before):
        return 0.0
    if isinstance(error, RequestRejected | Unsolvable | TaskUnknown):
        return None
    return _TROUBLE_LASTS  # the account's or the network's trouble, not this key's
