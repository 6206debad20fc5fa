"""The requests that an attempt causes, step by step, whatever sends them.

They are found by the context of the call and not by an argument, so that whatever sends requests within a step is seen,
code that a team brings along included.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from pytest_captcha_qa.model.evidence import Exchange

MOST_PER_STEP = 6

_Watch = Callable[[Exchange], None]
_WATCH: ContextVar[_Watch | None] = ContextVar("captcha_qa_watch", default=None)


def saw(describe: Callable[[], Exchange]) -> None:
    """Show a request to the attempt that is under way in this context; without one it is not even described."""
    watch = _WATCH.get()
    if watch is None:
        return
    try:
        exchange = describe()
    except (ValueError, LookupError, RecursionError):
        return  # what cannot be described is missing from the evidence; the attempt goes on
    watch(exchange)


class Exchanges:
    """The last requests of each step of one attempt."""

    def __init__(self) -> None:
        self._by_step: dict[str, deque[Exchange]] = {}

    @contextmanager
    def during(self, step: str) -> Iterator[None]:
        """Keep what is sent in this context meanwhile."""
        kept = self._by_step.setdefault(step, deque(maxlen=MOST_PER_STEP))
        before = _WATCH.set(lambda exchange: kept.append(replace(exchange, step=step)))
        try:
            yield
        finally:
            _WATCH.reset(before)

    def share(self, other: Exchanges, step: str) -> None:
        """Keep what another attempt has sent in a step too."""
        self._by_step[step] = deque(other._by_step.get(step, ()), maxlen=MOST_PER_STEP)

    @property
    def kept(self) -> tuple[Exchange, ...]:
        """All of them, step by step."""
        return tuple(exchange for step in self._by_step.values() for exchange in step)
