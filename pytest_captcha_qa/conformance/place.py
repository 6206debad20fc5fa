"""Who is at the site under test: tests beside each other, or one alone, over all processes of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import Limits
from pytest_captcha_qa.errors import CaptchaQAError, Stopped, WaitedTooLong

LEASE = 30.0
"""Seconds after which what a dead process has held is free."""

PATIENCE = 600.0
"""Seconds that a test waits at most until it may go to the site."""

_MANY = 10_000
_PAUSE = 0.2


class Place:
    """This process's part in the order at the site: any number beside each other, or one alone.

    Who wants to be alone lets nobody else in and waits for those who are there. What a process holds it renews from a
    thread of its own; of one that died it lapses.
    """

    def __init__(self, limits: Limits, stop: Stop, *, session: str, owner: str) -> None:
        """Keep where it is counted; `session` is what the processes of a run share, `owner` names this one."""
        self._stop = stop
        self._leases = Leases(limits, owner)
        self._door, self._inside = f"probes:{session}:door", f"probes:{session}:inside"
        self._alone = threading.Lock()

    @contextmanager
    def beside(self, deadline: Deadline) -> Iterator[None]:
        """Be at the site with others; waits while somebody is alone there, or wants to be.

        Within another `beside` or `alone` of this process it is that one.

        Raises:
            WaitedTooLong: the others did not end in time.
            Stopped, StoreError: the run ends, or nobody can be asked.
        """
        if self._leases.has(self._inside):
            yield
            return
        self._wait_for(lambda: self._entered_beside(), deadline)
        try:
            yield
        finally:
            self._leases.give_back(self._inside)

    @contextmanager
    def alone(self, deadline: Deadline) -> Iterator[None]:
        """Be at the site alone; within `beside` that place is given up meanwhile, so that two may wait for each other.

        Raises:
            WaitedTooLong: the others did not end in time.
            Stopped, StoreError: the run ends, or nobody can be asked.
        """
        self._wait_for(lambda: self._alone.acquire(blocking=False), deadline)  # threads of one test
        try:
            was_beside = self._leases.has(self._inside)
            self._leases.give_back(self._inside)
            with self._locked(deadline):
                yield
            if was_beside:
                self._wait_for(lambda: self._entered_beside(), Deadline(PATIENCE, what="going back to the site"))
        finally:
            self._alone.release()

    @contextmanager
    def _locked(self, deadline: Deadline) -> Iterator[None]:
        try:
            self._wait_for(lambda: self._leases.take(self._door, limit=1), deadline)
            self._wait_for(lambda: self._leases.take(self._inside, limit=1), deadline)
            yield
        finally:
            self._leases.give_back(self._inside)
            self._leases.give_back(self._door)

    def _entered_beside(self) -> bool:
        """Pass the door, which who is alone, or about to be, keeps shut."""
        if not self._leases.take(self._door, limit=1):
            return False
        try:
            return self._leases.take(self._inside, limit=_MANY)
        finally:
            self._leases.give_back(self._door)

    def _wait_for(self, happened: Callable[[], bool], deadline: Deadline) -> None:
        while not happened():
            if deadline.remaining() <= 0:
                raise WaitedTooLong("other tests at the same site did not end in time, so nothing was sent")
            self._stop.wait(_PAUSE)


class Leases:
    """Slots of one process in shared limits, renewed until they are given back."""

    def __init__(self, limits: Limits, owner: str) -> None:
        """Hold nothing yet."""
        self._limits = limits
        self._owner = owner
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._end: Stop | None = None

    def has(self, name: str) -> bool:
        """Return whether this process holds it."""
        return name in self._held

    def take(self, name: str, *, limit: int) -> bool:
        """Return whether there was one of `limit` slots, which is held from now on. Raises StoreError."""
        with self._lock:
            if self._limits.acquire(name, self._owner, limit=limit, lease=LEASE):
                self._held.add(name)
                self._start()
            return name in self._held

    def give_back(self, name: str) -> None:
        """Let others have it; where the store cannot be told, it lapses."""
        with self._lock:
            self._held.discard(name)
            if not self._held and self._end is not None:
                self._end.set("nothing is held")
                self._end = None
            with suppress(CaptchaQAError):
                self._limits.release(name, self._owner)

    def renew(self) -> None:
        """Renew what is held; what has lapsed meanwhile, and somebody else has now, stays theirs."""
        with self._lock:
            for name in self._held:
                with suppress(CaptchaQAError):  # the next one may reach the store again
                    self._limits.acquire(name, self._owner, limit=1, lease=LEASE)

    def _start(self) -> None:
        if self._end is None:
            self._end = Stop()
            threading.Thread(target=self._beat, args=(self._end,), daemon=True).start()

    def _beat(self, end: Stop) -> None:
        with suppress(Stopped):
            while True:
                end.wait(LEASE / 3)
                self.renew()
