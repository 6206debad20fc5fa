"""The steps of one attempt: what each may still take, how long it took, and the requests it has caused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.watching import Exchanges


class Steps:
    """The seconds of one attempt on a form; only time within steps counts against them."""

    def __init__(self, form: str, seconds: float, clock: Clock) -> None:
        self._form = form
        self._left = seconds
        self._clock = clock
        self.seconds: dict[str, float] = {}
        self.exchanges = Exchanges()

    @contextmanager
    def during(self, name: str, at_most: float | None = None) -> Iterator[Deadline]:
        """Give a step what is left of the attempt's seconds, or `at_most` so many of them."""
        whole = Deadline(self._left, what=f"the attempt on form {self._form!r}", now=self._clock.monotonic)
        began = self._clock.monotonic()
        try:
            with self.exchanges.during(name):
                yield whole if at_most is None else whole.part(at_most, what=f"step {name!r} of form {self._form!r}")
        finally:
            took = self._clock.monotonic() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            self._left = max(0.0, self._left - took)

    def take_over(self, name: str, other: Steps) -> None:
        """Count what a step of another attempt has taken as this one's."""
        self.seconds[name] = other.seconds.pop(name, 0.0)
