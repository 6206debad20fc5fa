"""Threads that wait beside a call, and an error where the system gives none."""

from __future__ import annotations

import threading
from collections.abc import Callable


class ThreadsExhausted(OSError):
    """This process gets no further thread: too many run, or memory is short."""


def started(target: Callable[[], None], *, name: str) -> threading.Thread:
    """Return a daemon thread that runs already.

    Raises:
        ThreadsExhausted: there is none to be had.
    """
    thread = threading.Thread(target=target, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # also while the interpreter ends
        raise ThreadsExhausted("no thread can be started") from None
    return thread
