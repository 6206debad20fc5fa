"""Both ports within one process: for tests, and for a worker cut off from its store."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from pytest_captcha_qa.engine.key_state import KeyState
from pytest_captcha_qa.state.cells import Cell, CellLimits, Change, living
from pytest_captcha_qa.state.transitional import Transition, TransitionalStore

T = TypeVar("T")

_PURGE_EVERY = 60.0


class MemoryStore(TransitionalStore):
    """Keys of this process; its epoch ends with it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty; `clock` gives seconds that never go back."""
        super().__init__(epoch=uuid.uuid4().hex)
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, KeyState] = {}
        self._purged_at = clock()

    def _apply(self, key: str, transition: Transition[T]) -> T:
        with self._lock:
            now = self._clock()
            state, answer = transition(self._keys.get(key), self._moment(now))
            if state is not None:
                self._keys[key] = state
            self._purge(now)
            return answer

    def close(self) -> None:
        """Forget all keys."""
        with self._lock:
            self._keys.clear()

    def _purge(self, now: float) -> None:
        if now - self._purged_at >= _PURGE_EVERY:
            self._purged_at = now
            self._keys = {key: state for key, state in self._keys.items() if now < state.keep_until}


class MemoryLimits(CellLimits):
    """Counters and leases shared by the threads of this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty; `clock` gives seconds that never go back."""
        self._clock = clock
        self._lock = threading.Lock()
        self._cells: dict[str, Cell] = {}
        self._purged_at = clock()

    def _apply(self, name: str, change: Change[T]) -> T:
        with self._lock:
            now = self._clock()
            cell, answer = change(living(self._cells.get(name), now), now)
            if cell is None:
                self._cells.pop(name, None)
            else:
                self._cells[name] = cell
            self._purge(now)
            return answer

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._cells.clear()

    def _purge(self, now: float) -> None:
        if now - self._purged_at >= _PURGE_EVERY:
            self._purged_at = now
            self._cells = {name: cell for name, cell in self._cells.items() if now < cell.until}
