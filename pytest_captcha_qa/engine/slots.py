"""The slots of an account: how many tasks may be in flight, over all its workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from pytest_captcha_qa.engine.glance import Glance
from pytest_captcha_qa.engine.ports import Clock, ThreadsInfo
from pytest_captcha_qa.engine.store import Limits
from pytest_captcha_qa.errors import BalanceExhausted, KeyRejected, ProviderError, StoreUnavailable
from pytest_captcha_qa.model.policy import AccountLimits

_REST = 30.0  # seconds a slot stays empty for which the service had no thread
_ASKED = 60.0  # seconds before the service is asked again after a question that came to nothing
_LEARNED = 600.0  # seconds for which the number of threads is believed
_LOOK = 30.0  # seconds for which this process believes what it read of that
_NO_LIMIT = 1_000_000
_UNKNOWN = 0  # threads of a service that does not say


@dataclass
class Slots:
    """Leases on the slots of one account, shared through the Limits port; `account` names it in the store.

    There are as many as the configuration says, or as the service has threads if those are fewer. A slot that the
    service refused rests for a while, so that fewer tasks are in flight, and more again with time.
    """

    account: str
    limits: Limits
    rules: AccountLimits
    clock: Clock
    scale: float = 1.0
    _resting: set[str] = field(default_factory=set, init=False)
    _last_known: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._told = Glance(lambda: self.limits.flag(self._threads), _LOOK, self.clock)

    def acquire(self, owner: str) -> bool:
        """Take a slot, or renew the one the owner has; return whether there was one."""
        return self._take(self._slots, owner, self.ceiling, self.rules.slot_lease)

    def occupy(self, owner: str) -> None:
        """Take a slot though there may be none left: the owner's task occupies a thread already."""
        self._take(self._slots, owner, _NO_LIMIT, self.rules.slot_lease)

    def release(self, owner: str) -> None:
        """Give the slot back, unless it rests."""
        if owner in self._resting:
            self._resting.discard(owner)
            return
        with suppress(StoreUnavailable):  # its lease lapses by itself; the result must not be lost over it
            self.limits.release(self._slots, owner)

    def rest(self, owner: str) -> None:
        """Leave the owner's slot empty for a while; one slot never rests."""
        seconds = max(self.scale * _REST, 1.0)
        if self._take(f"{self.account}:resting", owner, self.ceiling - 1, seconds):
            self._take(self._slots, owner, self.ceiling, seconds)
            self._resting.add(owner)

    @property
    def ceiling(self) -> int:
        """Most tasks in flight: one until the service was asked for its threads for the first time."""
        known, most = self._known(), self.rules.max_in_flight
        self._last_known = known if known is not None else self._last_known
        if self._last_known is None:
            return 1
        return min(most, self._last_known) if self._last_known else most

    def learn(self, ask: Callable[[], ThreadsInfo | None], *, anew: bool = False) -> None:
        """Ask the service for its threads, unless that is known, or somebody else asks or did a moment ago.

        `anew`: what is known cannot be right.
        """
        asking = f"{self.account}:asking" + (":anew" if anew else "")
        if not (anew or self._known() is None) or not self._take(asking, uuid4().hex, 1, self._asked):
            return
        try:
            self.learned(ask())
        except (ProviderError, KeyRejected, BalanceExhausted):  # whoever submits will meet it too
            self._keep(_UNKNOWN, self._asked)

    def learned(self, info: ThreadsInfo | None) -> None:
        """Keep for all workers how many threads the service has, if it says."""
        self._keep(info.threads if info is not None else _UNKNOWN, _LEARNED)

    def _keep(self, threads: int, seconds: float) -> None:
        self.limits.raise_flag(self._threads, str(threads), seconds=seconds)
        self._told.forget()

    @property
    def _asked(self) -> float:
        return max(1.0, _ASKED * self.scale)

    def _known(self) -> int | None:
        """Return how many threads the service is known to have, None if nobody has asked it."""
        told = self._told()
        if told is None:
            self._told.forget()  # somebody is about to ask
        return None if told is None else int(told)

    def _take(self, slots: str, owner: str, limit: int, lease: float) -> bool:
        return self.limits.acquire(slots, owner, limit=limit, lease=lease)

    @property
    def _slots(self) -> str:
        return f"{self.account}:slots"

    @property
    def _threads(self) -> str:
        return f"{self.account}:threads"
