"""Ends a call at its deadline by shutting its sockets down, whatever the other side drips."""

from __future__ import annotations

import heapq
import itertools
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Self

from pytest_captcha_qa.transport.threads import started

# A socket time-out only limits the pause between two bytes. A peer that sends one byte a second keeps a
# handshake, a header block or a body alive for ever, and nothing inside the blocked thread can end it.
_IDLE_SECONDS = 5.0


class Watch:
    """One call under watch; a context manager. `fired` tells that its time ran out."""

    def __init__(self, dog: Watchdog, until: float) -> None:
        """Begin to watch until a moment on `time.monotonic()`."""
        self.until = until
        self.fired = False
        self.over = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        dog.add(self)

    def hold(self, sock: socket.socket) -> None:
        """Take a duplicate of a socket (plain or TLS) to shut down in time; the caller keeps its own."""
        # A TLS socket refuses `dup()`; the family is of no matter to a shutdown.
        own = socket.fromfd(sock.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with self._lock:
            self._sockets.append(own)
            late = self.fired
        if late:
            self.fire()

    def fire(self) -> None:
        """Shut every held socket down, so that whoever reads or writes it goes on at once."""
        with self._lock:
            if self.over:
                return
            self.fired = True
            for sock in self._sockets:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        """Return the watch itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End the watch and give the duplicates back."""
        with self._lock:
            self.over = True
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


class Watchdog:
    """Watches all calls of the process in one daemon thread, which ends when it has been idle for a while."""

    def __init__(self) -> None:
        """Start without a thread; the first call under watch starts it."""
        self._thread: threading.Thread | None = None
        self._line: list[tuple[float, int, Watch]] = []
        self.reset()

    def watch(self, seconds: float) -> Watch:
        """Return a watch that fires after so many seconds."""
        return Watch(self, time.monotonic() + seconds)

    def add(self, watch: Watch) -> None:
        """Put a watch in line.

        Raises:
            ThreadsExhausted: nobody can watch it.
        """
        with self._changed:
            if self._thread is None:
                self._thread = started(self._run, name="captcha-qa-watchdog")
            heapq.heappush(self._line, (watch.until, next(self._numbers), watch))
            self._changed.notify()

    def reset(self) -> None:
        """Begin anew, as a forked child must: there the thread is gone and the lock perhaps held for ever."""
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._line = []
        self._thread = None

    def _run(self) -> None:
        while (due := self._next()) is not None:
            due.fire()

    def _next(self) -> Watch | None:
        """Wait for the next watch that is due or over; None after a while without any."""
        with self._changed:
            while self._line or self._changed.wait_for(lambda: self._line, _IDLE_SECONDS):
                until, _, watch = self._line[0]
                left = until - time.monotonic()
                if watch.over or left <= 0:
                    heapq.heappop(self._line)
                    return watch
                self._changed.wait(left)
            self._thread = None
            return None


WATCHDOG = Watchdog()
"""The process's watchdog."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCHDOG.reset)
