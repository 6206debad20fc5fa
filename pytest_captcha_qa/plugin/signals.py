"""SIGTERM ends a run as Ctrl-C does, since that is how a CI cancels a job: records are closed, the sandbox ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, unless somebody else handles it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt("SIGTERM")
