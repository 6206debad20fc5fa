from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.ports import GrantSource, PollTimes, ThreadsInfo
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.store import Failed, Granted, Ready, Resume
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    DeadlineExceeded,
    OwnerLost,
    ProviderDown,
    ProviderUnavailable,
    Stopped,
)
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import KeyTimes, Timeouts
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.scope import FRESH_FOR
from pytest_captcha_qa.testing import BASE_URL, Bench, FakeGrants, ScriptedProvider

CHALLENGE = Challenge(CaptchaType.RECAPTCHA_V2, "sitekey", BASE_URL)
TIMES = KeyTimes.of(facts(CHALLENGE.type), timeouts=Timeouts())
PRINT = Fingerprint("print")
NOT_READY = None


class Solve:
    """One key on a bench, solved step by step; `tally` is what it has cost so far."""

    def __init__(self, bench: Bench, key: str = "key") -> None:
        self.bench = bench
        self.key = key
        self.tally = Tally()
        self.grants: GrantSource = FakeGrants()

    @property
    def solver(self) -> Solver:
        return self.bench.services().obtainer.solver

    @property
    def state(self) -> State:
        state = self.bench.store.peek(self.key)
        assert state is not None
        return state.state

    @property
    def told(self) -> list[str]:
        return [event.name for event in self.bench.events]

    def claim(self) -> Granted | Resume:
        claim = self.bench.store.claim(self.key, PRINT, "me", times=TIMES)
        assert isinstance(claim, Granted | Resume)
        return claim

    def deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds, what="the test", now=self.bench.clock.monotonic)

    def run(self, seconds: float = 300, challenge: Challenge = CHALLENGE) -> Ready:
        """Solve or resume, whatever the store says."""
        deadline = self.deadline(seconds)
        claim = self.claim()
        if isinstance(claim, Resume):
            return self.solver.resume(challenge, self.grants, claim, deadline, self.tally)
        return self.solver.solve(challenge, self.grants, claim, deadline, self.tally)

    def script(
        self,
        *,
        submits: Iterable[CaptchaQAError | str] = (),
        polls: Iterable[CaptchaQAError | None] = (),
    ) -> ScriptedProvider:
        self.bench.provider = replace(self.bench.provider, submits=submits, polls=polls)
        return self.bench.provider


@pytest.fixture
def solve(bench: Bench) -> Solve:
    return Solve(bench)


# The usual way.


def test_a_token_is_stored_with_its_task_and_wait(solve: Solve) -> None:
    solve.script(polls=[NOT_READY] * 4)

    ready = solve.run()

    assert ready.solution.task_id == "task-1"
    assert ready.solution.wait == pytest.approx(5.0)
    assert solve.state is State.READY
    assert (solve.tally.submits, solve.tally.polls) == (1, 5)


def test_wait_is_solve_and_detect_and_age_counts_from_the_last_not_ready(solve: Solve) -> None:
    provider = solve.script(polls=[NOT_READY] * 4)
    provider.before_answer = lambda: solve.bench.clock.advance(0.25)

    ready = solve.run()

    # Asked last in vain 1 s after the answer before; then 0.25 s of answer, 1 s of pause, 0.25 s of answer.
    assert solve.tally.detect == pytest.approx(1.5)
    assert solve.tally.solve == pytest.approx(4.75)
    assert ready.solution.wait == pytest.approx(solve.tally.solve + solve.tally.detect)
    assert ready.age == pytest.approx(1.5)
    assert ready.expires_in == pytest.approx(facts(CHALLENGE.type).keep - 1.5)


def test_a_token_that_was_there_at_the_first_poll_is_as_old_as_its_task(solve: Solve) -> None:
    ready = solve.run()

    assert ready.age == pytest.approx(ready.solution.wait) == pytest.approx(1.0)


def test_the_task_id_is_stored_before_waiting_starts(solve: Solve) -> None:
    states: list[State] = []
    provider = solve.script(polls=[NOT_READY])
    provider.before_answer = lambda: states.append(solve.state)

    solve.run()

    assert states == [State.INTENT, State.SUBMITTED, State.SUBMITTED]


def test_a_submit_is_counted_before_it_is_sent(solve: Solve) -> None:
    counted: list[tuple[int, int]] = []
    provider = solve.script()
    provider.before_answer = lambda: counted.append((solve.tally.submits, solve.solver.admission.submits()))

    solve.run()

    assert counted == [(1, 1), (1, 1)]


def test_the_first_poll_and_the_pauses_are_the_dialects(solve: Solve) -> None:
    solve.bench.provider = ScriptedProvider(polls=[NOT_READY] * 2)
    solve.bench.provider.times = replace(solve.bench.provider.times, first=8.0, interval=5.0)

    solve.run()

    assert solve.bench.stop.waits == [8, 5, 5]


def test_a_long_pause_renews_lease_and_slot(solve: Solve) -> None:
    solve.bench.provider.times = replace(solve.bench.provider.times, first=100.0)
    seen: list[bool] = []
    holder = solve.bench.store

    def look() -> None:
        state = holder.peek("key")
        assert state is not None
        slot_is_taken = not solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1)
        seen.append(state.holder.until > solve.bench.clock.monotonic() and slot_is_taken)

    solve.bench.provider.before_answer = look

    solve.run()

    assert seen == [True, True]


def test_the_slot_is_free_after_the_solve(solve: Solve) -> None:
    solve.run()

    assert solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1)


def test_waiting_for_a_slot_counts_as_queue_and_not_as_wait(solve: Solve) -> None:
    solve.bench.limits_rules = replace(solve.bench.limits_rules, max_in_flight=1)
    solve.bench.limits.acquire("main:slots", "other", limit=1, lease=20)

    ready = solve.run()

    assert 20 <= solve.tally.queue < 21
    assert ready.solution.wait == pytest.approx(1.0)


def test_calls_get_a_deadline_within_the_attempts(solve: Solve) -> None:
    left: list[float] = []

    class Watching(ScriptedProvider):
        def submit(self, challenge: Challenge, grant: object, deadline: Deadline) -> str:
            left.append(deadline.remaining())
            return "task"

        def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> None:
            left.append(deadline.remaining())

    solve.bench.provider = Watching()

    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=33)

    assert left[:2] == [TIMES.http, TIMES.http]  # no call gets more than its own limit
    assert left[-1] == 1
    assert max(left) == TIMES.http


# What goes wrong before a task is accepted.


def test_a_busy_provider_is_asked_again_without_counting_a_submit(solve: Solve) -> None:
    provider = solve.script(submits=[errors.ProviderBusy("no slot")] * 5)

    solve.run()

    assert (len(provider.told), solve.tally.submits, solve.solver.admission.submits()) == (6, 1, 1)
    assert solve.told == [events.SOLVE_RETRIED] * 5


def test_a_busy_providers_slot_is_free_while_waiting(solve: Solve) -> None:
    solve.bench.limits_rules = replace(solve.bench.limits_rules, max_in_flight=1)
    solve.script(submits=[errors.ProviderBusy("no slot")])
    free: list[bool] = []
    waiting = solve.bench.stop.wait

    def wait(seconds: float) -> None:
        if seconds == 5.0:
            free.append(solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1))
        waiting(seconds)

    solve.bench.stop.wait = wait  # type: ignore[method-assign]

    solve.run()

    assert free == [True]


def test_busy_until_the_deadline_ends_in_that_error(solve: Solve) -> None:
    solve.script(submits=[errors.ProviderBusy("no slot")] * 100)

    with pytest.raises(errors.ProviderBusy):
        solve.run(seconds=60)

    assert solve.state is State.FAILED


def test_a_zero_balance_with_all_threads_in_use_only_means_busy(solve: Solve) -> None:
    provider = solve.script(submits=[errors.BalanceExhausted("zero balance")])
    provider.slots = ThreadsInfo(threads=5, working=5)

    solve.run()

    assert len(provider.told) == 2
    solve.solver.admission.check_pause()


def test_a_zero_balance_with_a_free_thread_is_asked_about_once_more(solve: Solve) -> None:
    provider = solve.script(submits=[errors.BalanceExhausted("zero balance")])
    provider.slots = ThreadsInfo(threads=5, working=4)

    solve.run()

    assert len(provider.told) == 2


def test_a_zero_balance_twice_with_a_free_thread_pauses_the_account(solve: Solve) -> None:
    provider = solve.script(submits=[errors.BalanceExhausted("zero balance")] * 9)
    provider.slots = ThreadsInfo(threads=5, working=4)

    with pytest.raises(errors.BalanceExhausted):
        solve.run()

    assert len(provider.told) == 2
    with pytest.raises(errors.BalanceExhausted):
        solve.solver.admission.check_pause()


@pytest.mark.parametrize("slots", [None, ThreadsInfo(0, 0)])
def test_a_zero_balance_otherwise_pauses_the_account(solve: Solve, slots: ThreadsInfo | None) -> None:
    provider = solve.script(submits=[errors.BalanceExhausted("zero balance")])
    provider.slots = slots

    with pytest.raises(errors.BalanceExhausted):
        solve.run()

    assert solve.tally.submits == 0
    with pytest.raises(errors.BalanceExhausted):
        solve.solver.admission.check_pause()


def test_a_zero_balance_is_one_if_the_threads_cannot_be_asked_for(
    solve: Solve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(deadline: Deadline) -> ThreadsInfo:
        raise ProviderUnavailable("away")

    provider = solve.script(submits=[errors.BalanceExhausted("zero balance")])
    monkeypatch.setattr(provider, "threads", away)

    with pytest.raises(errors.BalanceExhausted):
        solve.run()


def test_a_wrong_key_pauses_the_account(solve: Solve) -> None:
    solve.script(submits=[errors.KeyRejected("wrong")])

    with pytest.raises(errors.KeyRejected):
        solve.run()

    with pytest.raises(errors.KeyRejected):
        solve.solver.admission.check_pause()


def test_a_submit_that_may_have_arrived_counts_and_is_told(solve: Solve) -> None:
    solve.script(submits=[ProviderUnavailable("reset", sent=True)])

    solve.run()

    assert solve.tally.submits == 2
    assert solve.told == [events.SUBMIT_UNKNOWN, events.SOLVE_RETRIED]


def test_a_submit_of_which_nothing_was_sent_does_not_count(solve: Solve) -> None:
    solve.script(submits=[ProviderUnavailable("refused", sent=False)])

    solve.run()

    assert solve.tally.submits == 1
    assert solve.told == [events.SOLVE_RETRIED]


def test_a_provider_that_is_down_is_given_up_after_three_tries(solve: Solve) -> None:
    provider = solve.script(submits=[ProviderUnavailable("down", sent=False)] * 9)

    with pytest.raises(ProviderUnavailable):
        solve.run()

    assert len(provider.told) == 3
    assert solve.state is State.FAILED


@pytest.mark.parametrize(
    ("error", "retry_from"),
    [
        (errors.RequestRejected("malformed"), None),
        (errors.Unsolvable("no"), 0.0),
        (errors.KeyRejected("wrong"), 2.0),
        (errors.BalanceExhausted("empty"), 2.0),
        (errors.ScopeDenied("stale", reason="grant_mismatch"), 2.0),
        (errors.ConfigError("no dialect"), 2.0),
    ],
    ids=lambda value: getattr(value, "code", None),
)
def test_the_key_says_whether_and_when_it_may_be_tried_again(
    solve: Solve, error: CaptchaQAError, retry_from: float | None
) -> None:
    solve.script(submits=[error])
    now = solve.bench.clock.monotonic()

    with pytest.raises(type(error)):
        solve.run()

    state = solve.bench.store.peek("key")
    assert state is not None
    assert state.failure is not None
    assert state.failure.code == error.code
    assert state.failure.not_before == (None if retry_from is None else now + retry_from)


def test_a_full_budget_sends_nothing(solve: Solve) -> None:
    solve.bench.limits_rules = replace(solve.bench.limits_rules, run_budget=0)

    with pytest.raises(errors.BudgetExhausted):
        solve.run()

    assert solve.bench.provider.told == []
    assert (solve.state, solve.tally.submits) == (State.FAILED, 0)


def test_a_stop_before_the_submit_leaves_the_key_to_others(solve: Solve) -> None:
    solve.bench.stop.set("drain")
    solve.bench.limits_rules = replace(solve.bench.limits_rules, spacing=1.0)

    with pytest.raises(Stopped):
        solve.run()

    assert (solve.state, solve.bench.provider.told) == (State.LEASED, [])


def test_a_grant_that_went_stale_in_the_queue_is_asked_for_again(
    bench: Bench, challenge: Challenge, proven: Callable[..., GrantSource]
) -> None:
    solve = Solve(bench)
    solve.grants = proven()
    fresh: list[bool] = []

    class Watching(ScriptedProvider):
        def submit(self, challenge: Challenge, grant: object, deadline: Deadline) -> str:
            fresh.append(grant.covers(challenge.page))  # type: ignore[attr-defined]
            return super().submit(challenge, grant, deadline)  # type: ignore[arg-type]

    bench.provider = Watching()
    bench.limits_rules = replace(bench.limits_rules, max_in_flight=1)
    bench.limits.acquire("main:slots", "other", limit=1, lease=FRESH_FOR + 100)

    solve.run(seconds=2 * FRESH_FOR, challenge=challenge)

    assert fresh == [True]


# What goes wrong while a paid task is polled.


@pytest.mark.parametrize(
    "fault",
    [
        ProviderUnavailable("reset"),
        errors.ProviderBusy("slow down"),
        errors.BalanceExhausted("zero balance"),
    ],
    ids=lambda fault: fault.code,
)
def test_a_fault_while_polling_is_polled_through(solve: Solve, fault: CaptchaQAError) -> None:
    provider = solve.script(polls=[fault, NOT_READY, fault, fault])

    ready = solve.run()

    assert ready.solution.task_id == "task-1"
    assert (len(provider.told), provider.polled) == (1, ["task-1"] * 5)


@pytest.mark.parametrize(
    "fault",
    [
        ProviderUnavailable("reset"),
        errors.ProviderBusy("slow down"),
        errors.BalanceExhausted("zero balance"),
        errors.KeyRejected("wrong"),
    ],
    ids=lambda fault: fault.code,
)
def test_a_fault_that_outlasts_the_deadline_leaves_the_task_to_be_resumed(solve: Solve, fault: CaptchaQAError) -> None:
    provider = solve.script(polls=[fault] * 10)
    with pytest.raises(type(fault)) as raised:
        solve.run(seconds=10)
    assert (solve.state, raised.value.task_id) == (State.SUBMITTED, "task-1")

    solve.bench.clock.advance(TIMES.lease + 20)
    solve.bench.provider = ScriptedProvider()
    ready = solve.run()

    assert ready.solution.task_id == "task-1"
    assert (provider.polled[0], solve.bench.provider.told) == ("task-1", [])


def test_polls_slow_down_while_they_fail_and_their_pause_can_be_asked_for(solve: Solve) -> None:
    solve.script(polls=[ProviderUnavailable("1"), ProviderUnavailable("2", retry_after=20), NOT_READY, NOT_READY])

    solve.run()

    assert solve.bench.stop.waits == [1, 1, 10, 10, 1, 1]


def test_polls_that_fail_slowly_do_not_let_the_lease_lapse(solve: Solve) -> None:
    provider = solve.script(polls=[errors.RateLimited("late", retry_after=TIMES.renew)] * 5)
    left: list[float] = []

    def look() -> None:
        state = solve.bench.store.peek("key")
        assert state is not None
        solve.bench.clock.advance(TIMES.http)
        left.append(state.holder.until - solve.bench.clock.monotonic())

    provider.before_answer = look

    solve.run()

    assert len(left) == 7
    assert min(left) > 0


def test_a_key_that_is_rejected_while_polling_pauses_the_account(solve: Solve) -> None:
    solve.script(polls=[errors.KeyRejected("wrong")])

    with pytest.raises(errors.KeyRejected):
        solve.run()

    with pytest.raises(errors.KeyRejected):
        solve.solver.admission.check_pause()


@pytest.mark.parametrize("error", [errors.Unsolvable("no"), errors.TaskUnknown("which?")])
def test_a_task_that_is_lost_may_be_made_once_more_by_anybody(solve: Solve, error: CaptchaQAError) -> None:
    solve.script(polls=[error, error])
    with pytest.raises(type(error)) as raised:
        solve.run()
    assert raised.value.task_id == "task-1"

    with pytest.raises(type(error)):
        solve.run()

    assert solve.bench.store.claim("key", PRINT, "next", times=TIMES).__class__.__name__ == "Failed"


def test_a_deadline_while_polling_leaves_the_task_and_counts_only_polls_that_were_made(solve: Solve) -> None:
    provider = solve.script(polls=[NOT_READY] * 100)

    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=10)

    assert solve.state is State.SUBMITTED
    assert solve.tally.polls == len(provider.polled) == 9
    assert solve.tally.task_id == "task-1"


def test_a_stop_while_polling_leaves_the_task(solve: Solve) -> None:
    provider = solve.script(polls=[NOT_READY] * 5)
    provider.before_answer = lambda: solve.bench.stop.set("drain") if provider.polled else None

    with pytest.raises(Stopped):
        solve.run()

    assert solve.state is State.SUBMITTED


# Resuming.


def test_a_task_is_resumed_by_its_id_at_once_and_without_a_submit(solve: Solve) -> None:
    provider = solve.script(polls=[NOT_READY] * 3)
    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=4)
    solve.bench.clock.advance(TIMES.lease)
    solve.tally = Tally()
    solve.bench.stop.waits.clear()

    ready = solve.run()

    assert (solve.tally.submits, solve.tally.polls, len(provider.told)) == (0, 1, 1)
    assert (solve.tally.task_id, solve.bench.stop.waits) == ("task-1", [0])
    assert ready.solution.wait == pytest.approx(4 + TIMES.lease)


def test_a_resumed_token_is_as_old_as_the_last_not_ready_that_anybody_saw(solve: Solve) -> None:
    solve.script(polls=[NOT_READY] * 200)
    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=150)
    solve.bench.provider = ScriptedProvider()
    solve.bench.clock.advance(TIMES.lease)

    ready = solve.run()

    assert ready.age == pytest.approx(TIMES.lease + 1)  # the last poll was a second before the deadline
    assert ready.expires_in > 0
    assert ready.solution.wait == pytest.approx(solve.tally.solve + solve.tally.detect)


# The store.


def test_a_task_whose_owner_was_replaced_during_the_submit_is_told_as_orphan(solve: Solve) -> None:
    provider = solve.script()

    def another_takes_over() -> None:
        provider.before_answer = lambda: None
        solve.bench.clock.advance(1000)
        solve.bench.store.claim("key", PRINT, "other", times=TIMES)

    provider.before_answer = another_takes_over

    with pytest.raises(OwnerLost):
        solve.run(seconds=5000)

    assert [(event.name, event.data["task_id"]) for event in solve.bench.events] == [(events.TASK_ORPHANED, "task-1")]


@pytest.mark.parametrize("call", ["renew", "intend", "submitted", "solved"])
@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), OwnerLost("late")])
def test_a_store_that_fails_ends_the_solve_and_gives_the_slot_back(
    solve: Solve, monkeypatch: pytest.MonkeyPatch, call: str, error: errors.StoreError
) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error

    solve.bench.limits_rules = replace(solve.bench.limits_rules, max_in_flight=1)
    monkeypatch.setattr(solve.bench.store, call, fails)

    with pytest.raises(type(error)):
        solve.run()

    assert solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1)
    nothing_was_sent = call in ("renew", "intend")
    assert (solve.tally.submits, solve.bench.provider.told == []) == (int(not nothing_was_sent), nothing_was_sent)
    orphaned = isinstance(error, OwnerLost) and not nothing_was_sent
    assert solve.told == ([events.TASK_ORPHANED] if orphaned else [])


def test_a_key_that_cannot_be_marked_failed_does_not_hide_why_it_failed(
    solve: Solve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise errors.StoreUnavailable("away")

    solve.script(submits=[errors.KeyRejected("wrong")])
    monkeypatch.setattr(solve.bench.store, "failed", away)

    with pytest.raises(errors.KeyRejected):
        solve.run()


# A service that is out, briefly or for long.


class Outage(ScriptedProvider):
    """A service that answers neither submits nor polls until some second of the bench's clock."""

    def __init__(self, bench: Bench, *, down: tuple[str, ...] = ("submit", "poll"), seconds: float = 1e9) -> None:
        super().__init__()
        self._bench, self._down = bench, down
        self.until = bench.clock.monotonic() + seconds
        self.calls: list[str] = []

    def _fail_if_down(self, call: str) -> None:
        self.calls.append(call)
        if call in self._down and self._bench.clock.monotonic() < self.until:
            raise ProviderUnavailable("refused", sent=False)

    def submit(self, challenge: Challenge, grant: object, deadline: Deadline) -> str:
        self._fail_if_down("submit")
        return super().submit(challenge, grant, deadline)  # type: ignore[arg-type]

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        self._fail_if_down("poll")
        return super().poll(challenge, task_id, deadline)


def another(solve: Solve) -> Solve:
    """The next attempt of the same account, with a key of its own."""
    return Solve(solve.bench, key=f"{solve.key}+")


def test_a_blip_of_ten_seconds_costs_no_attempt(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench, seconds=10)

    solve.run()

    assert outage.calls == ["submit", "submit", "submit", "poll"]
    assert solve.tally.submits == 1


def test_a_run_against_a_dead_service_ends_in_seconds(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench)
    began = solve.bench.clock.monotonic()

    attempt = solve
    for _ in range(100):
        with pytest.raises(ProviderUnavailable):
            attempt.run()
        assert attempt.state is State.FAILED
        attempt = another(attempt)

    assert solve.bench.clock.monotonic() - began == pytest.approx(10.5)
    assert outage.calls == ["submit"] * 4  # three tries of the first, one probe


def test_a_service_that_is_back_is_found_by_one_probe(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench)
    with pytest.raises(ProviderUnavailable):
        solve.run()
    outage.until = solve.bench.clock.monotonic()

    another(solve).run()
    another(another(solve)).run()

    assert outage.calls == ["submit"] * 3 + ["submit", "poll"] * 2


def test_results_that_cannot_be_had_for_a_few_seconds_cost_no_attempt(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench, down=("poll",), seconds=9)

    ready = solve.run()

    assert ready.solution.task_id == "task-1"
    assert outage.calls.count("submit") == 1


def test_a_task_whose_result_cannot_be_had_is_left_within_seconds_and_resumed_later(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench, down=("poll",))
    began = solve.bench.clock.monotonic()

    with pytest.raises(ProviderUnavailable) as raised:
        solve.run()

    assert solve.bench.clock.monotonic() - began < 20
    assert (solve.state, raised.value.task_id) == (State.SUBMITTED, "task-1")
    outage.until = solve.bench.clock.monotonic()
    solve.bench.clock.advance(TIMES.lease)
    assert solve.run().solution.task_id == "task-1"
    assert outage.calls.count("submit") == 1


def test_nothing_is_paid_for_while_results_cannot_be_had(solve: Solve) -> None:
    solve.bench.provider = outage = Outage(solve.bench, down=("poll",))
    with pytest.raises(ProviderUnavailable):
        solve.run()

    with pytest.raises(ProviderDown, match="is down"):
        another(solve).run()

    assert outage.calls.count("submit") == 1


def test_nobody_waits_for_a_slot_to_submit_to_a_service_that_is_down(solve: Solve) -> None:
    solve.bench.provider = Outage(solve.bench, down=("submit",))
    with pytest.raises(ProviderUnavailable):
        solve.run()
    solve.bench.limits_rules = replace(solve.bench.limits_rules, max_in_flight=1)
    solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1000)
    began = solve.bench.clock.monotonic()

    with pytest.raises(ProviderDown):
        another(solve).run()

    assert solve.bench.clock.monotonic() - began < 6


def test_a_submit_that_was_not_made_counts_nowhere(solve: Solve) -> None:
    solve.bench.provider = Outage(solve.bench)
    with pytest.raises(ProviderUnavailable):
        solve.run()
    late = another(solve)
    with pytest.raises(ProviderUnavailable):
        late.run()  # the probe
    late = another(late)

    with pytest.raises(ProviderDown):
        late.run()

    assert (late.tally.submits, late.solver.admission.submits()) == (0, 0)


def test_a_solver_that_does_not_run_is_told_after_one_try(solve: Solve) -> None:
    provider = solve.script(submits=[errors.ProviderNotRunning("capskip is not running")] * 9)

    with pytest.raises(errors.ProviderNotRunning):
        solve.run()

    assert len(provider.told) == 1


# A busy service.


def test_a_rate_limit_holds_the_submits_of_the_account(solve: Solve) -> None:
    solve.script(submits=[errors.RateLimited("MAX_USER_TURN", retry_after=10)])
    began = solve.bench.clock.monotonic()

    solve.run()

    assert solve.bench.clock.monotonic() - began > 10
    [wait] = [seconds for seconds in solve.bench.stop.waits if 0 < seconds < 0.3]
    assert 0.1 <= wait <= 0.2  # spread from the others


def test_a_service_that_is_polled_too_often_is_left_alone_by_all_workers(solve: Solve) -> None:
    solve.script(polls=[errors.RateLimited("ERROR: 1005", retry_after=100)])
    with pytest.raises(errors.RateLimited):
        solve.run(seconds=20)
    held_until = solve.bench.clock.monotonic() + 100
    polled: list[float] = []
    provider = ScriptedProvider()
    provider.before_answer = lambda: polled.append(solve.bench.clock.monotonic()) if provider.polled else None
    solve.bench.provider = provider

    ready = another(solve).run()

    assert ready.solution.task_id == "task-1"
    assert [moment >= held_until for moment in polled] == [True]


def test_no_task_is_paid_for_while_its_result_may_not_be_asked_for(solve: Solve) -> None:
    solve.script(polls=[errors.RateLimited("ERROR: 1005", retry_after=300)])
    with pytest.raises(errors.RateLimited):
        solve.run(seconds=20)

    late = another(solve)
    with pytest.raises(errors.RateLimited, match="asked account 'main' to pause"):
        late.run(seconds=20)

    assert len(solve.bench.provider.told) == 1


def test_a_pause_longer_than_the_attempt_ends_the_next_one_at_once(solve: Solve) -> None:
    solve.script(submits=[errors.RateLimited("ERROR: 1001", retry_after=600)])
    with pytest.raises(errors.RateLimited):
        solve.run()
    began = solve.bench.clock.monotonic()

    with pytest.raises(errors.RateLimited, match="asked account 'main' to pause"):
        another(solve).run()

    assert solve.bench.clock.monotonic() == began
    assert len(solve.bench.provider.told) == 1


@pytest.mark.parametrize("calls", ["submits", "polls"])
def test_an_hour_that_a_service_asks_for_is_ten_minutes_and_told(solve: Solve, calls: str) -> None:
    limited = [errors.RateLimited("HTTP 429", retry_after=3600)]
    solve.script(submits=limited if calls == "submits" else (), polls=limited if calls == "polls" else ())
    with pytest.raises(errors.RateLimited):
        solve.run()
    [held] = [event.data for event in solve.bench.events if event.name == events.ACCOUNT_HELD]
    assert held == {"account": "main", "code": "rate_limited", "seconds": 600, "asked": 3600}
    with pytest.raises(errors.RateLimited, match="may submit again in 600 s"):
        another(solve).run()

    solve.bench.clock.advance(600)
    solve.script()

    assert another(solve).run().solution.task_id == "task-1"


@pytest.mark.parametrize("error", [errors.KeyRejected, errors.BalanceExhausted])
def test_a_pause_that_a_service_asks_for_with_an_error_is_told(solve: Solve, error: type[CaptchaQAError]) -> None:
    solve.script(submits=[error("a code", retry_after=300)])
    with pytest.raises(error):
        solve.run()
    [held] = [event.data for event in solve.bench.events if event.name == events.ACCOUNT_HELD]
    assert held == {"account": "main", "code": error.code, "seconds": 300}


@pytest.mark.parametrize("error", [errors.RateLimited("429", retry_after=59), errors.KeyRejected("wrong")])
def test_a_short_pause_and_one_that_nobody_asked_for_are_no_events(solve: Solve, error: CaptchaQAError) -> None:
    solve.script(submits=[error])
    with suppress(errors.KeyRejected):
        solve.run()
    assert events.ACCOUNT_HELD not in solve.told


def test_the_services_threads_are_the_ceiling(solve: Solve) -> None:
    solve.bench.provider.slots = ThreadsInfo(threads=1, working=0)
    solve.run()
    solve.bench.limits.acquire("main:slots", "other", limit=1, lease=20)

    late = another(solve)
    late.run()

    assert late.tally.queue >= 20


@pytest.mark.parametrize(
    "refusal",
    [errors.ProviderBusy("ERROR_NO_SLOT_AVAILABLE", retry_after=5), errors.BalanceExhausted("ERROR_ZERO_BALANCE")],
    ids=lambda error: error.code,
)
def test_a_thread_that_was_refused_means_fewer_in_flight_for_a_while(solve: Solve, refusal: CaptchaQAError) -> None:
    solve.script(submits=[refusal]).slots = ThreadsInfo(threads=3, working=3)

    solve.run()

    free = [solve.bench.limits.acquire("main:slots", f"other {n}", limit=3, lease=1) for n in range(3)]
    assert free == [True, True, False]
    solve.solver.admission.check_pause()


# A service that says nothing about a task.


def test_silence_about_a_task_is_waited_through(solve: Solve) -> None:
    solve.script(polls=[errors.TaskSilent("nothing")] * 30)

    ready = solve.run()

    assert ready.solution.task_id == "task-1"
    assert ready.age == pytest.approx(31)  # silence is no "not ready"


def test_a_task_of_which_nothing_is_heard_is_given_up_and_made_once_more(solve: Solve) -> None:
    solve.script(polls=[errors.TaskSilent("nothing")] * 200)

    with pytest.raises(errors.TaskUnknown, match="nothing, for 60 s; the task is given up"):
        solve.run()

    assert solve.state is State.FAILED
    assert isinstance(solve.claim(), Granted)


# What a resumed task holds and knows.


def test_a_resumed_task_holds_a_slot_though_none_is_free(solve: Solve) -> None:
    solve.script(polls=[NOT_READY] * 3)
    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=4)
    solve.bench.clock.advance(TIMES.lease)
    solve.bench.limits_rules = replace(solve.bench.limits_rules, max_in_flight=1)
    solve.bench.limits.acquire("main:slots", "other", limit=1, lease=1000)
    held: list[bool] = []
    solve.bench.provider = ScriptedProvider(
        before_answer=lambda: held.append(not solve.bench.limits.acquire("main:slots", "third", limit=2, lease=1))
    )

    solve.run()

    assert held == [True]
    assert solve.bench.limits.acquire("main:slots", "third", limit=2, lease=1)


def test_a_resumed_task_remembers_the_tries_before_it(solve: Solve) -> None:
    solve.script(polls=[errors.Unsolvable("no")])
    with pytest.raises(errors.Unsolvable):
        solve.run()
    solve.script(polls=[NOT_READY] * 9)
    with pytest.raises(DeadlineExceeded):
        solve.run(seconds=5)
    solve.bench.clock.advance(TIMES.lease)
    solve.script(polls=[errors.Unsolvable("no")])

    claim = solve.claim()
    assert isinstance(claim, Resume)
    assert claim.tries == 1
    with pytest.raises(errors.Unsolvable):
        solve.solver.resume(CHALLENGE, solve.grants, claim, solve.deadline(300), solve.tally)

    assert isinstance(solve.bench.store.claim("key", PRINT, "next", times=TIMES), Failed)


# What it costs.


def test_the_prices_of_all_solves_of_an_attempt_are_added_up(solve: Solve) -> None:
    priced = Solution({"token": "x" * 40}, price=0.003)
    for number in range(2):
        solve.bench.provider = ScriptedProvider(polls=[priced])
        each = Solve(solve.bench, key=f"key {number}")
        each.tally = solve.tally
        assert each.run().solution.price == 0.003

    assert solve.tally.price == pytest.approx(0.006)


def test_what_a_provider_does_not_say_has_no_price(solve: Solve) -> None:
    solve.run()

    assert solve.tally.price is None


@pytest.mark.parametrize("times", [PollTimes(first=TIMES.solve, interval=1), PollTimes(first=1, interval=TIMES.keep)])
def test_nothing_is_submitted_where_no_poll_could_bring_a_usable_token(solve: Solve, times: PollTimes) -> None:
    solve.bench.provider = ScriptedProvider(times=times)

    with pytest.raises(errors.ConfigError, match="cannot be used"):
        solve.run()

    assert (solve.bench.provider.told, solve.tally.submits, solve.state) == ([], 0, State.FAILED)
