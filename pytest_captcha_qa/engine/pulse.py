"""Something that is done again and again beside a call that takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import Stopped

# Does what is due, if it is, and returns the seconds until it is asked again, None if it need not be.
Beat = Callable[[], float | None]

_PATIENCE = (
    5.0  # seconds in which a beat that is under way ends; a store that hangs must not hold up what was waited for
)


class Pulse(Protocol):
    """Calls a beat while a block runs."""

    def during(self, beat: Beat) -> AbstractContextManager[None]:
        """Call the beat at once, and again as it says, until the block is left."""


class ThreadPulse:
    """A Pulse in a thread of its own; where the system gives none, the block goes on without."""

    @contextmanager
    def during(self, beat: Beat) -> Iterator[None]:
        """Call the beat at once, and again as it says, until the block is left."""
        over = Stop()
        thread = threading.Thread(target=_go_on, args=(beat, over), name="captcha-qa pulse", daemon=True)
        with suppress(RuntimeError):  # what the block does matters more
            thread.start()
        try:
            yield
        finally:
            over.set("the block is over")
            if thread.ident is not None:
                thread.join(_PATIENCE)


def _go_on(beat: Beat, over: Stop) -> None:
    with suppress(Stopped):
        while (pause := beat()) is not None:
            over.wait(pause)
