from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.captcha import FACTS, CaptchaType, facts
from pytest_captcha_qa.model.policy import KeyTimes, RetryPolicy, Timeouts, total_budget

GOOD = KeyTimes(lease=30, renew=10, http=8, solve=300, redelivery=90, keep=110)


def test_pauses_double_up_to_a_ceiling() -> None:
    policy = RetryPolicy(first=2, ceiling=30)

    assert [policy.pause(failures) for failures in range(7)] == [2, 2, 4, 8, 16, 30, 30]


@given(first=st.floats(0.01, 60), ceiling=st.floats(0.01, 600), failures=st.integers(0, 100_000))
def test_a_pause_never_shrinks_and_never_passes_the_ceiling(first: float, ceiling: float, failures: int) -> None:
    policy = RetryPolicy(first=first, ceiling=ceiling)

    assert 0 < policy.pause(failures) <= policy.pause(failures + 1) <= ceiling


@pytest.mark.parametrize("kind", CaptchaType)
def test_the_times_of_every_type_can_work(kind: CaptchaType) -> None:
    times = KeyTimes.of(facts(kind), timeouts=Timeouts())

    assert times.problems() == []
    assert (times.keep, times.solve) == (FACTS[kind].keep, FACTS[kind].solve_deadline)
    assert times.http == Timeouts().provider_call


def test_redelivery_is_the_orchestrators_interval_times_its_tries() -> None:
    times = KeyTimes.of(facts(CaptchaType.TURNSTILE), timeouts=Timeouts(), retry_interval=45, tries=4)

    assert (times.redelivery, times.tombstone) == (180, times.solve + 360)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"keep": 0}, "the margin eats the whole validity"),
        ({"renew": 16}, "lapses after one lost renewal"),
        ({"lease": 18}, "lapses while one call of the provider, which may take 8 s"),
        ({"redelivery": 29}, "all retries are over after 29 s, while a worker that crashed holds its key for 30 s"),
        ({"redelivery": 0}, "the retry interval must be positive"),
        ({"redelivery": -1}, "would be forgotten before its task can be redelivered"),
    ],
)
def test_times_that_cannot_work_are_refused_with_the_reason(change: dict[str, float], problem: str) -> None:
    assert GOOD.problems() == []
    assert any(problem in found for found in dataclasses.replace(GOOD, **change).problems())


@pytest.mark.parametrize(
    ("first", "interval", "problem"),
    [
        (300, 5, "the first poll comes after 300 s, when the 300 s of a solve are over"),
        (5, 110, "polls 110 s apart may be that old, and is kept for 110 s: it would be expired when it is found"),
    ],
)
def test_polls_at_which_no_token_can_be_had_are_refused(first: float, interval: float, problem: str) -> None:
    assert GOOD.polling_problems(299, 109) == []
    [found] = GOOD.polling_problems(first, interval)
    assert problem in found


def test_the_budget_of_an_attempt_is_that_of_its_stages() -> None:
    assert total_budget(facts(CaptchaType.RECAPTCHA_V2), Timeouts()) == 300 + 30 + 30 + 60  # R4.2
