from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine.breaker import FAILURES, SECONDS, Breaker, is_outage
from pytest_captcha_qa.engine.store import Streak
from pytest_captcha_qa.errors import CaptchaQAError, ProviderDown, ProviderUnavailable
from pytest_captcha_qa.testing import Bench


def worker(bench: Bench, name: str = "main:submits", scale: float = 1.0) -> Breaker:
    """The breaker as another worker of the account has it."""
    return Breaker(name, "main", bench.limits, bench.clock, scale)


@pytest.fixture
def breaker(bench: Bench) -> Breaker:
    return worker(bench)


def fail(breaker: Breaker, error: CaptchaQAError | None = None) -> None:
    with pytest.raises(CaptchaQAError), breaker.call():
        raise error or ProviderUnavailable("HTTP 503")


def succeed(breaker: Breaker) -> None:
    with breaker.call():
        pass


def take_down(bench: Bench, breaker: Breaker) -> None:
    for pause in (3.5, 7.0, 0.0):
        fail(breaker)
        bench.clock.advance(pause)


@contextmanager
def refused() -> Iterator[None]:
    """The block is never entered."""
    with pytest.raises(ProviderDown) as caught:
        yield
    assert not caught.value.sent


@given(st.integers(0, 100), st.floats(0, 1000))
def test_only_a_few_failures_over_a_while_are_an_outage(failures: int, seconds: float) -> None:
    expected = failures >= FAILURES and seconds >= SECONDS
    assert is_outage(Streak(failures, seconds, "")) is expected


def test_no_failure_is_no_outage() -> None:
    assert not is_outage(None)


def test_an_outage_is_told_to_all_workers_in_a_sentence(bench: Bench, breaker: Breaker) -> None:
    other = worker(bench)
    take_down(bench, breaker)

    with pytest.raises(ProviderDown) as caught:
        other.check()

    assert caught.value.message == (
        "the service of account 'main' is down: 3 calls in a row failed, over 10 s, the last one so: HTTP 503"
    )
    assert (caught.value.fault, caught.value.exit_code) == ("provider", 12)
    assert other.is_out


def test_a_blip_of_less_than_ten_seconds_is_no_outage_however_many_calls_it_meets(
    bench: Bench, breaker: Breaker
) -> None:
    for _ in range(99):
        fail(breaker)
        bench.clock.advance(0.1)

    assert not breaker.is_out
    succeed(breaker)
    bench.clock.advance(5)
    fail(breaker)
    assert not breaker.is_out


def test_any_answer_ends_the_row_also_one_that_is_an_error(bench: Bench, breaker: Breaker) -> None:
    for answer in (
        errors.ProviderBusy("no slot"),
        errors.RateLimited("429"),
        errors.RequestRejected("bad"),
        errors.Unsolvable("no"),
        errors.TaskUnknown("which?"),
        errors.TaskSilent("nothing"),
        errors.KeyRejected("wrong"),
        errors.BalanceExhausted("empty"),
    ):
        for _ in range(2):
            fail(breaker)
            bench.clock.advance(6)
        fail(breaker, answer)
        fail(breaker)
        assert not breaker.is_out, answer.code


@pytest.mark.parametrize(
    "error", [errors.StoreUnavailable("away"), errors.DeadlineExceeded("late"), errors.ScopeDenied("no")]
)
def test_what_is_not_about_the_service_changes_nothing(bench: Bench, breaker: Breaker, error: CaptchaQAError) -> None:
    take_down(bench, breaker)
    bench.clock.advance(11)

    fail(breaker, error)  # as the probe

    assert breaker.is_out
    fail(breaker)  # the next probe may go at once


def test_one_caller_at_a_time_looks_whether_the_service_is_back(bench: Bench, breaker: Breaker) -> None:
    other = worker(bench)
    take_down(bench, breaker)

    with breaker.call():  # the probe
        for each in (other, worker(bench)):
            with refused(), each.call():
                pytest.fail("a second probe was let through")

    succeed(other)
    assert not other.is_out


def test_a_probe_that_fails_is_followed_by_a_pause(bench: Bench, breaker: Breaker) -> None:
    take_down(bench, breaker)
    fail(breaker)  # the probe

    bench.clock.advance(9)
    with refused(), worker(bench).call():
        pytest.fail("probed too early")
    bench.clock.advance(1)
    succeed(worker(bench))


def test_a_probe_that_vanished_does_not_keep_others_from_probing(bench: Bench, breaker: Breaker) -> None:
    take_down(bench, breaker)
    bench.limits.acquire("main:submits:probe", "gone", limit=1, lease=10)

    with refused(), breaker.call():
        pytest.fail("two probes at a time")
    bench.clock.advance(10)
    succeed(breaker)


def test_a_probe_that_is_interrupted_gives_its_place_back(bench: Bench, breaker: Breaker) -> None:
    take_down(bench, breaker)

    with pytest.raises(KeyboardInterrupt), breaker.call():
        raise KeyboardInterrupt

    succeed(worker(bench))


def test_a_recovery_that_another_worker_saw_is_known_within_a_second(bench: Bench, breaker: Breaker) -> None:
    other = worker(bench)
    take_down(bench, breaker)
    assert other.is_out
    succeed(breaker)

    bench.clock.advance(1)

    assert not other.is_out


def test_an_outage_nobody_looked_at_for_a_while_is_forgotten(bench: Bench, breaker: Breaker) -> None:
    take_down(bench, breaker)
    bench.clock.advance(29)
    assert worker(bench).is_out
    bench.clock.advance(1)
    assert not worker(bench).is_out


def test_calls_of_another_kind_or_account_are_not_concerned(bench: Bench, breaker: Breaker) -> None:
    take_down(bench, breaker)

    succeed(worker(bench, "main:results"))
    succeed(worker(bench, "other:submits"))
    assert breaker.is_out


def test_times_are_scaled_with_a_sandbox(bench: Bench) -> None:
    breaker = worker(bench, scale=0.02)
    for pause in (0.07, 0.14, 0.0):
        fail(breaker)
        bench.clock.advance(pause)
    assert breaker.is_out
    fail(breaker)
    bench.clock.advance(0.2)
    succeed(breaker)
    assert not breaker.is_out


def test_calls_that_succeed_cost_the_store_a_look_a_second(
    bench: Bench, breaker: Breaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = bench.limits.streak
    monkeypatch.setattr(bench.limits, "streak", lambda name: (looks.append(name), look(name))[1])
    for _ in range(100):
        succeed(breaker)
        bench.clock.advance(0.1)

    assert len(looks) == 10
