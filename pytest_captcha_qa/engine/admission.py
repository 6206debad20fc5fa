"""Before each submit: the account's pause, a slot, its turn, the run's budget, the origin's caps."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from pytest_captcha_qa.engine.glance import Glance
from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.engine.slots import Slots
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import Limits
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    KeyRejected,
    RateLimited,
)
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import AccountLimits, pause_asked
from pytest_captcha_qa.scope import PROBATION_SOLVES, WEAK_DAILY_SOLVES, ScopeGrant, TokenSource

HOUR, DAY = 3600.0, 86400.0
_RUN = 7 * DAY
_POLL = 0.25
_KEEP = 5.0
_PROBATION_PATIENCE = 150.0
_LOOK = 1.0  # seconds for which what was read of a flag is believed
# After the service has said that there was too much at once, submits are spread like this, in seconds, for a minute.
_SPREAD, _SPREAD_FOR = (0.1, 0.2), 60.0

Pausing = BalanceExhausted | KeyRejected


@dataclass(frozen=True, slots=True)
class _Pause:
    """How long an error stops an account if the service does not say, in seconds."""

    error: type[Pausing]
    seconds: float


# 2captcha asks for a minute between calls without balance and lifts a ban for wrong keys after five.
_PAUSES = (_Pause(BalanceExhausted, 60.0), _Pause(KeyRejected, 300.0))


@dataclass(frozen=True, slots=True)
class _Cap:
    counter: str
    limit: int | None
    seconds: float
    sentence: str


Counted = tuple[_Cap, ...]


@dataclass
class Admission:
    """Decides whether and when one account may submit; shared over workers through the Limits port.

    `account` names it in the store, the same for all who use its key; `name` is what the configuration calls it;
    `scale` shortens pauses for a sandbox whose solve times are scaled.
    """

    account: str
    name: str
    run_id: str
    limits: Limits
    rules: AccountLimits
    clock: Clock
    stop: Stop
    scale: float = 1.0
    random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.slots = Slots(self.account, self.limits, self.rules, self.clock, self.scale)
        self._polls_held = Glance(lambda: self.limits.flag(self._polls) is not None, _LOOK * self.scale, self.clock)

    @contextmanager
    def slot(self, deadline: Deadline, meanwhile: Callable[[], None]) -> Iterator[str]:
        """Hold one of the account's slots for the time of the block; yields its owner for `keep_slot`.

        `meanwhile` is called while waiting, to keep a lease alive.

        Raises:
            BalanceExhausted, KeyRejected: the account is paused.
            DeadlineExceeded, Stopped: the wait for a slot ended.
        """
        owner = uuid4().hex
        keep = self._now_and_then(meanwhile)
        self.check_pause()
        while not self.slots.acquire(owner):
            self.stop.wait(deadline.cap(_POLL * self.random.uniform(0.5, 1.5)))
            self.check_pause()
            keep()
        try:
            yield owner
        finally:
            self.slots.release(owner)

    @contextmanager
    def occupied(self) -> Iterator[str]:
        """Hold a slot without waiting for one, for a task that was accepted before; yields its owner."""
        owner = uuid4().hex
        self.slots.occupy(owner)
        try:
            yield owner
        finally:
            self.slots.release(owner)

    def keep_slot(self, owner: str) -> None:
        """Renew the slot's lease, also that of a slot beyond the limit."""
        self.slots.occupy(owner)

    def count_submit(self, challenge: Challenge, grant: ScopeGrant) -> Counted:
        """Count one submit against every cap that applies, before it is sent; return what to give `take_back`.

        Raises:
            BudgetExhausted: a cap is reached; the message names it.
        """
        caps = self._caps(challenge, grant)
        for cap in caps:  # looked at first, so that a full cap does not use up the others
            if cap.limit is not None and self.limits.count(cap.counter) >= cap.limit:
                raise BudgetExhausted(cap.sentence)
        for index, cap in enumerate(caps):
            if not self.limits.add(cap.counter, 1, limit=cap.limit, seconds=cap.seconds):
                self.take_back(tuple(caps[:index]))
                raise BudgetExhausted(cap.sentence)
        return tuple(caps)

    def take_back(self, counted: Counted) -> None:
        """Uncount a submit that certainly made no task, as when the provider had no free slot."""
        for cap in counted:
            self.limits.add(cap.counter, -1, limit=None, seconds=cap.seconds)

    def wait_for_probation(
        self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline, meanwhile: Callable[[], None]
    ) -> None:
        """Wait while a new sitekey's first solves are under way elsewhere and none is verified yet (R0.5).

        `meanwhile` is called while waiting, to keep a lease alive.
        """
        keep = self._now_and_then(meanwhile)
        patience = deadline.part(_PROBATION_PATIENCE, what="the probation of a sitekey")
        while self._on_probation(challenge, grant) and patience.remaining() > 0:
            if self.limits.count(_sitekey(challenge, "probation")) < PROBATION_SOLVES:
                return
            self.stop.wait(min(1.0, patience.remaining()))
            keep()

    def turn(self, deadline: Deadline) -> float:
        """Reserve the account's next submit and return the seconds until then.

        Raises:
            RateLimited: the service has asked for a pause that outlasts the deadline.
        """
        spread = self.limits.flag(self._spread) is not None
        spacing = max(self.rules.spacing, self.scale * self.random.uniform(*_SPREAD) if spread else 0.0)
        seconds = self.limits.next_allowed(self._turns, spacing=spacing)
        if seconds > deadline.remaining():
            raise RateLimited(
                f"the service asked account {self.name!r} to pause; it may submit again in {seconds:.0f} s, which is "
                "later than this attempt can wait",
                retry_after=seconds,
            )
        return seconds

    def slow_down(self, owner: str, *, hold: float | None = None) -> None:
        """Go on with fewer tasks in flight and with submits spread, since the service was busy.

        `owner` is that of the slot it had no thread for; `hold`: seconds in which nobody shall submit for the account.
        """
        self.slots.rest(owner)
        self.limits.raise_flag(self._spread, "yes", seconds=max(1.0, _SPREAD_FOR * self.scale))
        if hold:
            self.limits.hold(self._turns, seconds=hold)

    def hold_polls(self, seconds: float) -> None:
        """Let nobody poll for the account in these seconds: the service was asked too often.

        Nobody submits either: what cannot be asked for is not paid for, and would be too old once it can be.
        """
        self.limits.raise_flag(self._polls, "yes", seconds=seconds)
        self._polls_held.see(True)
        self.limits.hold(self._turns, seconds=seconds)

    @property
    def polls_are_held(self) -> bool:
        """Whether nobody shall poll for the account now."""
        return self._polls_held()

    def note_verified(self, challenge: Challenge) -> None:
        """End the probation of a sitekey: one of its tokens was verified by the team's backend (R0.5)."""
        self.limits.raise_flag(_sitekey(challenge, "verified"), "yes", seconds=365 * DAY)

    def note_accepted(self, form: str) -> None:
        """Let all workers know that the form accepted a token of this account in this run."""
        self.limits.raise_flag(self._control(form), "yes", seconds=_RUN)

    def accepted_by(self, forms: Iterable[str]) -> str | None:
        """Return the first of the forms that accepted a token of this account in this run, None without one."""
        return next((form for form in forms if self.limits.flag(self._control(form)) is not None), None)

    def pause(self, error: Pausing) -> float:
        """Stop the account for all workers and return the seconds: as the service may ask, else as the error needs."""
        pause = next(each for each in _PAUSES if isinstance(error, each.error))
        seconds = pause_asked(error.retry_after) or pause.seconds
        until = datetime.fromtimestamp(self.clock.utc() + seconds, UTC)
        told = f"until {until:%H:%M:%S} UTC, after {error.message}"
        self.limits.raise_flag(self._paused(pause), told, seconds=seconds)
        return seconds

    def resume(self) -> None:
        """Let a paused account go on: its balance is back."""
        for pause in _PAUSES:
            self.limits.lower_flag(self._paused(pause))

    def check_pause(self) -> None:
        """Return quietly unless the account is paused.

        Raises:
            BalanceExhausted, KeyRejected: what paused it.
        """
        for pause in _PAUSES:
            told = self.limits.flag(self._paused(pause))
            if told is not None:
                raise pause.error(f"account {self.name!r} is paused {told}")

    def submits(self) -> int:
        """Return the submits of this run so far, over all workers."""
        return self.limits.count(f"{self.account}:run:{self.run_id}")

    def _control(self, form: str) -> str:
        return f"{self.account}:run:{self.run_id}:control:{form}"

    @property
    def _turns(self) -> str:
        return f"{self.account}:spacing"

    @property
    def _polls(self) -> str:
        return f"{self.account}:polls:held"

    @property
    def _spread(self) -> str:
        return f"{self.account}:spread"

    def _paused(self, pause: _Pause) -> str:
        return f"{self.account}:paused:{pause.error.code}"

    def _now_and_then(self, do: Callable[[], None]) -> Callable[[], None]:
        """Return a function that does it when the last time is long enough ago."""
        last = self.clock.monotonic()

        def beat() -> None:
            nonlocal last
            if self.clock.monotonic() - last >= _KEEP:
                do()
                last = self.clock.monotonic()

        return beat

    def _on_probation(self, challenge: Challenge, grant: ScopeGrant) -> bool:
        return grant.source is TokenSource.LIVE and self.limits.flag(_sitekey(challenge, "verified")) is None

    def _caps(self, challenge: Challenge, grant: ScopeGrant) -> list[_Cap]:
        caps: list[_Cap] = []
        origin, now = grant.origin, self.clock.utc()
        if self._on_probation(challenge, grant):
            say = (
                f"sitekey of {challenge.page.without_query} is on probation: {PROBATION_SOLVES} tokens were solved and "
                "none was verified by your backend yet; see why they are refused before solving more"
            )
            caps.append(_Cap(_sitekey(challenge, "probation"), PROBATION_SOLVES, DAY, say))
        if grant.weak:
            say = f"{origin} has weak evidence (plain http or a private CA): at most {WEAK_DAILY_SOLVES} solves a day"
            caps.append(_Cap(f"weak:{origin}:{int(now // DAY)}", WEAK_DAILY_SOLVES, 2 * DAY, say))
        if grant.max_solves_per_hour is not None:
            say = f"the proof of {origin} allows {grant.max_solves_per_hour} solves an hour; they are used up"
            caps.append(_Cap(f"hourly:{origin}:{int(now // HOUR)}", grant.max_solves_per_hour, 2 * HOUR, say))
        say = f"the budget of {self.rules.run_budget} submits for this run is used up; raise it with --captcha-budget N"
        caps.append(_Cap(f"{self.account}:run:{self.run_id}", self.rules.run_budget, _RUN, say))
        return caps


def _sitekey(challenge: Challenge, what: str) -> str:
    told = f"{challenge.page.origin} {challenge.sitekey}"
    return f"sitekey:{hashlib.sha256(told.encode()).hexdigest()[:32]}:{what}"
