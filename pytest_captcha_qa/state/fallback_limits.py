"""The port Limits over a shared store that may be lost: a worker then keeps to its share of what is left (R1.7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pytest_captcha_qa.engine.store import Limits, Streak
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.model.policy import OnStoreLoss
from pytest_captcha_qa.state.outage import Outage

T = TypeVar("T")
Ask = Callable[[Limits], T]

_BELIEVED = 60.0  # seconds for which a flag that was seen up is taken for up


@dataclass
class _Counter:
    """What is known of one counter: its last value there, what was added here alone, and how long it lives."""

    seen: int = 0
    alone: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Owed:
    """What the shared limits were to hold until a moment and could not be told."""

    until: float
    write: Callable[[Limits, float], None]


class FallbackLimits:
    """The shared limits while they can be reached, else this process's own; `processes` share what is left."""

    def __init__(
        self, shared: Limits, own: Limits, outage: Outage, on_loss: OnStoreLoss, *, processes: int = 1
    ) -> None:
        """Go on without `shared`, unless `on_loss` is to stop."""
        self._shared, self._own, self._outage, self._on_loss = shared, own, outage, on_loss
        self._processes = max(1, processes)
        self._counters: dict[str, _Counter] = {}
        self._owed: dict[str, _Owed] = {}
        self._lock = threading.Lock()
        outage.afterwards(self._add_what_was_spent)
        outage.afterwards(self._write_what_is_owed)

    def acquire(self, slots: str, owner: str, *, limit: int, lease: float) -> bool:
        """Take one of `limit` slots for `lease` seconds; alone, one of this process's share."""
        return self._either(
            lambda limits: limits.acquire(slots, owner, limit=limit, lease=lease),
            lambda limits: limits.acquire(slots, owner, limit=self._share(limit), lease=lease),
        )

    def release(self, slots: str, owner: str) -> None:
        """Give the slot back; nothing happens if it lapsed."""
        self._own.release(slots, owner)
        self._either(lambda limits: limits.release(slots, owner))

    def add(self, counter: str, amount: int, *, limit: int | None, seconds: float) -> bool:
        """Add to a counter unless it would pass `limit`; alone, this process's share of what was left of it."""
        known = self._counters.setdefault(counter, _Counter())
        known.seconds = seconds

        def there(limits: Limits) -> bool:
            added = limits.add(counter, amount, limit=limit, seconds=seconds)
            known.seen += amount if added else 0
            return added

        return self._either(there, lambda _: self._added_alone(known, amount, limit))

    def count(self, counter: str) -> int:
        """Return the counter; alone, what it was at last and what this process has added since."""
        known = self._counters.setdefault(counter, _Counter())

        def there(limits: Limits) -> int:
            known.seen = limits.count(counter)
            return known.seen

        return self._either(there, lambda _: known.seen + known.alone)

    def next_allowed(self, name: str, *, spacing: float) -> float:
        """Reserve the next moment and return the seconds until it; alone, so far apart that all keep the spacing."""
        return self._either(
            lambda limits: limits.next_allowed(name, spacing=spacing),
            lambda limits: limits.next_allowed(name, spacing=spacing * self._processes),
        )

    def hold(self, name: str, *, seconds: float) -> None:
        """Give out no moment of `next_allowed` before so many seconds from now."""
        self._lasting(f"hold {name}", seconds, lambda limits, left: limits.hold(name, seconds=left))

    def strike(self, name: str, note: str, *, keep: float) -> Streak:
        """Count one more failure in a row and return the row."""
        return self._either(lambda limits: limits.strike(name, note, keep=keep))

    def streak(self, name: str) -> Streak | None:
        """Return the failures in a row, None if there are none."""
        return self._either(lambda limits: limits.streak(name))

    def end_streak(self, name: str) -> None:
        """Forget the failures: there was a success."""
        self._both(lambda limits: limits.end_streak(name))

    def raise_flag(self, name: str, value: str, *, seconds: float) -> None:
        """Set a flag for so many seconds; one that is up for longer stays as it is."""
        self._lasting(f"flag {name}", seconds, lambda limits, left: limits.raise_flag(name, value, seconds=left))

    def flag(self, name: str) -> str | None:
        """Return the flag's value while it is up; alone, also for a minute after it was last seen up."""

        def there(limits: Limits) -> str | None:
            value = limits.flag(name)
            if value is None:
                self._own.lower_flag(name)
            else:
                self._own.raise_flag(name, value, seconds=_BELIEVED)
            return value

        return self._either(there, lambda limits: limits.flag(name))

    def lower_flag(self, name: str) -> None:
        """Take a flag down."""
        self._owed.pop(f"flag {name}", None)
        self._both(lambda limits: limits.lower_flag(name))

    def sample(self, name: str, value: float, *, keep: int = 50) -> None:
        """Add to the last `keep` samples."""
        self._both(lambda limits: limits.sample(name, value, keep=keep))

    def samples(self, name: str) -> list[float]:
        """Return the samples, oldest first."""
        return self._either(lambda limits: limits.samples(name))

    def close(self) -> None:
        """Close the shared limits."""
        self._shared.close()
        self._own.close()

    def _either(self, there: Ask[T], alone: Ask[T] | None = None) -> T:
        """Return what the shared limits answer, else what this process's own do.

        Raises:
            StoreUnavailable: the store is lost and the run is to stop then.
        """
        try:
            return self._outage.reach(lambda: there(self._shared))
        except StoreUnavailable:
            if self._on_loss is OnStoreLoss.STOP:
                raise
        return (alone or there)(self._own)

    def _both(self, ask: Ask[None]) -> None:
        """Tell this process's own limits, and the shared ones if they can be reached."""
        ask(self._own)
        self._either(ask, lambda _: None)

    def _lasting(self, name: str, seconds: float, write: Callable[[Limits, float], None]) -> None:
        """Write what lasts so long; shared limits that cannot be told now are told later, of what is left then."""

        def there(limits: Limits) -> bool:
            write(limits, seconds)
            return True

        write(self._own, seconds)
        owed = _Owed(self._outage.now + seconds, write)
        if not self._either(there, lambda _: False):
            self._owed[name] = max(owed, self._owed.get(name, owed), key=lambda each: each.until)

    def _write_what_is_owed(self) -> int:
        """Tell the shared limits what shall still last; return 0, for no task came back."""
        for name, owed in list(self._owed.items()):
            if (left := owed.until - self._outage.now) > 0:
                owed.write(self._shared, left)
            self._owed.pop(name, None)
        return 0

    def _share(self, limit: int) -> int:
        """Return this process's part of a limit; one at least, so that work goes on."""
        return max(1, limit // self._processes) if limit > 0 else limit

    def _added_alone(self, known: _Counter, amount: int, limit: int | None) -> bool:
        with self._lock:
            if limit is not None and known.alone + amount > self._share(limit - known.seen):
                return False
            known.alone += amount
            return True

    def _add_what_was_spent(self) -> int:
        """Add to the shared counters what was added alone, so that caps stay true; return 0, for no task came back."""
        for name, known in list(self._counters.items()):
            with self._lock:
                spent, known.alone = known.alone, 0
            try:
                if spent:
                    self._shared.add(name, spent, limit=None, seconds=known.seconds)
            except StoreUnavailable:
                known.alone += spent
                raise
            known.seen += spent
        return 0
