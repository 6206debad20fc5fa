"""The keys of one process while it is cut off from the shared store, and what it knows of its own before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from pytest_captcha_qa.engine.key_state import Holder, KeyState, State, Task
from pytest_captcha_qa.engine.store import Claim, Done, Granted, Lease, Ready, Resume
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.state.memory import MemoryStore

_OPEN = frozenset({State.LEASED, State.INTENT, State.SUBMITTED, State.SPENT})


class OwnKeys(MemoryStore):
    """A store in memory that takes over keys as the shared store gave them, nonce and all.

    It never holds a token that the shared store may hold too: another worker could spend that one there.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty."""
        super().__init__(clock=clock)
        self._requests: dict[str, Fingerprint] = {}
        self._apart: set[str] = set()
        self._apart_lock = threading.Lock()

    def adopt(self, key: str, request: Fingerprint, times: KeyTimes, answer: Claim) -> None:
        """Know of a key what the shared store has just answered."""
        self._requests[key] = request
        if isinstance(answer, Granted):
            self._put(State.LEASED, answer.lease)
        elif isinstance(answer, Resume):
            self._put(State.SUBMITTED, answer.lease, task=self._task(answer))
        elif isinstance(answer, Done):
            lease = Lease(key, 1, "", "", times)
            self._put(State.DONE, lease, outcome=answer.outcome, session=answer.session)
        elif isinstance(answer, Ready):
            self.forget(key)  # what is known of an older generation is over

    def adopt_spent(self, lease: Lease) -> None:
        """Know that a token of the shared store was won under this lease."""
        if lease.key in self._requests:
            self._put(State.SPENT, lease)

    def forget(self, key: str) -> None:
        """Know nothing of a key any more."""
        with self._lock:
            self._keys.pop(key, None)

    def take_apart(self, key: str) -> None:
        """Answer for a key here from now on, as long as it is remembered, also when the shared store is back."""
        with self._apart_lock:
            self._apart.add(key)

    def give_back(self, key: str) -> None:
        """Leave a key to the shared store."""
        with self._apart_lock:
            self._apart.discard(key)

    def is_apart(self, key: str) -> bool:
        """Whether the key is answered for here."""
        return key in self._apart and self.peek(key) is not None

    def is_held(self, key: str) -> bool:
        """Whether this process was at work on the key."""
        state = self.peek(key)
        return key in self._apart or (state is not None and state.state in _OPEN)

    def task_of(self, key: str) -> str | None:
        """Return the id of the task that a key waits for, None without one."""
        state = self.peek(key)
        return state.task.id if state is not None and state.task is not None else None

    def tasks(self) -> Iterator[tuple[str, KeyState, Task]]:
        """Yield the keys apart whose task is being solved."""
        for key in sorted(self._apart):
            state = self.peek(key)
            if state is not None and state.state is State.SUBMITTED and state.task is not None:
                yield key, state, state.task

    def _task(self, answer: Resume) -> Task:
        now, times = self._clock(), answer.lease.times
        return Task(
            id=answer.task_id,
            submitted_at=now - answer.age,
            not_ready_at=now - answer.not_ready_age,
            resume_until=now - answer.age + times.solve + times.redelivery,
            epoch=self.epoch,
        )

    def _put(
        self,
        state: State,
        lease: Lease,
        *,
        task: Task | None = None,
        outcome: str | None = None,
        session: str | None = None,
    ) -> None:
        now = self._clock()
        until = now + lease.times.lease
        found = KeyState(
            state=state,
            generation=lease.generation,
            request=self._requests[lease.key],
            holder=Holder(lease.owner, lease.nonce, until),
            keep_until=until + lease.times.tombstone,
            task=task,
            outcome=outcome,
            session=session,
        )
        with self._lock:
            self._keys[lease.key] = found
