"""What keeps probes from doing harm: counters that all workers of a run share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_captcha_qa.engine.ports import Limits
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import DeadlineExceeded

MOST_ACCEPTED = 20
"""Most submits of one form and run that probes and their controls may have accepted."""

_RUN = 86400.0  # seconds a counter of a run is kept
_MANY = 10_000
_LEASE = 600.0  # seconds after which a crashed worker's place is free
_PAUSE = 0.5


class Harm:
    """The shared limits of the probes of one form in one run."""

    def __init__(self, limits: Limits, *, session: str, slug: str) -> None:
        """Keep where to count; `session` is what the processes of one run have in common."""
        self._limits = limits
        self._name = f"probes:{session}:{slug}"

    def reserve(self, amount: int = 1) -> bool:
        """Take so many of the accepted submits that are left, before they are sent: each may be accepted."""
        return self._limits.add(f"{self._name}:accepted", amount, limit=MOST_ACCEPTED, seconds=_RUN)

    def give_back(self, amount: int = 1) -> None:
        """Give back what was not accepted."""
        self._limits.add(f"{self._name}:accepted", -amount, limit=None, seconds=_RUN)

    @property
    def accepted(self) -> int:
        """How many are taken."""
        return self._limits.count(f"{self._name}:accepted")

    def stop_family(self, family: str, why: str) -> None:
        """Let no process send another probe of this family to the form."""
        self._limits.raise_flag(f"{self._name}:stopped:{family}", why, seconds=_RUN)

    def stopped(self, family: str) -> str | None:
        """Return why no more is sent, None while nothing has happened."""
        return self._limits.flag(f"{self._name}:stopped:{family}")

    def note(self, name: str, value: str) -> None:
        """Remember for all processes of the run what was found out."""
        self._limits.raise_flag(f"{self._name}:noted:{name}", value, seconds=_RUN)

    def noted(self, name: str) -> str | None:
        """Return what was found out, None if nobody has."""
        return self._limits.flag(f"{self._name}:noted:{name}")


class Place:
    """Who is probing an origin: many at once, or one alone."""

    def __init__(self, limits: Limits, stop: Stop, *, session: str, origin: str, owner: str) -> None:
        """Keep where to count; `owner` names the process."""
        self._limits = limits
        self._stop = stop
        self._name = f"probes:{session}:{origin}"
        self._owner = owner

    @contextmanager
    def taken(self, *, alone: bool, deadline: Deadline) -> Iterator[None]:
        """Hold a place on the origin, or the whole of it; waits until nobody else is alone, or there at all.

        Raises:
            DeadlineExceeded: others did not end in time.
        """
        if alone:
            self._wait_for(self._announced, deadline)
        try:
            self._wait_for((lambda: self._entered(1)) if alone else self._entered_beside, deadline)
            yield
        finally:
            self._limits.release(self._name, self._owner)
            if alone:
                self._limits.lower_flag(f"{self._name}:alone")

    def _announced(self) -> bool:
        """Say that one wants to be alone, unless another one does."""
        if self._limits.flag(f"{self._name}:alone") not in (None, self._owner):
            return False
        self._limits.raise_flag(f"{self._name}:alone", self._owner, seconds=_LEASE)
        return True

    def _entered(self, limit: int) -> bool:
        return self._limits.acquire(self._name, self._owner, limit=limit, lease=_LEASE)

    def _entered_beside(self) -> bool:
        if self._entered(_MANY) and self._limits.flag(f"{self._name}:alone") is None:
            return True
        self._limits.release(self._name, self._owner)
        return False

    def _wait_for(self, happened: Callable[[], bool], deadline: Deadline) -> None:
        while not happened():
            if deadline.remaining() <= 0:
                raise DeadlineExceeded("other probes on the same site did not end in time")
            self._stop.wait(_PAUSE)
