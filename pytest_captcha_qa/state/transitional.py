"""The port StateStore over the pure transitions; a store adds only where a key's state is kept."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from pytest_captcha_qa.engine import transitions
from pytest_captcha_qa.engine.key_state import KeyState
from pytest_captcha_qa.engine.store import Claim, Lease, Ready, Spend
from pytest_captcha_qa.engine.transitions import ClaimRequest, Moment
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution

T = TypeVar("T")
Transition = Callable[[KeyState | None, Moment], tuple[KeyState | None, T]]
Write = Callable[[KeyState | None, Moment], KeyState | None]


class TransitionalStore(ABC):
    """Every method is one transition in one transaction; `epoch` tells the store's lives apart."""

    def __init__(self, epoch: str) -> None:
        """Keep the epoch."""
        self.epoch = epoch

    @abstractmethod
    def _apply(self, key: str, transition: Transition[T]) -> T:
        """Run a transition on the stored state atomically, store what it returns, and return its answer."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files."""

    def peek(self, key: str) -> KeyState | None:
        """Return what is stored of a key, for inspection; it holds secrets."""
        return self._apply(key, lambda state, at: (state, transitions.remembered(state, at)))

    def claim(self, key: str, fingerprint: Fingerprint, owner: str, *, times: KeyTimes, fresh: bool = False) -> Claim:
        """Ask what to do about a key."""
        request = ClaimRequest(key, fingerprint, owner, times, fresh)
        return self._apply(key, lambda state, at: transitions.claim(state, request, at))

    def intend(self, lease: Lease) -> None:
        """Say that a submit is about to be sent."""
        self._write(lease.key, lambda state, at: transitions.intend(state, lease, at))

    def submitted(self, lease: Lease, task_id: str) -> None:
        """Store the provider's task id."""
        self._write(lease.key, lambda state, at: transitions.submitted(state, lease, task_id, at))

    def renew(self, lease: Lease, *, last_not_ready: float | None = None) -> None:
        """Extend the lease; `last_not_ready`: seconds since a poll said "not ready"."""
        self._write(lease.key, lambda state, at: transitions.renew(state, lease, last_not_ready, at))

    def solved(self, lease: Lease, solution: Solution, *, age_bound: float) -> Ready:
        """Store the token; `age_bound`: seconds since the last "not ready", else since the submit."""
        return self._apply(lease.key, lambda state, at: transitions.solved(state, lease, solution, age_bound, at))

    def spend(self, ready: Ready, consumer: str) -> Spend:
        """Consume the token of this generation; exactly one consumer wins."""
        return self._apply(ready.key, lambda state, at: transitions.spend(state, ready, consumer, at))

    def unspend(self, lease: Lease) -> None:
        """Give a spent token back; only if not a byte of it was sent."""
        self._write(lease.key, lambda state, at: transitions.unspend(state, lease, at))

    def done(self, lease: Lease, outcome: str, *, session: str | None = None) -> None:
        """Close the key with what came of it."""
        self._write(lease.key, lambda state, at: transitions.done(state, lease, outcome, session, at))

    def failed(self, lease: Lease, code: str, *, not_before: float | None = None) -> None:
        """Close the try; `not_before`: seconds until a retry may start, None: never."""
        self._write(lease.key, lambda state, at: transitions.failed(state, lease, code, not_before, at))

    def verified(self, key: str, generation: int, verdict: str) -> None:
        """Keep the backend's verdict beside the key."""
        self._write(key, lambda state, at: transitions.verified(state, generation, verdict, at))

    def _write(self, key: str, write: Write) -> None:
        self._apply(key, lambda state, at: (write(state, at), None))

    def _moment(self, now: float) -> Moment:
        return Moment(now, self.epoch, secrets.token_hex(16))
