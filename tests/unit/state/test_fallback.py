"""A shared store that is lost, for a moment, for good, before or after it acted: what a worker does without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_captcha_qa.engine.events import Event
from pytest_captcha_qa.engine.store import Busy, Done, Expired, Granted, Lease, Lost, Ready, Resume, Won
from pytest_captcha_qa.errors import OwnerLost, StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes, OnStoreLoss
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.apart import OwnKeys
from pytest_captcha_qa.state.fallback import FallbackStore
from pytest_captcha_qa.state.fallback_limits import FallbackLimits
from pytest_captcha_qa.state.memory import MemoryLimits, MemoryStore
from pytest_captcha_qa.state.outage import Outage
from pytest_captcha_qa.testing import ManualClock, ManualStop

KEY, OTHER = "5e" * 32, "00" * 32
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
FORM = Fingerprint("signup")


def solution(name: str = "first") -> Solution:
    return Solution({"token": f"token of {name}"}, task_id=name)


@dataclass
class Line:
    """The way to the shared store: `up`, `down` (nothing arrives) or `deaf` (it acts, and its answer is lost)."""

    state: str = "up"
    calls: int = 0
    outages: int | None = None

    def carry(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def carried(*args: Any, **given: Any) -> Any:
            self.calls += 1
            state = self.state
            if self.outages is not None:
                self.outages -= 1
                self.state = "up" if self.outages <= 0 else state
            if state == "down":
                raise StoreUnavailable("the shared store cannot be reached")
            answer = call(*args, **given)
            if state == "deaf":
                raise StoreUnavailable("the shared store does not answer in time", sent=True)
            return answer

        return carried


class Remote:
    """A store or limits at the other end of the line."""

    def __init__(self, real: Any, line: Line) -> None:
        self._real, self._line = real, line

    def __getattr__(self, name: str) -> Any:
        return self._line.carry(getattr(self._real, name))


@dataclass
class World:
    """Two workers on one shared store; the first one's line may fail."""

    policy: OnStoreLoss = OnStoreLoss.CONTINUE
    processes: int = 4
    clock: ManualClock = field(default_factory=ManualClock)
    line: Line = field(default_factory=Line)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = self.clock.monotonic
        self.shared, self.shared_limits = MemoryStore(clock=now), MemoryLimits(clock=now)
        self.stop = ManualStop(self.clock)
        limits = Remote(self.shared_limits, self.line)
        probe = lambda: limits.raise_flag("reachable", "yes", seconds=60)  # noqa: E731
        self.outage = Outage("redis://cache", probe, self.clock, self.stop, self.events.append)
        remote, own = Remote(self.shared, self.line), OwnKeys(clock=now)
        self.store = FallbackStore(remote, own, self.outage, self.policy, self.events.append)
        self.limits = FallbackLimits(
            limits, MemoryLimits(clock=now), self.outage, self.policy, processes=self.processes
        )

    @property
    def told(self) -> list[str]:
        return [event.name for event in self.events]

    def claim(self, store: Any = None, owner: str = "a", *, key: str = KEY, fresh: bool = False) -> Any:
        return (store or self.store).claim(key, FORM, owner, times=TIMES, fresh=fresh)

    def elsewhere(self, owner: str = "other", **given: Any) -> Any:
        """What a worker whose line is sound gets."""
        return self.claim(self.shared, owner, **given)

    def submitted(self, task: str = "first", **given: Any) -> Lease:
        lease: Lease = self.claim(**given).lease
        self.store.intend(lease)
        self.store.submitted(lease, task)
        return lease

    def ready(self, task: str = "first", **given: Any) -> Ready:
        return self.store.solved(self.submitted(task, **given), solution(task), age_bound=0)

    def lose(self, how: str = "down") -> None:
        self.line.state = how

    def mend(self) -> None:
        """Let the line be sound again, for long enough that it is noticed."""
        self.line.state = "up"
        self.clock.advance(31)


@pytest.fixture
def world() -> World:
    return World()


# The outage itself


def test_a_moment_without_the_store_is_waited_out_and_nobody_hears_of_it(world: World) -> None:
    world.line.state, world.line.outages = "down", 4
    assert isinstance(world.claim(), Granted)
    assert isinstance(world.elsewhere(), Busy)
    assert world.told == []
    assert sum(world.stop.waits) < 3


def test_a_reply_that_was_lost_is_asked_for_again_and_is_the_same(world: World) -> None:
    world.line.state, world.line.outages = "deaf", 1
    lease = world.claim().lease
    world.line.state, world.line.outages = "deaf", 1
    world.store.intend(lease)
    world.store.submitted(lease, "first")
    assert isinstance(world.elsewhere(), Busy)
    assert world.told == []


def test_a_store_that_is_lost_is_said_once_and_costs_its_patience_once(world: World) -> None:
    world.lose()
    assert isinstance(world.claim(), Granted)
    waited = sum(world.stop.waits)
    assert 2 <= waited <= 3
    calls = world.line.calls
    for number in range(5):
        world.claim(key=f"{number}" * 64)
    assert sum(world.stop.waits) == waited
    assert world.line.calls <= calls + 1
    assert world.told == ["store_degraded"]
    assert world.events[0].data == {"store": "redis://cache", "why": "the shared store cannot be reached"}


def test_it_is_looked_for_ever_less_often_and_found_by_itself(world: World) -> None:
    world.lose()
    world.claim()
    calls = world.line.calls
    for _ in range(600):
        world.clock.advance(1)
        world.claim(key=OTHER)
    assert 20 <= world.line.calls - calls <= 30
    world.line.state = "up"
    world.clock.advance(31)
    world.claim(key="11" * 32)
    assert world.told == ["store_degraded", "store_back"]
    assert world.elsewhere(key="11" * 32) == Busy(1.0)
    world.lose()
    world.claim(key="22" * 32)
    assert world.told.count("store_degraded") == 2


def test_a_store_that_takes_no_write_is_not_back(world: World) -> None:
    world.lose()
    world.claim()
    calls = world.line.calls
    world.clock.advance(2)
    world.claim(key=OTHER)
    assert world.line.calls == calls + 1
    assert world.outage.lasts


# Going on alone


def test_a_key_that_nobody_has_begun_is_solved_alone_and_the_submit_is_an_event(world: World) -> None:
    world.lose()
    offer = world.ready()
    won = world.store.spend(offer, "c")
    assert isinstance(won, Won)
    world.store.verified(KEY, 1, "pass")
    world.store.done(won.lease, "ok", session="cookies")
    assert world.claim(owner="b") == Done("ok", "cookies")
    assert world.told == ["store_degraded", "submitted_alone"]
    world.mend()
    assert world.claim(owner="b") == Done("ok", "cookies")
    assert isinstance(world.elsewhere(), Granted)  # W4: only task ids are brought back


def test_a_lease_of_the_shared_store_goes_on_alone(world: World) -> None:
    lease = world.claim().lease
    world.lose()
    world.store.intend(lease)
    world.store.submitted(lease, "first")
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert isinstance(world.store.spend(offer, "c"), Won)
    assert world.told == ["store_degraded", "submitted_alone"]


def test_a_token_whose_task_the_shared_store_knows_is_never_spent_alone(world: World) -> None:
    """Whoever resumes that task gets the same token."""
    lease = world.submitted()
    world.lose()
    world.store.renew(lease, last_not_ready=0)
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert world.store.spend(offer, "c") == Expired()
    again = world.ready("second", owner="b")
    assert again.solution != offer.solution
    assert isinstance(world.store.spend(again, "c"), Won)
    assert world.told == ["store_degraded", "submitted_alone"]


def test_a_token_of_a_task_that_was_resumed_is_never_spent_alone(world: World) -> None:
    lease = world.elsewhere().lease
    world.shared.intend(lease)
    world.shared.submitted(lease, "first")
    world.clock.advance(31)
    resumed = world.claim()
    assert isinstance(resumed, Resume)
    world.lose()
    offer = world.store.solved(resumed.lease, solution(), age_bound=0)
    assert world.store.spend(offer, "c") == Expired()


def test_a_token_of_a_task_that_was_brought_back_is_never_spent_alone(world: World) -> None:
    world.lose()
    lease = world.submitted()
    world.mend()
    world.store.renew(lease, last_not_ready=0)
    world.lose()
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert world.store.spend(offer, "c") == Expired()


def test_what_is_known_of_a_used_generation_is_no_answer_to_who_holds_the_next(world: World) -> None:
    won = world.store.spend(world.ready(), "c")
    assert isinstance(won, Won)
    world.store.done(won.lease, "ok")
    lease = world.elsewhere(fresh=True).lease
    world.shared.intend(lease)
    world.shared.submitted(lease, "second")
    world.shared.solved(lease, solution("second"), age_bound=0)
    offer = world.claim()
    assert isinstance(offer, Ready)
    world.lose()
    assert world.store.spend(offer, "c") == Expired()
    assert isinstance(world.claim(), Granted)


@pytest.mark.parametrize("lost", ["submitted", "solved"])
def test_a_token_that_perhaps_is_in_the_shared_store_is_never_spent_alone(world: World, lost: str) -> None:
    lease = world.claim().lease
    world.store.intend(lease)
    if lost == "solved":
        world.store.submitted(lease, "first")
    world.lose("deaf")
    if lost == "submitted":
        world.store.submitted(lease, "first")
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert world.store.spend(offer, "c") == Expired()
    world.clock.advance(40)
    assert isinstance(world.elsewhere(), Resume | Ready)


def test_a_token_of_the_shared_store_counts_as_expired_and_is_offered_again_once_it_is_back(world: World) -> None:
    offer = world.ready()
    world.lose("deaf")
    assert world.store.spend(offer, "c") == Expired()
    assert isinstance(world.claim(), Granted)
    world.lose("down")
    assert world.store.spend(offer, "c") == Lost()


def test_a_task_that_outlasts_a_short_outage_stays_in_the_shared_store(world: World) -> None:
    lease = world.submitted()
    world.lose()
    world.store.renew(lease, last_not_ready=0)
    world.mend()
    world.store.renew(lease, last_not_ready=0)
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert isinstance(world.elsewhere(), Ready)
    assert isinstance(world.store.spend(offer, "c"), Won)
    assert world.told == ["store_degraded", "store_back"]


def test_a_form_that_was_posted_is_known_as_posted_without_the_store(world: World) -> None:
    won = world.store.spend(world.ready(), "c")
    assert isinstance(won, Won)
    world.lose()
    world.store.done(won.lease, "ok", session="cookies")
    assert world.claim(owner="b") == Done("ok", "cookies")


def test_what_another_has_closed_stays_closed_without_the_store(world: World) -> None:
    lease, there = world.elsewhere().lease, world.shared
    there.intend(lease)
    there.submitted(lease, "first")
    won = there.spend(there.solved(lease, solution(), age_bound=0), "other")
    there.done(won.lease, "ok", session="cookies")
    assert world.claim() == Done("ok", "cookies")
    world.lose()
    assert world.claim() == Done("ok", "cookies")


def test_a_token_that_could_not_be_given_back_is_not_offered_alone(world: World) -> None:
    won = world.store.spend(world.ready(), "c")
    assert isinstance(won, Won)
    world.lose("deaf")
    world.store.unspend(won.lease)
    assert isinstance(world.claim(owner="b"), Granted)


def test_a_failure_alone_is_one_for_who_asks_here(world: World) -> None:
    lease = world.claim().lease
    world.lose()
    world.store.failed(lease, "unsolvable")
    assert world.claim(owner="b").code == "unsolvable"


# Coming back


def test_a_task_that_was_submitted_alone_is_brought_back_and_others_resume_it(world: World) -> None:
    world.lose()
    lease = world.submitted()
    world.mend()
    world.store.renew(lease, last_not_ready=0)
    assert world.events[-1].name == "store_back"
    assert world.events[-1].data["tasks"] == 1
    assert isinstance(world.elsewhere(), Busy)
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert world.elsewhere().solution == offer.solution
    assert isinstance(world.store.spend(offer, "c"), Won)
    assert world.shared.spend(offer, "other") == Lost()


def test_a_task_of_a_lease_that_was_given_before_is_brought_back_under_it(world: World) -> None:
    lease = world.claim().lease
    world.store.intend(lease)
    world.lose()
    world.store.submitted(lease, "first")
    world.mend()
    world.claim(key=OTHER)
    world.clock.advance(60)
    answer = world.elsewhere()
    assert isinstance(answer, Resume)
    assert answer.task_id == "first"
    with pytest.raises(OwnerLost):
        world.store.renew(lease)


def test_a_task_of_a_key_that_another_has_begun_meanwhile_stays_here(world: World) -> None:
    world.lose()
    lease = world.submitted()
    world.shared.intend(world.elsewhere().lease)
    world.mend()
    world.claim(key=OTHER)
    assert world.events[-1].data["tasks"] == 0
    offer = world.store.solved(lease, solution(), age_bound=0)
    assert isinstance(world.store.spend(offer, "c"), Won)


def test_a_token_is_never_brought_back(world: World) -> None:
    world.lose()
    offer = world.ready()
    world.mend()
    world.claim(key=OTHER)
    assert world.shared.peek(KEY) is None
    assert world.claim(owner="b").solution == offer.solution


# How far


def test_stop_ends_the_work(world: World) -> None:
    stopping = World(OnStoreLoss.STOP)
    lease = stopping.claim().lease
    stopping.lose()
    for call in (
        lambda: stopping.claim(key=OTHER),
        lambda: stopping.store.intend(lease),
        lambda: stopping.store.renew(lease),
        lambda: stopping.limits.acquire("slots", "a", limit=1, lease=30),
        lambda: stopping.outage.look(),
    ):
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            call()


def test_owned_lets_only_what_is_held_go_on() -> None:
    world = World(OnStoreLoss.OWNED)
    lease, offer = world.claim().lease, world.ready(key=OTHER)
    world.lose()
    with pytest.raises(StoreUnavailable):
        world.claim(key="11" * 32)
    world.store.intend(lease)
    world.store.submitted(lease, "second")
    assert isinstance(world.store.spend(world.store.solved(lease, solution("second"), age_bound=0), "c"), Won)
    assert world.store.spend(offer, "c") == Expired()
    assert isinstance(world.claim(key=OTHER), Granted)


# The account's limits


def test_alone_a_worker_keeps_to_its_share(world: World) -> None:
    for _ in range(2):
        world.limits.add("budget", 1, limit=10, seconds=600)
    world.shared_limits.add("budget", 0, limit=None, seconds=600)
    world.lose()
    added = [world.limits.add("budget", 1, limit=10, seconds=600) for _ in range(4)]
    assert added == [True, True, False, False]  # a quarter of the eight that were left
    assert world.limits.count("budget") == 4
    slots = [world.limits.acquire("slots", owner, limit=8, lease=30) for owner in "abc"]
    assert slots == [True, True, False]
    world.limits.release("slots", "a")
    assert world.limits.acquire("slots", "c", limit=8, lease=30)
    assert [world.limits.next_allowed("turn", spacing=0.5) for _ in range(2)] == pytest.approx([0, 2])


def test_alone_a_share_is_one_at_least_and_none_of_nothing(world: World) -> None:
    world.limits.add("budget", 9, limit=10, seconds=600)
    world.lose()
    assert [world.limits.add("budget", 1, limit=10, seconds=600) for _ in range(2)] == [True, False]
    assert world.limits.acquire("slots", "a", limit=1, lease=30)
    spent = World()
    spent.limits.add("budget", 10, limit=10, seconds=600)
    spent.lose()
    assert not spent.limits.add("budget", 1, limit=10, seconds=600)


def test_what_was_spent_alone_is_counted_once_the_store_is_back(world: World) -> None:
    world.limits.add("budget", 2, limit=10, seconds=600)
    world.lose()
    world.limits.add("budget", 1, limit=10, seconds=600)
    world.limits.add("budget", -1, limit=None, seconds=600)
    world.limits.add("budget", 1, limit=10, seconds=600)
    world.mend()
    assert world.limits.count("budget") == world.shared_limits.count("budget") == 3
    world.lose()
    assert world.limits.add("budget", 1, limit=10, seconds=600)


def test_a_paused_account_stays_paused_without_the_store(world: World) -> None:
    world.shared_limits.raise_flag("pause", "no money", seconds=600)
    assert world.limits.flag("pause") == "no money"
    world.lose()
    assert world.limits.flag("pause") == "no money"
    world.limits.lower_flag("pause")
    assert world.limits.flag("pause") is None
    world.limits.raise_flag("pause", "banned", seconds=600)
    assert world.limits.flag("pause") == "banned"


def test_what_was_to_last_beyond_the_loss_lasts_for_all_once_the_store_is_back(world: World) -> None:
    world.lose()
    until = world.clock.monotonic() + 600
    world.limits.raise_flag("pause", "banned", seconds=600)
    world.limits.raise_flag("pause", "no money", seconds=60)
    world.limits.raise_flag("short", "yes", seconds=10)
    world.limits.raise_flag("taken down", "yes", seconds=600)
    world.limits.lower_flag("taken down")
    world.limits.hold("turn", seconds=100)
    world.mend()

    assert world.limits.flag("pause") == world.shared_limits.flag("pause") == "banned"
    assert world.shared_limits.flag("short") is world.shared_limits.flag("taken down") is None
    assert world.shared_limits.next_allowed("turn", spacing=0) == pytest.approx(69)
    world.clock.advance(until - world.clock.monotonic() - 1)
    assert world.limits.flag("pause") == "banned"
    world.clock.advance(1)
    assert world.limits.flag("pause") is None


def test_what_the_store_was_told_is_not_told_again_after_a_loss(world: World) -> None:
    world.limits.raise_flag("pause", "banned", seconds=600)
    world.shared_limits.lower_flag("pause")
    world.lose()
    assert world.limits.flag("pause") == "banned"
    world.mend()

    assert world.limits.flag("pause") is None


def test_rows_and_samples_go_on_alone(world: World) -> None:
    world.limits.sample("solve", 1.5)
    world.lose()
    world.limits.sample("solve", 2.5)
    assert world.limits.samples("solve") == [1.5, 2.5]
    assert world.limits.strike("calls", "x", keep=60).failures == 1
    assert world.limits.streak("calls") is not None
    world.limits.end_streak("calls")
    assert world.limits.streak("calls") is None
    world.limits.hold("turn", seconds=5)
    assert world.limits.next_allowed("turn", spacing=0) == pytest.approx(5)
