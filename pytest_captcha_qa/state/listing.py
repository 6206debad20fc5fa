"""What an operator may see of the keys in a store: where each stands and for how long, and no token."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_captcha_qa.engine.key_state import KeyState, State

_SHOWN = 12
_LEASED = frozenset({State.LEASED, State.INTENT, State.SUBMITTED, State.SPENT})


@dataclass(frozen=True, slots=True)
class KeyView:
    """One key; all times in seconds.

    `key` and `owner`: their first characters; `lease`: until its owner's lease lapses, 0 where it has; `task_age`:
    since the task was submitted; `token`: until the token expires; `forgotten_in`: until the key counts as new.
    """

    key: str
    state: str
    generation: int
    owner: str
    tries: int
    lease: float | None
    task_id: str | None
    task_age: float | None
    token: float | None
    verdict: str | None
    outcome: str | None
    forgotten_in: float


def view(key: str, state: KeyState, now: float) -> KeyView:
    """Return what may be seen of a key at this moment of the store's clock."""
    task, token, failure = state.task, state.token, state.failure
    ready = token is not None and state.state is State.READY
    return KeyView(
        key=key[:_SHOWN],
        state=str(state.state),
        generation=state.generation,
        owner=state.holder.owner[:_SHOWN],
        tries=state.tries,
        lease=max(0.0, state.holder.until - now) if state.state in _LEASED else None,
        task_id=task.id if task is not None else None,
        task_age=now - task.submitted_at if task is not None else None,
        token=max(0.0, token.expires_at - now) if ready and token is not None else None,
        verdict=state.verification.verdict if state.verification is not None else None,
        outcome=state.outcome or (failure.code if failure is not None else None),
        forgotten_in=state.keep_until - now,
    )
