"""What the scripts of the Redis store answer, as the values of the port.

A reply is a list: "1" or "0" (whether it wrote), its kind, and what belongs to that kind; numbers come as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_captcha_qa.engine.key_state import KeyState, rebuilt_solution
from pytest_captcha_qa.engine.store import (
    AlreadyMine,
    Busy,
    Claim,
    Conflict,
    Done,
    Expired,
    Failed,
    Granted,
    Indeterminate,
    Lease,
    Lost,
    Ready,
    Resume,
    Spend,
    Won,
)
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution

LOST = "lost"
Reply = list[Any]
_MOMENTS = frozenset(
    {"keep_until", "submitted_at", "not_ready_at", "resume_until", "expires_at", "not_before", "forget_at"}
)


def claim(reply: Reply | str, key: str, owner: str, times: KeyTimes) -> Claim:
    """Return the answer to a claim; a hit comes as one text, which is read in a third of the time."""
    if isinstance(reply, str):
        return ready(["0", *reply.split(" ", 4)], key, times)
    _, kind, *words = reply
    if kind in _LEASING:
        generation, nonce, *rest = words
        return _LEASING[kind](Lease(key, int(generation), nonce, owner, times), rest)
    if kind == "ready":
        return ready(reply, key, times)
    return _PLAIN[kind](words)


def ready(reply: Reply, key: str, times: KeyTimes, solution: Solution | None = None) -> Ready:
    """Return the token that a reply offers; `solution` where the caller has it already."""
    _, _, generation, age, expires_in, stored = reply
    solution = solution or rebuilt_solution(json.loads(stored))
    return Ready(key, int(generation), solution, float(age), float(expires_in), times)


def spend(reply: Reply, offer: Ready, consumer: str) -> Spend:
    """Return who has the token now."""
    _, kind, *words = reply
    if kind == LOST:
        return Lost()
    if kind == "expired":
        return Expired()
    lease = Lease(offer.key, offer.generation, words[0], consumer, offer.times)
    return Won(lease) if kind == "won" else AlreadyMine(lease)


def found(reply: Reply) -> str:
    """Return what the store had when it refused a write."""
    _, _, generation, state = reply
    return f"generation {generation} in {state}" if state else "nothing"


def key_state(reply: Reply) -> KeyState | None:
    """Return a key with all its parts."""
    _, kind, *parts = reply
    if kind != "key":
        return None
    meta, lease, task, token, verification, session = (part and json.loads(part) for part in parts)
    meta, task = _timed(meta), task and _timed(task)
    lease = lease or {"owner": "", "nonce": "", "lapses": "0"}
    return KeyState.from_json(
        {
            **{name: value for name, value in meta.items() if name not in ("digest", "page", "token")},
            "request": {"digest": meta["digest"], "page": meta.get("page")},
            "holder": {"owner": lease["owner"], "nonce": lease["nonce"], "until": float(lease["lapses"])},
            "task": task,
            "token": {**meta["token"], "solution": token} if token and meta.get("token") else None,
            "failure": {"not_before": None, **meta["failure"]} if "failure" in meta else None,
            "verification": verification,
            "session": session,
        }
    )


def _timed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of a script with its moments as numbers."""
    return {name: _of_moment(name, each) for name, each in value.items()}


def _of_moment(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _timed(value)
    return float(value) if name in _MOMENTS else value


def _granted(lease: Lease, words: Reply) -> Granted:
    tries, event, replaced = words
    return Granted(lease, tries=int(tries), event=event, replaced=replaced)


def _resume(lease: Lease, words: Reply) -> Resume:
    task_id, age, not_ready_age, suspect, tries = words
    return Resume(lease, task_id, float(age), float(not_ready_age), suspect == "1", int(tries))


def _done(words: Reply) -> Done:
    outcome, session = words
    return Done(outcome, None if session is None else json.loads(session))


def _failed(words: Reply) -> Failed:
    code, retry_after = words
    return Failed(code, None if retry_after is None else float(retry_after))


_LEASING: Mapping[str, Callable[[Lease, Reply], Claim]] = {"granted": _granted, "resume": _resume}
_PLAIN: Mapping[str, Callable[[Reply], Claim]] = {
    "busy": lambda words: Busy(float(words[0])),
    "done": _done,
    "indeterminate": lambda words: Indeterminate(),
    "conflict": lambda words: Conflict(),
    "failed": _failed,
}
