"""A value of the store that is asked for often and changes seldom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pytest_captcha_qa.engine.ports import Clock

T = TypeVar("T")


@dataclass
class Glance(Generic[T]):
    """What `look` returns, believed for so many seconds."""

    look: Callable[[], T]
    seconds: float
    clock: Clock
    _seen: T | None = field(default=None, init=False)
    _until: float = field(default=float("-inf"), init=False)

    def __call__(self) -> T:
        """Return the value, as it was seen within these seconds."""
        if self.clock.monotonic() >= self._until:
            return self.see(self.look())
        return self._seen  # type: ignore[return-value]  # seen before, and so a T

    def see(self, value: T) -> T:
        """Take the value from somebody who knows it, and return it."""
        self._seen, self._until = value, self.clock.monotonic() + self.seconds
        return value

    def forget(self) -> None:
        """Look again at the next question."""
        self._until = float("-inf")
