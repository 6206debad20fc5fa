"""The port Limits over cells: named JSON values with an end, changed by pure functions.

A store adds only where cells are kept. A cell past its end counts as absent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_captcha_qa.engine.store import Streak

T = TypeVar("T")

_DAY = 86_400.0
_SPACING_KEPT = _DAY  # a later caller may ask for a wider spacing than the one before
_SAMPLES_KEPT = 30 * _DAY  # pacing learns nothing from older ones


@dataclass(frozen=True, slots=True)
class Cell:
    """One value (JSON) and the moment on the store's clock at which it ends."""

    value: Any
    until: float


Change = Callable[[Cell | None, float], tuple[Cell | None, T]]


class CellLimits(ABC):
    """Counters and leases of one account, each call one atomic change of one cell."""

    @abstractmethod
    def _apply(self, name: str, change: Change[T]) -> T:
        """Run a change on the cell atomically, store what it returns (None: remove it), return its answer."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files."""

    def acquire(self, slots: str, owner: str, *, limit: int, lease: float) -> bool:
        """Take one of `limit` slots for `lease` seconds; the same owner again renews its own."""
        return self._apply(f"slots:{slots}", lambda cell, now: acquire(cell, owner, limit, lease, now))

    def release(self, slots: str, owner: str) -> None:
        """Give the slot back; nothing happens if it lapsed."""
        self._apply(f"slots:{slots}", lambda cell, now: (release(cell, owner, now), None))

    def add(self, counter: str, amount: int, *, limit: int | None, seconds: float) -> bool:
        """Add to a counter that lives `seconds` from its first use, unless it would pass `limit`."""
        return self._apply(f"counter:{counter}", lambda cell, now: add(cell, amount, limit, seconds, now))

    def count(self, counter: str) -> int:
        """Return the counter, 0 if it is not there."""
        return self._apply(f"counter:{counter}", lambda cell, now: (cell, cell.value if cell else 0))

    def next_allowed(self, name: str, *, spacing: float) -> float:
        """Reserve the next moment, `spacing` seconds after the previous one; return the seconds until it."""
        return self._apply(f"next:{name}", lambda cell, now: reserve(cell, spacing, now))

    def hold(self, name: str, *, seconds: float) -> None:
        """Give out no moment of `next_allowed` before so many seconds from now."""
        self._apply(f"next:{name}", lambda cell, now: (hold(cell, seconds, now), None))

    def strike(self, name: str, note: str, *, keep: float) -> Streak:
        """Count one more failure in a row and return the row; it is forgotten `keep` seconds after its last."""
        return self._apply(f"streak:{name}", lambda cell, now: strike(cell, note, keep, now))

    def streak(self, name: str) -> Streak | None:
        """Return the failures in a row, None if there are none."""
        return self._apply(f"streak:{name}", lambda cell, now: (cell, _streak(cell) if cell else None))

    def end_streak(self, name: str) -> None:
        """Forget the failures: there was a success."""
        self._apply(f"streak:{name}", lambda cell, now: (None, None))

    def raise_flag(self, name: str, value: str, *, seconds: float) -> None:
        """Set a flag for so many seconds; one that is up for longer stays as it is."""
        self._apply(f"flag:{name}", lambda cell, now: (raise_flag(cell, value, seconds, now), None))

    def flag(self, name: str) -> str | None:
        """Return the flag's value while it is up."""
        return self._apply(f"flag:{name}", lambda cell, now: (cell, cell.value if cell else None))

    def lower_flag(self, name: str) -> None:
        """Take a flag down."""
        self._apply(f"flag:{name}", lambda cell, now: (None, None))

    def sample(self, name: str, value: float, *, keep: int = 50) -> None:
        """Add to the last `keep` samples."""
        self._apply(f"samples:{name}", lambda cell, now: (sample(cell, value, keep, now), None))

    def samples(self, name: str) -> list[float]:
        """Return the samples, oldest first."""
        return self._apply(f"samples:{name}", lambda cell, now: (cell, list(cell.value) if cell else []))


def living(cell: Cell | None, now: float) -> Cell | None:
    """Return the cell, or None where it has ended."""
    return cell if cell is not None and now < cell.until else None


def acquire(cell: Cell | None, owner: str, limit: int, lease: float, now: float) -> tuple[Cell | None, bool]:
    """Return the slots with the owner in one of them, if it had one or one is free."""
    held = _held(cell, now)
    if owner not in held and len(held) >= limit:
        return cell, False
    return _slots(held | {owner: now + lease}), True


def release(cell: Cell | None, owner: str, now: float) -> Cell | None:
    """Return the slots without the owner."""
    return _slots({each: until for each, until in _held(cell, now).items() if each != owner})


def add(cell: Cell | None, amount: int, limit: int | None, seconds: float, now: float) -> tuple[Cell | None, bool]:
    """Return the counter with the amount added, or as it was where that would pass the limit."""
    value, until = (cell.value, cell.until) if cell else (0, now + seconds)
    if limit is not None and value + amount > limit:
        return cell, False
    return Cell(value + amount, until), True


def reserve(cell: Cell | None, spacing: float, now: float) -> tuple[Cell, float]:
    """Return the moment reserved, and the seconds until it."""
    moment = max(now, cell.value + spacing) if cell else now
    return Cell(moment, moment + _SPACING_KEPT), moment - now


def hold(cell: Cell | None, seconds: float, now: float) -> Cell:
    """Return the last moment reserved, moved so that the next one is not before these seconds are over."""
    moment = max(now + seconds, cell.value if cell else now)
    return Cell(moment, moment + _SPACING_KEPT)


def raise_flag(cell: Cell | None, value: str, seconds: float, now: float) -> Cell:
    """Return whichever of the two ends later, the flag that is up or the new one; its value tells of that end."""
    return cell if cell is not None and cell.until > now + seconds else Cell(value, now + seconds)


def strike(cell: Cell | None, note: str, keep: float, now: float) -> tuple[Cell, Streak]:
    """Return the row with one more failure."""
    failures, first, _, _ = cell.value if cell else (0, now, now, "")
    struck = Cell([failures + 1, first, now, note], now + keep)
    return struck, _streak(struck)


def _streak(cell: Cell) -> Streak:
    failures, first, last, note = cell.value
    return Streak(failures, last - first, note)


def sample(cell: Cell | None, value: float, keep: int, now: float) -> Cell:
    """Return the last `keep` samples, this one included."""
    values = [*(cell.value if cell else []), value]
    return Cell(values[max(0, len(values) - keep) :], now + _SAMPLES_KEPT)


def _held(cell: Cell | None, now: float) -> dict[str, float]:
    return {owner: until for owner, until in (cell.value if cell else {}).items() if now < until}


def _slots(held: dict[str, float]) -> Cell | None:
    return Cell(held, max(held.values())) if held else None
