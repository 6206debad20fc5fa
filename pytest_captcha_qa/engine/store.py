"""What the engine needs of a store that all workers share, as Protocols: the state of keys, and an account's limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one owner to write one generation of a key; `nonce` is compared on every write."""

    key: str
    generation: int
    nonce: str = field(repr=False)
    owner: str
    times: KeyTimes


@dataclass(frozen=True, slots=True)
class Ready:
    """A token is there for whoever spends it first; `age` in seconds since it was last not ready."""

    key: str
    generation: int
    solution: Solution
    age: float
    expires_in: float
    times: KeyTimes


@dataclass(frozen=True, slots=True)
class Granted:
    """The caller owns the key and solves; `tries` counts failed tries of this generation before.

    `event` names the window a takeover went through (SUBMIT_UNKNOWN), `replaced` why a new generation began
    (expired, epoch, fresh, page), None for the first.
    """

    lease: Lease
    tries: int = 0
    event: str | None = None
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """The caller owns a task that was submitted before; `age` in seconds since the submit.

    `not_ready_age`: seconds since it was last known not to be ready; `suspect`: the store was restarted since; `tries`
    counts failed tries of this generation before.
    """

    lease: Lease
    task_id: str
    age: float
    not_ready_age: float
    suspect: bool = False
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else is at it; ask again after so many seconds."""

    retry_after: float


@dataclass(frozen=True, slots=True)
class Done:
    """The key was used up; `outcome` is what came of it, `session` the cookies kept with it, if any."""

    outcome: str
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Indeterminate:
    """A consumer spent the token and vanished (W3): the form was perhaps posted."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key belongs to another type, sitekey, page or action."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The key failed with this code; `retry_after` seconds until it may be tried again, None: not at all."""

    code: str
    retry_after: float | None = None


Claim = Ready | Granted | Resume | Busy | Done | Indeterminate | Conflict | Failed


@dataclass(frozen=True, slots=True)
class Won:
    """The token is this consumer's alone; the lease is for `done` and `unspend`."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class AlreadyMine:
    """The same consumer won it before and its reply was lost."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Lost:
    """Another consumer was first, or the generation is over."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The token outlived its time before it was used."""


Spend = Won | AlreadyMine | Lost | Expired


class StateStore(Protocol):
    """The state of keys, shared by all workers (state.md). All times are the store's clock.

    Every method may raise StoreUnavailable. Writes under a lease raise OwnerLost when the generation or the nonce is
    not the stored one; repeating a write that succeeded succeeds again.
    """

    def claim(self, key: str, fingerprint: Fingerprint, owner: str, *, times: KeyTimes, fresh: bool = False) -> Claim:
        """Ask what to do about a key; one atomic transition."""

    def intend(self, lease: Lease) -> None:
        """Say that a submit is about to be sent."""

    def submitted(self, lease: Lease, task_id: str) -> None:
        """Store the provider's task id, before any waiting starts."""

    def renew(self, lease: Lease, *, last_not_ready: float | None = None) -> None:
        """Extend the lease; `last_not_ready`: seconds since a poll said "not ready"."""

    def solved(self, lease: Lease, solution: Solution, *, age_bound: float) -> Ready:
        """Store the token; `age_bound`: seconds since the last "not ready", else since the submit."""

    def spend(self, ready: Ready, consumer: str) -> Spend:
        """Consume the token of this generation; exactly one consumer wins."""

    def unspend(self, lease: Lease) -> None:
        """Give a spent token back; only if not a byte of it was sent."""

    def done(self, lease: Lease, outcome: str, *, session: str | None = None) -> None:
        """Close the key with what came of it."""

    def failed(self, lease: Lease, code: str, *, not_before: float | None = None) -> None:
        """Close the try; `not_before`: seconds until a retry may start, None: never."""

    def verified(self, key: str, generation: int, verdict: str) -> None:
        """Keep the backend's verdict beside the key."""

    def close(self) -> None:
        """Give back connections and files."""


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures in a row: how many, over how many seconds from the first to the last, and what the last one was."""

    failures: int
    seconds: float
    note: str


class Limits(Protocol):
    """Counters and leases of one account, shared by all its workers. Names are chosen by the engine."""

    def acquire(self, slots: str, owner: str, *, limit: int, lease: float) -> bool:
        """Take one of `limit` slots for `lease` seconds; the same owner again renews its own."""

    def release(self, slots: str, owner: str) -> None:
        """Give the slot back; nothing happens if it lapsed."""

    def add(self, counter: str, amount: int, *, limit: int | None, seconds: float) -> bool:
        """Add to a counter that lives `seconds` from its first use, unless it would pass `limit`."""

    def count(self, counter: str) -> int:
        """Return the counter, 0 if it is not there."""

    def next_allowed(self, name: str, *, spacing: float) -> float:
        """Reserve the next moment, `spacing` seconds after the previous one; return the seconds until it."""

    def hold(self, name: str, *, seconds: float) -> None:
        """Give out no moment of `next_allowed` before so many seconds from now."""

    def strike(self, name: str, note: str, *, keep: float) -> Streak:
        """Count one more failure in a row and return the row; it is forgotten `keep` seconds after its last."""

    def streak(self, name: str) -> Streak | None:
        """Return the failures in a row, None if there are none."""

    def end_streak(self, name: str) -> None:
        """Forget the failures: there was a success."""

    def raise_flag(self, name: str, value: str, *, seconds: float) -> None:
        """Set a flag (pause, number of threads) for so many seconds; one that is up for longer stays as it is."""

    def flag(self, name: str) -> str | None:
        """Return the flag's value while it is up."""

    def lower_flag(self, name: str) -> None:
        """Take a flag down."""

    def sample(self, name: str, value: float, *, keep: int = 50) -> None:
        """Add to the last `keep` samples."""

    def samples(self, name: str) -> list[float]:
        """Return the samples, oldest first."""

    def close(self) -> None:
        """Give back connections and files."""
