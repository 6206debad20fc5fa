"""The pure transitions: data in, data out. What they mean is held by tests/contract/test_state_store.py."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.engine import claims, transitions
from pytest_captcha_qa.engine.key_state import KeyState, State
from pytest_captcha_qa.engine.store import Busy, Granted, Resume, Won
from pytest_captcha_qa.engine.transitions import ClaimRequest, Moment
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution

TIMES = KeyTimes(lease=30, renew=10, http=30, solve=300, redelivery=90, keep=110)
REQUEST = ClaimRequest("5e" * 32, Fingerprint("form", "page"), "a", TIMES)
TOKEN = Solution({"token": "03AGdBq24" * 20}, task_id="t-1", wait=21.4, user_agent="UA", cookies={"a": "b"})


def at(now: float, nonce: str = "n") -> Moment:
    return Moment(now, "epoch", nonce)


def one_life(now: float = 0.0, solution: Solution = TOKEN, age_bound: float = 0.0) -> Iterator[KeyState]:
    """Every state of a key that is solved, spent and closed, and one that failed."""
    leased, answer = transitions.claim(None, REQUEST, at(now))
    assert isinstance(answer, Granted)
    yield leased
    intent = transitions.intend(leased, answer.lease, at(now))
    yield intent
    submitted = transitions.submitted(intent, answer.lease, "t-1", at(now))
    yield submitted
    ready, offer = transitions.solved(submitted, answer.lease, solution, age_bound, at(now))
    yield ready
    spent, won = transitions.spend(ready, offer, "c", at(now, "m"))
    assert spent is not None
    yield spent
    yield transitions.failed(submitted, answer.lease, "unsolvable", 5, at(now))
    if isinstance(won, Won):
        done = transitions.done(spent, won.lease, "ok", "cookies", at(now))
        yield done
        verified = transitions.verified(done, 1, "pass", at(now))
        assert verified is not None
        yield verified


def test_every_state_of_the_table_has_its_two_rules() -> None:
    assert set(claims._RENEWALS) == set(State)
    assert set(claims._ANSWERS) == set(State)


texts = st.text(max_size=20)
seconds = st.floats(0, 1e10, allow_nan=False)


@given(
    now=seconds,
    age_bound=st.floats(0, 200),
    parts=st.dictionaries(texts, texts, min_size=1, max_size=3),
    wait=seconds,
    cookies=st.dictionaries(texts, texts, max_size=2),
)
def test_a_state_survives_json(
    now: float, age_bound: float, parts: dict[str, str], wait: float, cookies: dict[str, str]
) -> None:
    solution = Solution(parts, task_id="t-1", wait=wait, cookies=cookies, price=wait)
    for state in one_life(now, solution, age_bound):
        assert KeyState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_fields_of_a_newer_version_are_skipped() -> None:
    for state in one_life():
        raw = state.to_json() | {"new": 1}
        raw = {name: {**part, "new": 1} if isinstance(part, dict) else part for name, part in raw.items()}
        assert KeyState.from_json(raw) == state


def test_all_states_are_reached_by_the_life_these_tests_use() -> None:
    assert {state.state for state in one_life()} == set(State)


def test_no_secret_stands_in_a_repr() -> None:
    for state in one_life():
        for secret in ("'n'", "'m'", TOKEN.text, "cookies"):
            assert secret not in repr(state)
    assert "nonce" not in repr(at(0))


@pytest.mark.parametrize("age_bound", [-5.0, 0.0])
def test_a_token_is_never_younger_than_now(age_bound: float) -> None:
    *_, submitted = (state for state in one_life() if state.state is State.SUBMITTED)
    lease = submitted.lease(REQUEST.key, TIMES)
    _, offer = transitions.solved(submitted, lease, TOKEN, age_bound, at(10))
    assert (offer.age, offer.expires_in) == (0, 110)


def test_every_state_is_remembered_for_the_tombstone_at_least() -> None:
    assert all(state.keep_until >= 100 + TIMES.tombstone for state in one_life(now=100))


def test_a_resumed_task_keeps_its_age_through_any_number_of_owners() -> None:
    state = next(state for state in one_life() if state.state is State.SUBMITTED)
    for turn in range(1, 9):
        now = turn * TIMES.lease
        request = ClaimRequest(REQUEST.key, REQUEST.fingerprint, f"owner {turn}", TIMES)
        state, answer = transitions.claim(state, request, at(now, f"nonce {turn}"))
        assert isinstance(answer, Resume)
        assert (answer.age, answer.not_ready_age, answer.lease.generation) == (now, now, 1)


@given(left=st.floats(0.001, 30))
def test_a_waiter_is_sent_away_for_a_second_or_the_rest_of_the_lease(left: float) -> None:
    leased = next(one_life())
    other = ClaimRequest(REQUEST.key, REQUEST.fingerprint, "b", TIMES)
    _, answer = transitions.claim(leased, other, at(TIMES.lease - left))
    assert isinstance(answer, Busy)
    assert left < answer.retry_after < left + 0.1 or answer.retry_after == 1
