"""From a challenge to a solution: submit under admission, poll, react to what the provider says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.ports import (
    Clock,
    Granted,
    GrantSource,
    Lease,
    Provider,
    Ready,
    Resume,
    StateStore,
)
from pytest_captcha_qa.engine.reactions import (
    SubmitTries,
    ends_task,
    may_have_made_a_task,
    may_make_another_task,
    poll_pause,
)
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    CaptchaQAError,
    DeadlineExceeded,
    KeyRejected,
    OwnerLost,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    RequestRejected,
    Stopped,
    StoreError,
    StoreUnavailable,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.scope import ScopeGrant

_T = TypeVar("_T")
_DOWN_AFTER = 60.0  # seconds without a usable answer to a poll; a shorter outage costs no attempt
_TROUBLE_LASTS = 2.0  # seconds in which others who wait for the same key learn of it instead of trying again
# A task that is being polled is paid for: these say nothing about it, so it is asked for again (R3.2).
_POLL_FAULTS = (ProviderUnavailable, ProviderBusy, BalanceExhausted)


@dataclass(slots=True)
class Tally:
    """What one attempt cost: submits, polls, and seconds.

    `submits` leaves out those that certainly made no task; `queue`: waiting for a slot; `solve`: until the task
    was last known not to be ready; `detect`: from then until the token was in hand. Together the last two are the
    token's wait.
    """

    submits: int = 0
    polls: int = 0
    queue: float = 0.0
    solve: float = 0.0
    detect: float = 0.0
    task_id: str | None = None


@dataclass(slots=True)
class Task:
    """One challenge on its way: what it is, who may work on it, until when, and what it has cost so far.

    `tries`: failed tries of the key before this one; `slot`: the account's slot it holds. Once the provider has
    accepted it, it has an `id`; `accepted` and `not_ready` (last known not to be) are on the monotonic clock.
    """

    challenge: Challenge
    grants: GrantSource
    lease: Lease
    deadline: Deadline
    tally: Tally
    tries: int = 0
    slot: str | None = None
    id: str | None = None
    accepted: float = 0.0
    not_ready: float = 0.0

    @property
    def grant(self) -> ScopeGrant:
        """A grant for the challenge's page that is fresh now: a solve may wait longer than one lasts."""
        return self.grants.grant(self.challenge.page)

    def resumed(self, resume: Resume, now: float) -> None:
        """Go on with what the store knows of the task."""
        self.id = self.tally.task_id = resume.task_id
        self.accepted, self.not_ready = now - resume.age, now - resume.not_ready_age


@dataclass
class Solver:
    """Turns a challenge into a stored token; the store is told before and after every costly step.

    `scale` shortens pauses for a sandbox whose solve times are scaled.
    """

    provider: Provider
    store: StateStore
    admission: Admission
    clock: Clock
    stop: Stop
    emit: events.Emit = events.silent
    scale: float = 1.0

    def solve(
        self, challenge: Challenge, grants: GrantSource, granted: Granted, deadline: Deadline, tally: Tally
    ) -> Ready:
        """Return the token of a new task.

        Raises:
            ProviderError, BalanceExhausted, KeyRejected, BudgetExhausted, ScopeDenied: what ended it. The key is marked
                failed, and retryable if another task may be made; a task that was accepted and is not at its end stays.
            OwnerLost: another owner took the key over.
            DeadlineExceeded, Stopped: the task id stays in the store, so the next caller resumes.
        """
        task = Task(challenge, grants, granted.lease, deadline, tally, tries=granted.tries)
        with self._given_up_on_error(task):
            return self._submit_until_accepted(task)

    def resume(
        self, challenge: Challenge, grants: GrantSource, resume: Resume, deadline: Deadline, tally: Tally
    ) -> Ready:
        """Return the token of a task that was submitted earlier, here or by a worker that is gone."""
        task = Task(challenge, grants, resume.lease, deadline, tally)
        task.resumed(resume, self.clock.monotonic())
        with self._given_up_on_error(task):
            return self._poll(task, first=0.0)

    def _submit_until_accepted(self, task: Task) -> Ready:
        tries = SubmitTries(self.scale)
        failure: CaptchaQAError | None = None
        while True:
            queued = self.clock.monotonic()
            keeping = self._keeping(task)
            self.admission.wait_for_probation(task.challenge, task.grant, task.deadline, keeping)
            with self.admission.slot(task.deadline, keeping) as task.slot:
                self.admission.wait_for_turn(task.deadline)
                task.tally.queue += self.clock.monotonic() - queued
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
                    return self._poll(task, first=self.provider.polling(task.challenge).first)
            task.slot = None
            self._wait(task, pause)

    def _submit(self, task: Task) -> None:
        self.store.renew(task.lease)
        grant = task.grant
        with self._counted(task, grant):
            self.store.intend(task.lease)
            call = task.deadline.part(task.lease.times.http, what="the submit to the provider")
            task_id = self.provider.submit(task.challenge, grant, call)
        task.id = task.tally.task_id = task_id
        task.accepted = task.not_ready = self.clock.monotonic()
        self._store(task, lambda: self.store.submitted(task.lease, task_id))

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
        if isinstance(error, BalanceExhausted) and self._is_busy(task):
            error = ProviderBusy("the provider answered 'zero balance' while all threads were in use")
        pause = tries.pause_after(error)
        if pause is None and isinstance(error, BalanceExhausted | KeyRejected | ProviderUnavailable):
            self.admission.pause(error)
        if isinstance(error, ProviderUnavailable) and error.sent:
            self.emit(events.Event(events.SUBMIT_UNKNOWN, {"code": error.code}))
        if pause is None or pause >= task.deadline.remaining():
            raise error
        self.emit(events.Event(events.SOLVE_RETRIED, {"code": error.code, "pause": round(pause, 3)}))
        return pause

    def _is_busy(self, task: Task) -> bool:
        """Return whether a zero balance only means that all threads are busy (CaptchaAI uses one code for both)."""
        try:
            threads = self.provider.threads(task.deadline.part(task.lease.times.http, what="threadsinfo"))
        except (ProviderError, KeyRejected, BalanceExhausted):
            return False
        return threads is not None and 0 < threads.threads <= threads.working

    def _poll(self, task: Task, *, first: float) -> Ready:
        interval = self.provider.polling(task.challenge).interval
        faults, pause, heard = 0, first, self.clock.monotonic() + first
        while True:
            self._wait(task, pause)
            asked = self.clock.monotonic()
            try:
                solution = self._ask(task)
            except _POLL_FAULTS as error:
                faults += 1
                pause = error.retry_after or poll_pause(interval, faults)
                self._leave_if_down(error, silent=self.clock.monotonic() - heard)
                if pause >= task.deadline.remaining():
                    raise
                self.store.renew(task.lease)
                continue
            except KeyRejected as error:
                self.admission.pause(error)
                raise
            if solution is not None:
                return self._keep(task, solution)
            task.not_ready, faults, pause, heard = asked, 0, interval, self.clock.monotonic()
            self.store.renew(task.lease, last_not_ready=self.clock.monotonic() - asked)

    def _leave_if_down(self, error: CaptchaQAError, *, silent: float) -> None:
        """Raise the error of a service that has said nothing usable for so long that it is down.

        The task stays in the store with its id, so who comes later resumes it.
        """
        if isinstance(error, ProviderUnavailable) and error.retry_after is None and silent >= _DOWN_AFTER:
            self.admission.pause(error)
            raise error

    def _ask(self, task: Task) -> Solution | None:
        assert task.id is not None, "a task is polled after it was accepted"
        call = task.deadline.part(task.lease.times.http, what="a poll of the provider")
        task.tally.polls += 1
        try:
            return self.provider.poll(task.challenge, task.id, call)
        except CaptchaQAError as error:
            error.task_id = task.id
            raise

    def _keep(self, task: Task, solution: Solution) -> Ready:
        assert task.id is not None, "a task is solved after it was accepted"
        now, tally = self.clock.monotonic(), task.tally
        tally.solve, tally.detect = task.not_ready - task.accepted, now - task.not_ready
        timed = solution.timed(task_id=task.id, wait=now - task.accepted)
        return self._store(task, lambda: self.store.solved(task.lease, timed, age_bound=tally.detect))

    def _store(self, task: Task, write: Callable[[], _T]) -> _T:
        """Write under the lease; a task whose owner was replaced meanwhile is recorded as orphan."""
        try:
            return write()
        except OwnerLost:
            self.emit(events.Event(events.TASK_ORPHANED, {"task_id": task.id}))
            raise

    def _wait(self, task: Task, seconds: float) -> None:
        """Wait, renewing the lease and the slot often enough that neither lapses."""
        until = self.clock.monotonic() + task.deadline.cap(seconds)
        while (left := until - self.clock.monotonic()) > task.lease.times.renew:
            self.stop.wait(task.lease.times.renew)
            self._keeping(task)()
        self.stop.wait(max(0.0, left))
        if task.slot is not None:
            self.admission.keep_slot(task.slot)

    def _keeping(self, task: Task) -> Callable[[], None]:
        def keep() -> None:
            self.store.renew(task.lease)
            if task.slot is not None:
                self.admission.keep_slot(task.slot)

        return keep

    @contextmanager
    def _given_up_on_error(self, task: Task) -> Iterator[None]:
        """Mark the key failed on an error that ends the solve, so that those who wait for it learn why."""
        try:
            yield
        except (StoreError, DeadlineExceeded, Stopped):
            raise
        except CaptchaQAError as error:
            if task.id is None or ends_task(error):
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
