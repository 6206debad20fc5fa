from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from pytest_captcha_qa.engine.admission import HOUR, Admission
from pytest_captcha_qa.engine.ports import GrantSource, ThreadsInfo
from pytest_captcha_qa.engine.slots import Slots
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    DeadlineExceeded,
    KeyRejected,
    ProviderUnavailable,
    RateLimited,
    Stopped,
    StoreUnavailable,
)
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import LONGEST_PAUSE, AccountLimits
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import PROBATION_SOLVES, WEAK_DAILY_SOLVES, ScopeGrant
from pytest_captcha_qa.testing import BASE_URL, Bench, FakeGrants

Make = Callable[..., GrantSource]


@pytest.fixture
def admission(bench: Bench) -> Admission:
    return _admission(bench)


@pytest.fixture
def known(admission: Admission, challenge: Challenge) -> Challenge:
    """A challenge whose sitekey is past its probation."""
    admission.note_verified(challenge)
    return challenge


def _admission(bench: Bench, account: str = "main", run_id: str = "run", **rules: int | float) -> Admission:
    limits = AccountLimits(**rules)  # type: ignore[arg-type]
    admission = Admission(account, account, run_id, bench.limits, limits, bench.clock, bench.stop)
    admission.slots.learn(lambda: None)  # the service does not say how many threads it has
    return admission


def _unasked(bench: Bench, **rules: int) -> Slots:
    """The slots of a worker that comes before the service was asked for its threads."""
    limits = AccountLimits(**rules)
    return Admission("main", "main", "run", bench.limits, limits, bench.clock, bench.stop).slots


def _deadline(bench: Bench, seconds: float = 300) -> Deadline:
    return Deadline(seconds, what="the test", now=bench.clock.monotonic)


def _nothing() -> None: ...


def _count(admission: Admission, challenge: Challenge, grant: ScopeGrant, times: int) -> None:
    for _ in range(times):
        admission.count_submit(challenge, grant)


# Slots.


def test_no_more_slots_are_held_than_the_account_has(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=2)
    with (
        admission.slot(_deadline(bench), _nothing),
        admission.slot(_deadline(bench), _nothing),
        pytest.raises(DeadlineExceeded),
        admission.slot(_deadline(bench, 5), _nothing),
    ):
        pytest.fail("a third slot was given out")


def test_a_slot_is_given_back_whatever_happens_in_it(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1)
    with pytest.raises(KeyError), admission.slot(_deadline(bench), _nothing):
        raise KeyError

    with admission.slot(_deadline(bench), _nothing):
        assert bench.stop.waits == []


def test_a_slot_whose_holder_vanished_is_free_after_its_lease(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1, slot_lease=30)
    bench.limits.acquire("main:slots", "gone", limit=1, lease=30)
    began = bench.clock.monotonic()

    with admission.slot(_deadline(bench), _nothing):
        assert 30 <= bench.clock.monotonic() - began < 31


def test_a_slot_that_is_kept_does_not_lapse(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1, slot_lease=30)
    with admission.slot(_deadline(bench), _nothing) as owner:
        for _ in range(3):
            bench.clock.advance(20)
            admission.keep_slot(owner)

        assert not bench.limits.acquire("main:slots", "other", limit=1, lease=30)


def test_a_lease_is_kept_alive_while_waiting_for_a_slot(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1)
    bench.limits.acquire("main:slots", "other", limit=1, lease=28)
    kept: list[float] = []

    with admission.slot(_deadline(bench), lambda: kept.append(bench.clock.monotonic())):
        pass

    gaps = [later - earlier for earlier, later in pairwise(kept)]
    assert len(kept) == 5
    assert all(5 <= gap < 6 for gap in gaps)


def test_a_stop_ends_the_wait_for_a_slot(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1)
    bench.limits.acquire("main:slots", "other", limit=1, lease=300)

    with pytest.raises(Stopped), admission.slot(_deadline(bench), lambda: bench.stop.set("drain")):
        pytest.fail("no slot was free")


def test_a_slot_that_cannot_be_given_back_does_not_hide_what_happened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(slots: str, owner: str) -> None:
        raise StoreUnavailable("away")

    admission = _admission(bench)
    monkeypatch.setattr(bench.limits, "release", gone)

    with pytest.raises(KeyError), admission.slot(_deadline(bench), _nothing):
        raise KeyError


# A paused account.


@pytest.mark.parametrize(("error", "seconds"), [(BalanceExhausted("zero"), 60), (KeyRejected("wrong key"), 300)])
def test_an_account_is_paused_for_all_its_workers_and_goes_on_later(
    bench: Bench, error: BalanceExhausted | KeyRejected, seconds: float
) -> None:
    here, elsewhere = _admission(bench), _admission(bench, run_id="another run")
    here.pause(error)

    with pytest.raises(type(error), match=r"account 'main' is paused"), elsewhere.slot(_deadline(bench), _nothing):
        pytest.fail("a paused account was used")
    bench.clock.advance(seconds - 1)
    with pytest.raises(type(error)):
        elsewhere.check_pause()

    bench.clock.advance(1)
    elsewhere.check_pause()


@pytest.mark.parametrize("error", [BalanceExhausted("empty", retry_after=300), KeyRejected("ban", retry_after=600)])
def test_a_pause_lasts_as_long_as_the_service_says(bench: Bench, error: BalanceExhausted | KeyRejected) -> None:
    admission = _admission(bench)
    admission.pause(error)

    bench.clock.advance(float(error.retry_after or 0) - 1)
    with pytest.raises(type(error), match=rf"paused until \d\d:\d\d:\d\d UTC, after {error.message}"):
        admission.check_pause()
    bench.clock.advance(1)
    admission.check_pause()


@pytest.mark.parametrize("asked", [3600, 1e9, float("inf")])
def test_a_pause_lasts_no_longer_than_ten_minutes_whatever_the_service_says(bench: Bench, asked: float) -> None:
    admission = _admission(bench)

    assert admission.pause(KeyRejected("ban", retry_after=asked)) == LONGEST_PAUSE

    bench.clock.advance(599)
    with pytest.raises(KeyRejected):
        admission.check_pause()
    bench.clock.advance(1)
    admission.check_pause()


@pytest.mark.parametrize("asked", [-5, 0, float("nan")])
def test_a_pause_of_no_length_is_as_long_as_the_error_needs(bench: Bench, asked: float) -> None:
    assert _admission(bench).pause(BalanceExhausted("empty", retry_after=asked)) == 60


def test_a_pause_is_not_shortened_by_a_later_shorter_one(bench: Bench) -> None:
    here, elsewhere = _admission(bench), _admission(bench)
    here.pause(KeyRejected("banned", retry_after=600))
    elsewhere.pause(KeyRejected("wrong"))

    bench.clock.advance(599)
    with pytest.raises(KeyRejected, match=r"after banned"):
        elsewhere.check_pause()
    bench.clock.advance(1)
    elsewhere.check_pause()


def test_polls_stay_held_though_another_worker_was_asked_for_less(bench: Bench) -> None:
    here, elsewhere = _admission(bench), _admission(bench)
    here.hold_polls(60)
    elsewhere.hold_polls(10)

    bench.clock.advance(59)
    assert here.polls_are_held
    bench.clock.advance(1.1)
    assert not here.polls_are_held


def test_a_number_of_threads_outlives_a_question_that_came_to_nothing(bench: Bench) -> None:
    slots = _unasked(bench, max_in_flight=10)
    slots.learned(ThreadsInfo(threads=4, working=0))

    def fails() -> ThreadsInfo:
        raise ProviderUnavailable("no answer")

    slots.learn(fails, anew=True)

    assert slots.ceiling == 4


def test_a_paused_account_pauses_no_other(bench: Bench) -> None:
    _admission(bench).pause(BalanceExhausted("zero"))

    _admission(bench, account="other").check_pause()


def test_an_account_resumes_at_once_when_its_balance_is_back(bench: Bench) -> None:
    admission = _admission(bench)
    admission.pause(BalanceExhausted("zero"))
    admission.resume()

    admission.check_pause()


def test_a_pause_ends_the_wait_of_those_who_wait_for_a_slot(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1)
    bench.limits.acquire("main:slots", "other", limit=1, lease=300)

    with (
        pytest.raises(KeyRejected),
        admission.slot(_deadline(bench), lambda: admission.pause(KeyRejected("wrong"))),
    ):
        pytest.fail("a paused account was used")


# Spacing.


def _turns(admission: Admission, bench: Bench, times: int) -> list[float]:
    """The seconds between so many submits that are made as soon as they may be."""
    waits = []
    for _ in range(times):
        waits.append(admission.turn(_deadline(bench)))
        bench.clock.advance(waits[-1])
    return waits


def test_submits_are_spaced(bench: Bench) -> None:
    assert _turns(_admission(bench, spacing=0.2), bench, 3) == [0, pytest.approx(0.2), pytest.approx(0.2)]


def test_without_spacing_nobody_waits_for_a_turn(bench: Bench, admission: Admission) -> None:
    assert _turns(admission, bench, 3) == [0, 0, 0]


def test_submits_of_all_workers_are_spread_for_a_minute_after_the_service_was_busy(bench: Bench) -> None:
    admission, other = _admission(bench), _admission(bench)
    _turns(admission, bench, 1)
    admission.slow_down("owner")

    waits = _turns(other, bench, 10)

    assert all(0.1 <= wait <= 0.2 for wait in waits)
    assert len(set(waits)) > 1, "they are jittered"
    bench.clock.advance(60)
    assert _turns(other, bench, 3) == [0, 0, 0]


def test_nobody_submits_for_an_account_while_the_service_wants_a_pause(bench: Bench) -> None:
    admission, other = _admission(bench), _admission(bench)
    admission.slow_down("owner", hold=10)
    bench.clock.advance(4)

    first, second = other.turn(_deadline(bench)), admission.turn(_deadline(bench))

    assert 6 <= first <= 6.2
    assert 0.1 <= second - first <= 0.2


def test_a_pause_that_outlasts_the_attempt_is_told_at_once(bench: Bench, admission: Admission) -> None:
    admission.slow_down("owner", hold=600)

    with pytest.raises(RateLimited, match=r"account 'main' to pause; it may submit again in 600 s"):
        admission.turn(_deadline(bench, 300))


# Fewer in flight.


def _free(bench: Bench, **rules: int) -> int:
    """How many slots a worker that comes now would get."""
    slots = _admission(bench, **rules).slots
    owners = [f"new {number}" for number in range(20)]
    taken = [owner for owner in owners if slots.acquire(owner)]
    for owner in taken:
        slots.release(owner)
    return len(taken)


def test_a_slot_the_service_had_no_thread_for_rests_and_comes_back(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=4)
    for _ in range(2):
        with admission.slot(_deadline(bench), _nothing) as owner:
            admission.slow_down(owner)

    assert _free(bench, max_in_flight=4) == 2
    bench.clock.advance(30)
    assert _free(bench, max_in_flight=4) == 4


def test_one_slot_never_rests(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=3)
    for _ in range(5):
        with admission.slot(_deadline(bench), _nothing) as owner:
            admission.slow_down(owner)

    assert _free(bench, max_in_flight=3) == 1


@pytest.mark.parametrize(("threads", "ceiling"), [(2, 2), (50, 5), (0, 5)])
def test_no_more_tasks_are_in_flight_than_the_service_has_threads(bench: Bench, threads: int, ceiling: int) -> None:
    _unasked(bench).learn(lambda: ThreadsInfo(threads, 0))

    slots = _unasked(bench, max_in_flight=5)

    assert slots.ceiling == ceiling
    assert [slots.acquire(f"owner {number}") for number in range(6)].count(True) == ceiling


def test_one_task_is_in_flight_while_the_service_is_asked_for_its_threads(bench: Bench) -> None:
    slots, ceilings = _unasked(bench, max_in_flight=5), []

    def ask() -> ThreadsInfo:
        ceilings.append(_unasked(bench, max_in_flight=5).ceiling)
        return ThreadsInfo(4, 0)

    slots.learn(ask)

    assert (ceilings, slots.ceiling) == ([1], 4)


def test_the_threads_are_asked_for_once_by_all_workers_and_again_after_ten_minutes(bench: Bench) -> None:
    asked: list[float] = []

    def ask() -> ThreadsInfo:
        asked.append(bench.clock.monotonic())
        return ThreadsInfo(2, 0)

    began = bench.clock.monotonic()
    for _ in range(800):
        _unasked(bench).learn(ask)
        bench.clock.advance(1)

    assert [moment - began for moment in asked] == [0, 600]


def test_those_who_wait_for_a_slot_while_the_number_of_threads_gets_old_go_on_with_it(bench: Bench) -> None:
    slots = _unasked(bench, max_in_flight=5)
    slots.learn(lambda: ThreadsInfo(3, 0))
    assert slots.ceiling == 3

    bench.clock.advance(601)

    assert slots.ceiling == 3


def test_threads_are_asked_for_anew_at_most_once_a_minute(bench: Bench) -> None:
    asked: list[float] = []

    def ask() -> ThreadsInfo:
        asked.append(bench.clock.monotonic())
        return ThreadsInfo(5 - len(asked), 0)

    slots, began = _unasked(bench), bench.clock.monotonic()
    slots.learn(ask)
    for _ in range(100):
        slots.learn(ask, anew=True)
        bench.clock.advance(1)

    assert [moment - began for moment in asked] == [0, 0, 60]
    assert slots.ceiling == 2


def test_threads_that_cannot_be_asked_for_change_nothing_and_are_asked_for_a_minute_later(bench: Bench) -> None:
    asked: list[float] = []

    def ask() -> ThreadsInfo:
        asked.append(bench.clock.monotonic())
        raise ProviderUnavailable("away")

    slots = _unasked(bench, max_in_flight=5)
    began = bench.clock.monotonic()
    for _ in range(100):
        slots.learn(ask)
        assert slots.ceiling == 5
        bench.clock.advance(1)

    assert [moment - began for moment in asked] == [0, 60]


def test_a_task_that_was_accepted_before_holds_a_slot_beyond_the_limit(bench: Bench) -> None:
    admission = _admission(bench, max_in_flight=1)
    with admission.slot(_deadline(bench), _nothing), admission.occupied():
        assert bench.stop.waits == []
        assert _free(bench, max_in_flight=2) == 0
    assert _free(bench, max_in_flight=1) == 1


# Caps.


def test_the_budget_of_a_run_is_its_own(bench: Bench, known: Challenge, proven: Make) -> None:
    grant = proven().grant(known.page)
    admission = _admission(bench, run_budget=2)
    _count(admission, known, grant, 2)

    with pytest.raises(BudgetExhausted, match=r"budget of 2 submits .* --captcha-budget"):
        admission.count_submit(known, grant)
    assert admission.submits() == 2
    _count(_admission(bench, run_id="next", run_budget=2), known, grant, 2)


def test_submits_are_counted_over_all_workers_of_a_run(bench: Bench, known: Challenge, proven: Make) -> None:
    grant = proven().grant(known.page)
    _count(_admission(bench, run_budget=3), known, grant, 2)
    other = _admission(bench, run_budget=3)
    _count(other, known, grant, 1)

    with pytest.raises(BudgetExhausted):
        other.count_submit(known, grant)


def test_the_proof_limits_the_solves_of_an_hour(
    bench: Bench, admission: Admission, known: Challenge, proven: Make
) -> None:
    bench.clock.seconds = 300 * HOUR
    grant = proven(solves_per_hour=5).grant(known.page)
    _count(admission, known, grant, 5)

    bench.clock.advance(HOUR - 1)
    with pytest.raises(BudgetExhausted, match="allows 5 solves an hour"):
        admission.count_submit(known, grant)
    bench.clock.advance(1)
    admission.count_submit(known, grant)


def test_weak_evidence_limits_the_solves_of_a_day(bench: Bench, admission: Admission, proven: Make) -> None:
    page = Url.parse("http://shop.example/signup")
    weak = Challenge(bench.services().forms["signup"].type, "sitekey", page)
    admission.note_verified(weak)
    grant = proven("http://shop.example").grant(page)
    _count(admission, weak, grant, WEAK_DAILY_SOLVES)

    with pytest.raises(BudgetExhausted, match="weak evidence"):
        admission.count_submit(weak, grant)
    bench.clock.advance(24 * HOUR)
    admission.count_submit(weak, grant)


def test_a_full_cap_uses_up_none_of_the_others(bench: Bench, known: Challenge, proven: Make) -> None:
    grant = proven(solves_per_hour=1).grant(known.page)
    admission = _admission(bench, run_budget=10)
    admission.count_submit(known, grant)
    for _ in range(5):
        with pytest.raises(BudgetExhausted):
            admission.count_submit(known, grant)

    assert admission.submits() == 1


def test_a_cap_that_fills_in_between_gives_back_what_was_counted_before(
    bench: Bench, known: Challenge, proven: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = proven(solves_per_hour=2).grant(known.page)
    admission = _admission(bench, run_budget=1)
    admission.count_submit(known, grant)
    monkeypatch.setattr(bench.limits, "count", lambda counter: 0)  # what it was when looked at

    with pytest.raises(BudgetExhausted, match="budget of 1"):
        admission.count_submit(known, grant)
    monkeypatch.undo()

    _admission(bench, run_id="next").count_submit(known, grant)
    with pytest.raises(BudgetExhausted, match="2 solves an hour"):
        _admission(bench, run_id="next").count_submit(known, grant)


def test_a_submit_that_made_no_task_is_taken_back_from_every_cap(
    bench: Bench, challenge: Challenge, proven: Make
) -> None:
    grant = proven(solves_per_hour=1).grant(challenge.page)
    admission = _admission(bench, run_budget=1)

    for _ in range(PROBATION_SOLVES + 1):
        admission.take_back(admission.count_submit(challenge, grant))

    admission.count_submit(challenge, grant)
    with pytest.raises(BudgetExhausted):
        admission.count_submit(challenge, grant)


# Probation of a new sitekey.


def test_a_new_sitekey_gets_three_solves_until_one_is_verified(
    admission: Admission, challenge: Challenge, proven: Make
) -> None:
    grant = proven().grant(challenge.page)
    _count(admission, challenge, grant, PROBATION_SOLVES)

    with pytest.raises(BudgetExhausted, match="on probation"):
        admission.count_submit(challenge, grant)
    admission.note_verified(challenge)
    _count(admission, challenge, grant, 20)


def test_probation_waits_for_the_verdict_on_the_first_solves(
    bench: Bench, admission: Admission, challenge: Challenge, proven: Make
) -> None:
    grant = proven().grant(challenge.page)
    _count(admission, challenge, grant, PROBATION_SOLVES)
    kept: list[float] = []

    def keep() -> None:
        kept.append(bench.clock.monotonic())
        if len(kept) == 4:
            admission.note_verified(challenge)

    began = bench.clock.monotonic()
    admission.wait_for_probation(challenge, grant, _deadline(bench), keep)

    assert 20 <= bench.clock.monotonic() - began <= 22
    admission.count_submit(challenge, grant)


def test_probation_does_not_wait_for_ever(
    bench: Bench, admission: Admission, challenge: Challenge, proven: Make
) -> None:
    grant = proven().grant(challenge.page)
    _count(admission, challenge, grant, PROBATION_SOLVES)
    began = bench.clock.monotonic()

    admission.wait_for_probation(challenge, grant, _deadline(bench, 1000), _nothing)

    assert bench.clock.monotonic() - began == pytest.approx(150)


def test_probation_never_outlasts_the_attempts_deadline(
    bench: Bench, admission: Admission, challenge: Challenge, proven: Make
) -> None:
    grant = proven().grant(challenge.page)
    _count(admission, challenge, grant, PROBATION_SOLVES)
    deadline = _deadline(bench, 10)

    admission.wait_for_probation(challenge, grant, deadline, _nothing)

    assert deadline.remaining() == 0


def test_sandbox_tokens_are_never_on_probation(bench: Bench, admission: Admission) -> None:
    challenge = Challenge(bench.services().forms["signup"].type, "sitekey", BASE_URL)
    grant = FakeGrants().grant(BASE_URL)

    admission.wait_for_probation(challenge, grant, _deadline(bench), _nothing)
    _count(admission, challenge, grant, 10)

    assert bench.stop.waits == []


# Controls.


def test_a_form_that_accepted_a_token_is_known_to_all_workers_of_the_run_and_to_nobody_else(bench: Bench) -> None:
    _admission(bench).note_accepted("login")

    assert _admission(bench).accepted_by(["signup", "login"]) == "login"
    assert _admission(bench).accepted_by(["signup"]) is None
    assert _admission(bench, run_id="another").accepted_by(["login"]) is None
    assert _admission(bench, account="another").accepted_by(["login"]) is None
