from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from pytest_captcha_qa.engine.admission import HOUR, Admission
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    DeadlineExceeded,
    KeyRejected,
    ProviderUnavailable,
    Stopped,
    StoreUnavailable,
)
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import AccountLimits
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
    return Admission(account, account, run_id, bench.limits, limits, bench.clock, bench.stop)


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


def test_a_service_that_is_down_is_left_alone_for_the_rest_of_the_run_only(bench: Bench) -> None:
    here = _admission(bench)
    here.pause(ProviderUnavailable("the connection was refused"))

    with pytest.raises(ProviderUnavailable, match=r"paused until \d\d:\d\d:\d\d UTC, after the connection was refused"):
        here.check_pause()
    _admission(bench, run_id="the next run").check_pause()
    bench.clock.advance(20)
    here.check_pause()


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


def test_submits_are_spaced(bench: Bench) -> None:
    admission = _admission(bench, spacing=0.2)

    for _ in range(3):
        admission.wait_for_turn(_deadline(bench))

    assert bench.stop.waits == [0, pytest.approx(0.2), pytest.approx(0.2)]


def test_without_spacing_nobody_waits_for_a_turn(bench: Bench, admission: Admission) -> None:
    admission.wait_for_turn(_deadline(bench))

    assert bench.stop.waits == []


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
