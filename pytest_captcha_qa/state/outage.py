"""Whether the shared store can be reached, as one process knows it (R1.7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import StoreUnavailable

T = TypeVar("T")
Merge = Callable[[], int]

_PATIENCE = 3.0  # seconds in which a call is repeated before the store counts as lost: a restart, a failover
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_FIRST_LOOK, _RAREST_LOOK = 1.0, 30.0  # seconds between two looks for a store that is lost


class Outage:
    """Repeats calls for a moment, says once that the store is lost, and looks now and then whether it is back."""

    def __init__(
        self, name: str, probe: Callable[[], None], clock: Clock, stop: Stop, emit: events.Emit = events.silent
    ) -> None:
        """Start with the store taken for reachable; `probe` writes something to it, or raises StoreUnavailable."""
        self._name, self._probe = name, probe
        self._clock, self._stop, self._emit = clock, stop, emit
        self._merges: list[Merge] = []
        self._since: float | None = None
        self._why = ""
        self._look_at = self._pause = 0.0
        self._lock = threading.Lock()  # of what is known here
        self._looking = threading.Lock()  # one thread looks for the store, the others do not wait for it

    @property
    def now(self) -> float:
        """The monotonic second by the clock of this process, which counts while the store's cannot be asked."""
        return self._clock.monotonic()

    @property
    def lasts(self) -> bool:
        """Whether the store is lost now."""
        return self._since is not None

    def afterwards(self, merge: Merge) -> None:
        """Have this done each time the store is back, before anybody uses it; it returns how much it brought back."""
        self._merges.append(merge)

    def reach(self, call: Callable[[], T]) -> T:
        """Return what the call to the shared store returns.

        Raises:
            StoreUnavailable: the store is lost; `sent` tells whether one of the tries may have been carried out.
        """
        if self.lasts and not self._is_back():
            raise StoreUnavailable(self._why)
        try:
            return self._patiently(call)
        except StoreUnavailable as error:
            self._lost(error)
            raise

    def look(self) -> None:
        """Find out at once whether the store can be reached.

        Raises:
            StoreUnavailable: it cannot.
        """
        self.reach(self._probe)

    def notice(self) -> None:
        """Look for a store that is lost, if the last look is long enough ago."""
        if self.lasts:
            self._is_back()

    def _patiently(self, call: Callable[[], T]) -> T:
        until, pause, sent = self._clock.monotonic() + _PATIENCE, _FIRST_PAUSE, False
        while True:
            try:
                return call()
            except StoreUnavailable as error:
                error.sent = sent = sent or error.sent
                if self.lasts or self._clock.monotonic() + pause > until:
                    raise
            self._stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _lost(self, error: StoreUnavailable) -> None:
        with self._lock:
            if self.lasts:
                return
            self._since, self._why, self._pause = self._clock.monotonic(), error.message, _FIRST_LOOK
            self._look_at = self._since + self._pause
        self._emit(events.Event(events.STORE_DEGRADED, {"store": self._name, "why": error.message}))

    def _is_back(self) -> bool:
        if self._clock.monotonic() < self._look_at or not self._looking.acquire(blocking=False):
            return not self.lasts
        try:
            return not self.lasts or self._found()
        finally:
            self._looking.release()

    def _found(self) -> bool:
        """Look for the store, and bring back what belongs there."""
        try:
            self._probe()
            merged = sum(merge() for merge in self._merges)
        except StoreUnavailable:
            self._pause = min(2 * self._pause, _RAREST_LOOK)
            self._look_at = self._clock.monotonic() + self._pause
            return False
        with self._lock:
            assert self._since is not None
            seconds, self._since = self._clock.monotonic() - self._since, None
        data: dict[str, events.EventValue] = {"store": self._name, "seconds": round(seconds, 1), "tasks": merged}
        self._emit(events.Event(events.STORE_BACK, data))
        return True
