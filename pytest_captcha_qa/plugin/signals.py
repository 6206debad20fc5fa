"""SIGTERM ends a run as Ctrl-C does, since that is how a CI cancels a job: records are closed, the sandbox ends.

One that comes when the tests are over does not end the process before its verdict is written.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import Stopped

# Seconds for what is left once the tests are over; who asks for an end gives about as many before they kill.
_PATIENCE = 30.0
_ENDED_BY_SIGTERM = 128 + 15  # what a shell says of such a process


class Sigterm:
    """What SIGTERM does to this process, unless somebody else handles it or the session has a thread of its own."""

    def __init__(self) -> None:
        """Change nothing yet."""
        self._over: Stop | None = None

    def interrupts(self) -> None:
        """Let it raise KeyboardInterrupt: tests are running."""
        if threading.current_thread() is threading.main_thread() and _is(signal.SIG_DFL):
            signal.signal(signal.SIGTERM, _interrupt)

    def waits(self) -> None:
        """Let the session end by itself, and the process half a minute later if it does not."""
        if _is(_interrupt):
            signal.signal(signal.SIGTERM, self._end_in_time)

    def is_itself(self) -> None:
        """Let it end the process, as it does by default."""
        if self._over is not None:
            self._over.set("the session is over")
        if _is(_interrupt) or _is(self._end_in_time):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end_in_time(self, number: int, frame: FrameType | None) -> None:
        if self._over is None:
            self._over = Stop()
            threading.Thread(target=_end_after, args=(self._over,), name="captcha-qa end", daemon=True).start()


def _is(handler: object) -> bool:
    return bool(signal.getsignal(signal.SIGTERM) == handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt("SIGTERM")


def _end_after(over: Stop) -> None:
    try:
        over.wait(_PATIENCE)
    except Stopped:
        return
    os._exit(_ENDED_BY_SIGTERM)
