"""What probes do at a rate limit that says when it ends."""

from __future__ import annotations

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.probing import LONGEST_WAIT

_RATE_LIMIT = 429


class Patience:
    """Waits for a rate limit, once."""

    def __init__(self, stop: Stop) -> None:
        """Keep what ends a wait early."""
        self._stop = stop
        self._is_left = True

    def waited(self, answer: Answer | None) -> bool:
        """Wait until the limit that answered is over, and return whether that was one and so near.

        Raises:
            Stopped: the run ends meanwhile.
        """
        seconds = answer.retry_after if answer is not None and answer.status == _RATE_LIMIT else None
        if seconds is None or seconds > LONGEST_WAIT or not self._is_left:
            return False
        self._is_left = False
        self._stop.wait(seconds)
        return True
