"""What a claim does to a key: the first column of state.md's table, as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.engine.events import SUBMIT_UNKNOWN
from pytest_captcha_qa.engine.key_state import Holder, KeyState, Moment, State
from pytest_captcha_qa.engine.store import Busy, Claim, Conflict, Done, Failed, Granted, Indeterminate, Ready, Resume
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes

_POLL = 1.0  # seconds between two looks of a waiter
_SLACK = 0.05  # a waiter who comes back at the end of a lease should find it lapsed


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Who asks about which key, for what page, and how long things are kept."""

    key: str
    fingerprint: Fingerprint
    owner: str
    times: KeyTimes
    fresh: bool = False


def remembered(state: KeyState | None, at: Moment) -> KeyState | None:
    """Return the state, or None where it was kept long enough."""
    return state if state is not None and at.now < state.keep_until else None


def claim(state: KeyState | None, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    """Return what the caller may do with the key, beside the key as it is then."""
    state = remembered(state, at)
    if state is None:
        return _begin(request, at, generation=1)
    replaced = _RENEWALS[state.state](state, request, at)
    if replaced is not None:
        return _begin(request, at, generation=state.generation + 1, replaced=replaced)
    if _other_digest(state, request):
        return state, Conflict()
    return _ANSWERS[state.state](state, request, at)


def ready(key: str, state: KeyState, times: KeyTimes, at: Moment) -> Ready:
    """Return the token of a key that has one, for whoever spends it first."""
    assert state.token is not None
    return Ready(
        key=key,
        generation=state.generation,
        solution=state.token.solution,
        age=at.now - state.token.not_ready_at,
        expires_in=state.token.expires_at - at.now,
        times=times,
    )


# Why a claim begins the next generation, by the state it finds; None where the stored one goes on. The next
# takes the new fingerprint: nothing of the old one can be handed out in it.


def _renewal_of_leased(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    abandoned = not state.live(at) and request.fresh and _other_digest(state, request)
    return "fresh" if abandoned else None  # nothing was sent for the old fingerprint


def _renewal_of_intent(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    return None


def _renewal_of_submitted(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    if state.live(at):
        return None
    if state.task is None or at.now >= state.task.resume_until:
        return "expired"
    return "page" if _other_page(state, request) else None


def _renewal_of_ready(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    return state.token_over(at) or ("page" if _other_page(state, request) else None)


def _renewal_of_used(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    return "fresh" if request.fresh else None


def _renewal_of_failed(state: KeyState, request: ClaimRequest, at: Moment) -> str | None:
    if state.failure is None or at.now >= state.failure.forget_at:
        return "expired"
    return "fresh" if request.fresh and _other_digest(state, request) else None


_RENEWALS: Mapping[State, Callable[[KeyState, ClaimRequest, Moment], str | None]] = {
    State.LEASED: _renewal_of_leased,
    State.INTENT: _renewal_of_intent,
    State.SUBMITTED: _renewal_of_submitted,
    State.READY: _renewal_of_ready,
    State.SPENT: _renewal_of_used,
    State.DONE: _renewal_of_used,
    State.FAILED: _renewal_of_failed,
}


# What a claim gets of a generation that goes on, by the state it finds.


def _answer_leased(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    if not state.live(at):
        # Whoever was told why a generation began, or of a window, has perhaps crashed before telling anybody.
        told = {"event": state.event, "replaced": state.replaced}
        return _begin(request, at, generation=state.generation, tries=state.tries, **told)
    if _repeated(state, request):
        state = state.leased_for(request.times.lease, request.times, at)
        return state, _granted(state, request)
    return state, _busy(state, at)


def _answer_intent(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    if state.live(at):
        return state, _busy(state, at)
    return _begin(request, at, generation=state.generation, tries=state.tries, event=SUBMIT_UNKNOWN)


def _answer_submitted(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    if not state.live(at):
        state = state.taken_by(request.owner, request.times, at)
    elif _repeated(state, request):
        state = state.leased_for(request.times.lease, request.times, at)
    else:
        return state, _busy(state, at)
    return state, _resume(state, request, at)


def _answer_ready(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    return state, ready(request.key, state, request.times, at)


def _answer_spent(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    return state, _busy(state, at) if state.live(at) else Indeterminate()


def _answer_done(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    return state, Done(state.outcome or "", state.session)


def _answer_failed(state: KeyState, request: ClaimRequest, at: Moment) -> tuple[KeyState, Claim]:
    assert state.failure is not None
    if state.failure.not_before is None:
        return state, Failed(state.failure.code)
    if at.now < state.failure.not_before:
        return state, Failed(state.failure.code, state.failure.not_before - at.now)
    return _begin(request, at, generation=state.generation, tries=state.tries + 1)


_ANSWERS: Mapping[State, Callable[[KeyState, ClaimRequest, Moment], tuple[KeyState, Claim]]] = {
    State.LEASED: _answer_leased,
    State.INTENT: _answer_intent,
    State.SUBMITTED: _answer_submitted,
    State.READY: _answer_ready,
    State.SPENT: _answer_spent,
    State.DONE: _answer_done,
    State.FAILED: _answer_failed,
}


def _begin(
    request: ClaimRequest,
    at: Moment,
    *,
    generation: int,
    tries: int = 0,
    event: str | None = None,
    replaced: str | None = None,
) -> tuple[KeyState, Granted]:
    state = KeyState(
        state=State.LEASED,
        generation=generation,
        request=request.fingerprint,
        holder=Holder(request.owner, at.nonce, at.now),
        keep_until=at.now,
        tries=tries,
        event=event,
        replaced=replaced,
    )
    state = state.leased_for(request.times.lease, request.times, at)
    return state, _granted(state, request)


def _granted(state: KeyState, request: ClaimRequest) -> Granted:
    lease = state.lease(request.key, request.times)
    return Granted(lease, tries=state.tries, event=state.event, replaced=state.replaced)


def _resume(state: KeyState, request: ClaimRequest, at: Moment) -> Resume:
    assert state.task is not None
    return Resume(
        lease=state.lease(request.key, request.times),
        task_id=state.task.id,
        age=at.now - state.task.submitted_at,
        not_ready_age=at.now - state.task.not_ready_at,
        suspect=state.task.epoch != at.epoch,
        tries=state.tries,
    )


def _busy(state: KeyState, at: Moment) -> Busy:
    return Busy(min(_POLL, state.holder.until - at.now + _SLACK))


def _repeated(state: KeyState, request: ClaimRequest) -> bool:
    return state.holder.owner == request.owner and not _other_page(state, request)


def _other_digest(state: KeyState, request: ClaimRequest) -> bool:
    return state.request.digest != request.fingerprint.digest


def _other_page(state: KeyState, request: ClaimRequest) -> bool:
    """Whether the same form is asked for on another load of a page its token would be bound to."""
    page = request.fingerprint.page
    return page is not None and page != state.request.page and not _other_digest(state, request)
