"""One challenge on its way through the provider, and what keeps it ours while it is waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.ports import Clock, GrantSource
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import Lease, Resume, StateStore
from pytest_captcha_qa.errors import CaptchaQAError, OwnerLost
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import TOLD_PAUSE, pause_asked
from pytest_captcha_qa.scope import ScopeGrant

_T = TypeVar("_T")
Told = Callable[[CaptchaQAError], None]


def untold(error: CaptchaQAError) -> None:
    """Take the news of a lost task and do nothing."""


@dataclass(slots=True)
class Tally:
    """What one attempt cost: submits, polls, and seconds.

    `submits` leaves out those that certainly made no task; `queue`: waiting for a slot; `solve`: until the task
    was last known not to be ready; `detect`: from then until the token was in hand. Together the last two are the
    token's wait. `price`: what the solves have cost, where the provider says so.
    """

    submits: int = 0
    polls: int = 0
    queue: float = 0.0
    solve: float = 0.0
    detect: float = 0.0
    task_id: str | None = None
    price: float | None = None


@dataclass(slots=True)
class Task:
    """One challenge on its way: what it is, who may work on it, until when, and what it has cost so far.

    `tries`: failed tries of the key before this one; `slot`: the account's slot it holds. Once the provider has
    accepted it, it has an `id`; `accepted`, `not_ready` (last known not to be) and `kept` (lease and slot were last
    renewed) are on the monotonic clock. `lost` is told what ended it where another may be made in its place.
    """

    challenge: Challenge
    grants: GrantSource
    lease: Lease
    deadline: Deadline
    tally: Tally
    tries: int = 0
    lost: Told = untold
    slot: str | None = None
    id: str | None = None
    accepted: float = 0.0
    not_ready: float = 0.0
    kept: float = float("-inf")

    @property
    def grant(self) -> ScopeGrant:
        """A grant for the challenge's page that is fresh now: a solve may wait longer than one lasts."""
        return self.grants.grant(self.challenge.page)

    @property
    def known_id(self) -> str:
        """The id of a task that was accepted."""
        assert self.id is not None, "a task has an id once it was accepted"
        return self.id

    def accept(self, task_id: str, now: float) -> None:
        """Go on with the id the provider gave it."""
        self.id = self.tally.task_id = task_id
        self.accepted = self.not_ready = self.kept = now

    def resumed(self, resume: Resume, now: float) -> None:
        """Go on with what the store knows of the task."""
        self.id = self.tally.task_id = resume.task_id
        self.accepted, self.not_ready = now - resume.age, now - resume.not_ready_age


@dataclass(frozen=True)
class Keeper:
    """Waits for a task without letting its lease or its slot lapse."""

    store: StateStore
    admission: Admission
    clock: Clock
    stop: Stop
    emit: events.Emit

    def wait_for_turn(self, task: Task, seconds: float) -> None:
        """Wait, if need be, and renew what the task holds: it was perhaps long in the queue."""
        self.stop.check()
        if seconds > 0:
            self.wait(task, seconds)
        self.keep(task)

    def wait(self, task: Task, seconds: float) -> None:
        """Wait, at most until the task's deadline."""
        renew = task.lease.times.renew
        until = self.clock.monotonic() + task.deadline.cap(seconds)
        while (left := until - self.clock.monotonic()) > renew:
            self.stop.wait(renew)
            self.keep(task)
        self.stop.wait(max(0.0, left))
        self.keep_in_time(task)

    def keep_in_time(self, task: Task) -> None:
        """Renew what the task holds, if that is long enough ago; not every poll has to cost a write."""
        if self.clock.monotonic() - task.kept >= task.lease.times.renew:
            self.keep(task)

    def keep(self, task: Task) -> None:
        """Renew what the task holds."""
        now = self.clock.monotonic()
        last_not_ready = now - task.not_ready if task.id is not None else None
        self.store.renew(task.lease, last_not_ready=last_not_ready)
        if task.slot is not None:
            self.admission.keep_slot(task.slot)
        task.kept = now

    def tell_hold(self, error: CaptchaQAError, seconds: float) -> None:
        """Make an event of a long pause of the account that the service asked for."""
        asked = error.retry_after
        if pause_asked(asked) >= TOLD_PAUSE:
            data: dict[str, events.EventValue] = {"account": self.admission.name, "code": error.code}
            more = {"asked": round(asked)} if asked is not None and asked > seconds else {}
            self.emit(events.Event(events.ACCOUNT_HELD, data | {"seconds": round(seconds)} | more))

    def written(self, task: Task, write: Callable[[], _T]) -> _T:
        """Write under the lease; a task whose owner was replaced meanwhile is told as orphan."""
        try:
            return write()
        except OwnerLost:
            self.emit(events.Event(events.TASK_ORPHANED, {"key": task.lease.key[:8], "task_id": task.id}))
            raise
