"""Waiting that can be interrupted, and the one deadline that is handed down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pytest_captcha_qa.errors import DeadlineExceeded, Stopped

_SLICE = 1.0


class Stop:
    """A request to end all waiting; set by a drain, a signal or the end of the run."""

    def __init__(self) -> None:
        """Start unset."""
        self._event = threading.Event()
        self._reason = "stopped"

    def set(self, reason: str) -> None:
        """Ask everybody who waits to end; the first reason stays."""
        if not self._event.is_set():
            self._reason = reason
            self._event.set()

    @property
    def requested(self) -> bool:
        """Whether an end was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Stopped if an end was asked for."""
        if self._event.is_set():
            raise Stopped(f"the wait was ended: {self._reason}")

    def wait(self, seconds: float) -> None:
        """Wait that long, in the main thread in slices of a second at most, so that a signal is seen in time.

        Raises:
            Stopped: an end was asked for before or while waiting.
        """
        until = time.monotonic() + seconds
        # Signals are for the main thread; hundreds of others that wake every second only cost time.
        longest = _SLICE if threading.current_thread() is threading.main_thread() else seconds
        self.check()
        while (left := until - time.monotonic()) > 0:
            if self._event.wait(min(longest, left)):
                break
        self.check()


class Deadline:
    """A moment on the monotonic clock by which something must be over."""

    def __init__(self, seconds: float, *, what: str, now: Callable[[], float] = time.monotonic) -> None:
        """Start now; `what` names the thing in the error."""
        self._now = now
        self._until = now() + seconds
        self._seconds = seconds
        self._what = what

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self._until - self._now())

    def cap(self, seconds: float) -> float:
        """Return what of these seconds is left, for one call.

        Raises:
            DeadlineExceeded: nothing is left.
        """
        left = self.remaining()
        if left <= 0:
            raise DeadlineExceeded(f"{self._what} was not over after {self._seconds:g} s")
        return min(seconds, left)

    def part(self, seconds: float, *, what: str) -> Deadline:
        """Return the deadline of a stage: that many seconds, but never beyond this one."""
        return Deadline(self.cap(seconds), what=what, now=self._now)
