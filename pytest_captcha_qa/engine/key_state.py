"""What a store keeps of one key, as frozen values that go to JSON and back.

The task, the token, the verification result and the request's fingerprint are four separate things (R1.1).
All moments are seconds on the store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from pytest_captcha_qa.engine.store import Lease
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Moment:
    """When a transition happens: the store's clock in seconds, its epoch, a random nonce for a new lease."""

    now: float
    epoch: str
    nonce: str = field(repr=False)


class State(StrEnum):
    """Where a key stands (state.md); an absent key has no state."""

    LEASED = "leased"  # somebody works on it, nothing was sent
    INTENT = "intent"  # a submit is under way
    SUBMITTED = "submitted"  # the provider's task id is known
    READY = "ready"  # a token waits for its one consumer
    SPENT = "spent"  # a consumer has it and may have sent it
    DONE = "done"  # what came of it is known
    FAILED = "failed"  # the try ended without a token


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote last under a lease; `nonce` proves it, `until` is when the lease lapses."""

    owner: str
    nonce: str = field(repr=False)
    until: float


@dataclass(frozen=True, slots=True)
class Task:
    """The provider's task; `not_ready_at` is when it was last known not to be ready.

    After `resume_until` nobody takes it over any more.
    """

    id: str
    submitted_at: float
    not_ready_at: float
    resume_until: float
    epoch: str


@dataclass(frozen=True, slots=True)
class StoredToken:
    """The token; `nonce` is that of the lease it was stored under."""

    solution: Solution
    not_ready_at: float
    expires_at: float
    epoch: str
    nonce: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Verification:
    """What the team's backend said of the token of one generation."""

    generation: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the try failed; a retry may start at `not_before` (None: never) until the failure is forgotten."""

    code: str
    not_before: float | None
    forget_at: float


@dataclass(frozen=True, slots=True)
class KeyState:
    """One key. After `keep_until` it counts as absent.

    `tries`: failed tries of this generation; `event` and `replaced`: what the grant of the current lease
    said, so that a repeated claim gets the same answer.
    """

    state: State
    generation: int
    request: Fingerprint
    holder: Holder
    keep_until: float
    tries: int = 0
    event: str | None = None
    replaced: str | None = None
    task: Task | None = None
    token: StoredToken | None = None
    verification: Verification | None = None
    failure: Failure | None = None
    outcome: str | None = None
    session: str | None = field(default=None, repr=False)

    def live(self, at: Moment) -> bool:
        """Return whether the lease has not lapsed."""
        return at.now < self.holder.until

    def token_over(self, at: Moment) -> str | None:
        """Return why the token is handed to nobody: "expired", "epoch", or None if it may be."""
        if self.token is None or at.now >= self.token.expires_at:
            return "expired"
        return "epoch" if self.token.epoch != at.epoch else None

    def holds(self, solution: Solution) -> bool:
        """Return whether the stored token is this one."""
        return self.token is not None and self.token.solution.parts == solution.parts

    def lease(self, key: str, times: KeyTimes) -> Lease:
        """Return the lease of the present holder."""
        return Lease(key, self.generation, self.holder.nonce, self.holder.owner, times)

    def taken_by(self, owner: str, times: KeyTimes, at: Moment) -> KeyState:
        """Return the key under a new lease."""
        return replace(self, holder=Holder(owner, at.nonce, at.now)).leased_for(times.lease, times, at)

    def leased_for(self, seconds: float, times: KeyTimes, at: Moment) -> KeyState:
        """Return the key with its lease lasting so many seconds from now."""
        until = at.now + seconds
        return replace(self, holder=replace(self.holder, until=until)).kept_after(until, times)

    def kept_after(self, moment: float, times: KeyTimes) -> KeyState:
        """Return the key, remembered for the tombstone's time after the moment.

        Generations must not restart while the holder of an old lease or Ready could still act on it.
        """
        return replace(self, keep_until=max(self.keep_until, moment + times.tombstone))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; the token and the session are among them, so the result is a secret."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> KeyState:
        """Return the state that `to_json` gave; fields of a newer version are skipped."""
        values = {name: _rebuilt(name, value) for name, value in raw.items()}
        return _of(cls, values)


def _plain(value: Any) -> Any:
    if isinstance(value, StoredToken):
        rest = {each.name: getattr(value, each.name) for each in fields(value)}
        return rest | {"solution": plain_solution(value.solution)}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def plain_solution(solution: Solution) -> dict[str, Any]:
    """Return a solution as plain JSON values, a secret like the solution itself."""
    return {
        "parts": dict(solution.parts),
        "task_id": solution.task_id,
        "wait": solution.wait,
        "user_agent": solution.user_agent,
        "cookies": dict(solution.cookies),
        "price": solution.price,
    }


def rebuilt_solution(raw: Mapping[str, Any]) -> Solution:
    """Return the solution that `plain_solution` gave; fields of a newer version are skipped."""
    try:
        return Solution(**raw)
    except TypeError:
        return _of(Solution, raw)


_PARTS: dict[str, type[Any]] = {
    "request": Fingerprint,
    "holder": Holder,
    "task": Task,
    "token": StoredToken,
    "verification": Verification,
    "failure": Failure,
}


def _rebuilt(name: str, value: Any) -> Any:
    if name == "state":
        return State(value)
    if value is None or name not in _PARTS:
        return value
    if name == "token":
        value = {**value, "solution": rebuilt_solution(value["solution"])}
    return _of(_PARTS[name], value)


def _of(cls: type[Part], raw: Mapping[str, Any]) -> Part:
    known = {each.name for each in fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in raw.items() if name in known})
