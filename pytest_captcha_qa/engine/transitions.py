"""The transition table of a key (state.md) as pure functions.

Each takes the stored state (None: absent) and the moment, and returns the state to store; `claim`, `solved`
and `spend` return their answer beside it. A store calls one of them inside one transaction. Refused writes
raise OwnerLost and change nothing.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_captcha_qa.engine.claims import ClaimRequest, claim, ready, remembered
from pytest_captcha_qa.engine.key_state import (
    Failure,
    KeyState,
    Moment,
    State,
    StoredToken,
    Task,
    Verification,
)
from pytest_captcha_qa.engine.store import AlreadyMine, Expired, Lease, Lost, Ready, Spend, Won
from pytest_captcha_qa.errors import OwnerLost
from pytest_captcha_qa.model.token import Solution

__all__ = [
    "ClaimRequest",
    "Moment",
    "claim",
    "done",
    "failed",
    "intend",
    "owner_lost",
    "remembered",
    "renew",
    "solved",
    "spend",
    "submitted",
    "unspend",
    "verified",
]


def intend(state: KeyState | None, lease: Lease, at: Moment) -> KeyState:
    """Return the key with a submit under way; the lease then covers the HTTP deadline too."""
    held = _held(state, lease, at, State.LEASED, State.INTENT)
    if held.state is State.INTENT:
        return held
    if not held.live(at):
        raise _lost(held, lease)
    return replace(held, state=State.INTENT).leased_for(lease.times.http + lease.times.lease, lease.times, at)


def submitted(state: KeyState | None, lease: Lease, task_id: str, at: Moment) -> KeyState:
    """Return the key with the provider's task id."""
    held = _held(state, lease, at, State.INTENT, State.SUBMITTED, task_id=task_id)
    if held.state is State.SUBMITTED:
        if held.task is None or held.task.id != task_id:
            raise _lost(held, lease, task_id)
        return held
    resume_until = at.now + lease.times.solve + lease.times.redelivery
    task = Task(task_id, at.now, at.now, resume_until, at.epoch)
    return replace(held, state=State.SUBMITTED, task=task).leased_for(lease.times.lease, lease.times, at)


def renew(state: KeyState | None, lease: Lease, last_not_ready: float | None, at: Moment) -> KeyState:
    """Return the key with a longer lease; `last_not_ready`: seconds since a poll said "not ready"."""
    held = _held(state, lease, at, State.LEASED, State.INTENT, State.SUBMITTED, State.SPENT)
    if held.state is State.SUBMITTED and held.task is not None and last_not_ready is not None:
        seen = max(held.task.not_ready_at, at.now - max(0.0, last_not_ready))
        held = replace(held, task=replace(held.task, not_ready_at=seen))
    left = held.holder.until - at.now  # a submit under way has more than one lease
    return held.leased_for(max(left, lease.times.lease), lease.times, at)


def solved(
    state: KeyState | None, lease: Lease, solution: Solution, age_bound: float, at: Moment
) -> tuple[KeyState, Ready]:
    """Return the key with its token; `age_bound`: seconds for which the token may have existed already."""
    known = remembered(state, at)
    if known is not None and _stored_before(known, lease, solution):
        return known, ready(lease.key, known, lease.times, at)
    held = _held(state, lease, at, State.SUBMITTED)
    not_ready_at = at.now - max(0.0, age_bound)
    token = StoredToken(solution, not_ready_at, not_ready_at + lease.times.keep, at.epoch, lease.nonce)
    held = replace(held, state=State.READY, token=token)
    held = held.kept_after(max(at.now, token.expires_at), lease.times)
    return held, ready(lease.key, held, lease.times, at)


def spend(state: KeyState | None, offer: Ready, consumer: str, at: Moment) -> tuple[KeyState | None, Spend]:
    """Return the key with its token consumed, if this consumer is the first."""
    known = remembered(state, at)
    # The token is compared too: a key that was forgotten and begun anew counts its generations from 1 again.
    if known is None or known.generation != offer.generation or not known.holds(offer.solution):
        return state, Lost()
    if known.state is State.SPENT and known.holder.owner == consumer:
        known = known.leased_for(offer.times.lease, offer.times, at)
        return known, AlreadyMine(known.lease(offer.key, offer.times))
    if known.state is not State.READY:
        return known, Lost()
    if known.token_over(at):
        return known, Expired()
    spent = replace(known, state=State.SPENT).taken_by(consumer, offer.times, at)
    return spent, Won(spent.lease(offer.key, offer.times))


def unspend(state: KeyState | None, lease: Lease, at: Moment) -> KeyState:
    """Return the key with its token given back; one that has expired meanwhile is handed to nobody."""
    held = _held(state, lease, at, State.SPENT, State.READY)
    return replace(held, state=State.READY)


def done(state: KeyState | None, lease: Lease, outcome: str, session: str | None, at: Moment) -> KeyState:
    """Return the key closed with what came of it; the token is dropped."""
    held = _held(state, lease, at, State.SPENT, State.DONE)
    if held.state is State.DONE:
        if (held.outcome, held.session) != (outcome, session):
            raise _lost(held, lease)
        return held
    # Not before the last Ready of this generation has expired in its holder's hands.
    expires_at = held.token.expires_at if held.token is not None else at.now
    keep_until = max(at.now + lease.times.tombstone, expires_at)
    closed = replace(held, state=State.DONE, token=None, keep_until=keep_until)
    return replace(closed, outcome=outcome, session=session)


def failed(state: KeyState | None, lease: Lease, code: str, not_before: float | None, at: Moment) -> KeyState:
    """Return the key with its try closed; `not_before`: seconds until a retry may start, None: never."""
    held = _held(state, lease, at, State.LEASED, State.INTENT, State.SUBMITTED, State.FAILED)
    if held.state is State.FAILED:
        if held.failure is None or held.failure.code != code:
            raise _lost(held, lease)
        return held
    retry_at = at.now + max(0.0, not_before or 0.0)
    failure = Failure(
        code=code,
        not_before=None if not_before is None else retry_at,
        forget_at=retry_at + lease.times.redelivery,
    )
    return replace(held, state=State.FAILED, failure=failure).kept_after(retry_at, lease.times)


def verified(state: KeyState | None, generation: int, verdict: str, at: Moment) -> KeyState | None:
    """Return the key with the backend's verdict; one about another generation is too late and dropped."""
    known = remembered(state, at)
    if known is None or known.generation != generation:
        return state
    return replace(known, verification=Verification(generation, verdict))


def _stored_before(state: KeyState, lease: Lease, solution: Solution) -> bool:
    """Whether this very call succeeded before; its token may have been spent since."""
    return (
        state.generation == lease.generation
        and state.token is not None
        and state.token.nonce == lease.nonce
        and state.holds(solution)
    )


def _held(state: KeyState | None, lease: Lease, at: Moment, *allowed: State, task_id: str | None = None) -> KeyState:
    """Return the state if this lease may write to it in one of the allowed states."""
    known = remembered(state, at)
    if (
        known is None
        or known.generation != lease.generation
        or known.holder.nonce != lease.nonce
        or known.state not in allowed
    ):
        raise _lost(known, lease, task_id)
    return known


def _lost(state: KeyState | None, lease: Lease, task_id: str | None = None) -> OwnerLost:
    return owner_lost(lease, f"generation {state.generation} in {state.state}" if state else "nothing", task_id)


def owner_lost(lease: Lease, found: str, task_id: str | None = None) -> OwnerLost:
    """Return the refusal of a write under this lease, with what the store has of the key instead."""
    return OwnerLost(
        f"{lease.owner} no longer holds key {lease.key[:8]}… in generation {lease.generation}: the store has "
        f"{found}, so this write was refused; claim the key again",
        task_id=task_id,
    )
