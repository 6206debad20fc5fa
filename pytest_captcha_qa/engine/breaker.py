"""An outage of a service: noticed once, known to all who use the account, probed by one at a time.

A few failures in a row over a while are an outage; fewer, or a burst of them at one moment, are a blip that costs no
attempt. During an outage calls fail fast. One caller at a time makes its call all the same: if that is answered, the
outage is over, else the next probe waits for a pause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from pytest_captcha_qa.engine.glance import Glance
from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.engine.store import Limits, Streak
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    KeyRejected,
    ProviderDown,
    ProviderError,
    ProviderUnavailable,
)

FAILURES = 3
SECONDS = 10.0
"""An outage is at least so many failures in a row, over at least so many seconds."""

_FORGOTTEN = 30.0  # seconds after the last failure of a row; probes renew it while an outage lasts
_PROBE = 10.0  # seconds a probe may take: longer than the deadline of any call
_PAUSE = 10.0  # seconds between a probe that failed and the next one
_LOOK = 1.0  # seconds for which what was read of the row is believed
# Whatever these say, the service said it.
_ANSWERS = (ProviderError, KeyRejected, BalanceExhausted)


def is_outage(streak: Streak | None, *, scale: float = 1.0) -> bool:
    """Return whether the failures in a row are more than a blip."""
    return streak is not None and streak.failures >= FAILURES and streak.seconds >= SECONDS * scale


@dataclass
class Breaker:
    """The calls of one kind to one account's service.

    `name` stands for them in the store, `account` is what the configuration calls it; `scale` shortens all times for a
    sandbox whose solve times are scaled.
    """

    name: str
    account: str
    limits: Limits
    clock: Clock
    scale: float = 1.0

    def __post_init__(self) -> None:
        # Calls are many, outages are few.
        self._streak = Glance(lambda: self.limits.streak(self.name), _LOOK * self.scale, self.clock)

    @property
    def is_out(self) -> bool:
        """Whether the service is known not to answer."""
        return is_outage(self._streak(), scale=self.scale)

    def check(self) -> None:
        """Return quietly unless the service is known not to answer.

        Raises:
            ProviderDown: it is.
        """
        streak = self._streak()
        if streak is not None and is_outage(streak, scale=self.scale):
            raise ProviderDown(
                f"the service of account {self.account!r} is down: {streak.failures} calls in a row failed, over "
                f"{streak.seconds:.0f} s, the last one so: {streak.note}"
            )

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make one call in the block, unless the service is down and somebody else is probing it.

        Raises:
            ProviderDown: it is; the block was not entered.
        """
        probe = self._probe() if self.is_out else None
        try:
            yield
        except ProviderUnavailable as error:
            self._missed(error, probe)
            raise
        except _ANSWERS:
            self._heard(probe)
            raise
        except BaseException:  # Ctrl-C too must not keep others from probing
            self._end(probe)
            raise
        else:
            self._heard(probe)

    def _probe(self) -> str:
        """Return the owner of the one probe, if there is none."""
        owner = uuid4().hex
        if not self.limits.acquire(self._probes, owner, limit=1, lease=_PROBE):
            self.check()
        return owner

    def _missed(self, error: ProviderUnavailable, probe: str | None) -> None:
        self._streak.see(self.limits.strike(self.name, error.message, keep=max(_LOOK, _FORGOTTEN * self.scale)))
        if probe is not None:
            self.limits.acquire(self._probes, probe, limit=1, lease=_PAUSE * self.scale)

    def _heard(self, probe: str | None) -> None:
        if self._streak() is not None:
            self.limits.end_streak(self.name)
            self._streak.see(None)
        self._end(probe)

    def _end(self, probe: str | None) -> None:
        if probe is not None:
            self.limits.release(self._probes, probe)

    @property
    def _probes(self) -> str:
        return f"{self.name}:probe"
