"""What every implementation of the port Limits does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_captcha_qa.engine.store import Streak
from pytest_captcha_qa.state.cells import CellLimits

Advance = Callable[[float], None]


def take(limits: CellLimits, owner: str, *, limit: int = 2) -> bool:
    return limits.acquire("main", owner, limit=limit, lease=30)


def test_no_more_owners_than_the_limit_get_a_slot(limits: CellLimits) -> None:
    assert [take(limits, owner) for owner in "abc"] == [True, True, False]


def test_a_released_slot_goes_to_the_next_owner(limits: CellLimits) -> None:
    take(limits, "a", limit=1)
    limits.release("main", "a")
    assert take(limits, "b", limit=1)


def test_a_slot_lapses_with_its_lease_and_not_before(limits: CellLimits, advance: Advance) -> None:
    take(limits, "a", limit=1)
    advance(29.9)
    assert not take(limits, "b", limit=1)
    advance(0.1)
    assert take(limits, "b", limit=1)


def test_the_same_owner_renews_its_own_slot_even_when_all_are_taken(limits: CellLimits, advance: Advance) -> None:
    take(limits, "a", limit=1)
    advance(20)
    assert take(limits, "a", limit=1)
    advance(20)
    assert not take(limits, "b", limit=1)


def test_an_owner_whose_slot_lapsed_and_was_taken_does_not_get_it_back(limits: CellLimits, advance: Advance) -> None:
    take(limits, "a", limit=1)
    advance(31)
    take(limits, "b", limit=1)
    limits.release("main", "a")
    assert not take(limits, "a", limit=1)


def test_each_slot_lapses_by_itself(limits: CellLimits, advance: Advance) -> None:
    take(limits, "a")
    advance(20)
    take(limits, "b")
    advance(10)
    assert take(limits, "c")
    assert not take(limits, "a")


def test_slots_of_different_names_are_apart(limits: CellLimits) -> None:
    assert take(limits, "a", limit=1)
    assert limits.acquire("other", "b", limit=1, lease=30)


def test_a_counter_refuses_what_would_pass_its_limit_and_keeps_its_value(limits: CellLimits) -> None:
    added = [limits.add("hour", 2, limit=5, seconds=3600) for _ in range(3)]
    assert (added, limits.count("hour")) == ([True, True, False], 4)
    assert limits.add("hour", 1, limit=5, seconds=3600)


def test_a_counter_lives_from_its_first_use(limits: CellLimits, advance: Advance) -> None:
    limits.add("hour", 1, limit=None, seconds=100)
    advance(60)
    limits.add("hour", 1, limit=None, seconds=100)
    assert limits.count("hour") == 2
    advance(40)
    assert limits.count("hour") == 0


def test_a_refused_add_does_not_start_a_counter(limits: CellLimits, advance: Advance) -> None:
    assert not limits.add("hour", 3, limit=2, seconds=100)
    advance(60)
    limits.add("hour", 1, limit=2, seconds=100)
    advance(60)
    assert limits.count("hour") == 1


def test_a_counter_without_a_limit_takes_everything_and_may_be_lowered(limits: CellLimits) -> None:
    limits.add("run", 10_000, limit=None, seconds=60)
    limits.add("run", -1, limit=None, seconds=60)
    assert limits.count("run") == 9_999


def test_reserved_moments_lie_one_spacing_apart(limits: CellLimits) -> None:
    waits = [limits.next_allowed("submit", spacing=0.2) for _ in range(4)]
    assert waits == pytest.approx([0, 0.2, 0.4, 0.6])


def test_after_a_pause_the_next_moment_is_now_and_nothing_was_saved_up(limits: CellLimits, advance: Advance) -> None:
    limits.next_allowed("submit", spacing=0.2)
    advance(10)
    waits = [limits.next_allowed("submit", spacing=0.2) for _ in range(2)]
    assert waits == pytest.approx([0, 0.2])


def test_a_wider_spacing_counts_from_the_moment_before(limits: CellLimits, advance: Advance) -> None:
    limits.next_allowed("submit", spacing=0)
    advance(3)
    assert limits.next_allowed("submit", spacing=10) == pytest.approx(7)


def test_a_hold_moves_the_next_moment_and_never_an_earlier_one(limits: CellLimits, advance: Advance) -> None:
    limits.hold("submit", seconds=10)
    assert limits.next_allowed("submit", spacing=0) == pytest.approx(10)
    assert limits.next_allowed("submit", spacing=0.2) == pytest.approx(10.2)
    limits.hold("submit", seconds=3)
    assert limits.next_allowed("submit", spacing=0.2) == pytest.approx(10.4)
    advance(20)
    assert limits.next_allowed("submit", spacing=0) == pytest.approx(0)


def test_failures_in_a_row_are_counted_with_their_time_and_the_last_note(limits: CellLimits, advance: Advance) -> None:
    assert limits.streak("calls") is None
    assert limits.strike("calls", "refused", keep=30) == Streak(1, 0, "refused")
    advance(4)
    limits.strike("calls", "reset", keep=30)
    advance(7)
    assert limits.strike("calls", "HTTP 503", keep=30) == Streak(3, pytest.approx(11), "HTTP 503")
    advance(5)
    assert limits.streak("calls") == Streak(3, pytest.approx(11), "HTTP 503")
    assert limits.streak("other") is None


def test_a_success_ends_a_row_and_ending_none_is_no_fault(limits: CellLimits) -> None:
    limits.strike("calls", "refused", keep=30)
    limits.end_streak("calls")
    limits.end_streak("calls")
    assert limits.streak("calls") is None
    assert limits.strike("calls", "again", keep=30).failures == 1


def test_a_row_is_forgotten_some_time_after_its_last_failure(limits: CellLimits, advance: Advance) -> None:
    for _ in range(3):
        limits.strike("calls", "refused", keep=30)
        advance(29)
    assert limits.streak("calls") == Streak(3, pytest.approx(58), "refused")
    advance(1)
    assert limits.streak("calls") is None


def test_a_flag_is_up_for_its_time(limits: CellLimits, advance: Advance) -> None:
    limits.raise_flag("pause", "no money", seconds=60)
    advance(59)
    assert limits.flag("pause") == "no money"
    advance(1)
    assert limits.flag("pause") is None


def test_a_flag_raised_for_longer_has_the_new_value_and_time(limits: CellLimits, advance: Advance) -> None:
    limits.raise_flag("pause", "a", seconds=10)
    advance(9)
    limits.raise_flag("pause", "b", seconds=10)
    assert limits.flag("pause") == "b"
    advance(9.9)
    assert limits.flag("pause") == "b"
    advance(0.1)
    assert limits.flag("pause") is None


def test_a_flag_raised_for_less_than_is_left_of_it_keeps_its_value_and_time(
    limits: CellLimits, advance: Advance
) -> None:
    limits.raise_flag("pause", "banned", seconds=60)
    limits.raise_flag("pause", "no money", seconds=10)
    assert limits.flag("pause") == "banned"
    advance(59)
    limits.raise_flag("pause", "no money", seconds=0.5)
    assert limits.flag("pause") == "banned"
    advance(1)
    assert limits.flag("pause") is None


def test_a_flag_raised_again_to_the_same_end_has_the_new_value(limits: CellLimits) -> None:
    limits.raise_flag("threads", "5", seconds=60)
    limits.raise_flag("threads", "3", seconds=60)
    assert limits.flag("threads") == "3"


def test_a_flag_that_was_lowered_may_be_raised_for_less(limits: CellLimits, advance: Advance) -> None:
    limits.raise_flag("pause", "banned", seconds=60)
    limits.lower_flag("pause")
    limits.raise_flag("pause", "no money", seconds=10)
    assert limits.flag("pause") == "no money"
    advance(10)
    assert limits.flag("pause") is None


def test_threads_that_raise_one_flag_leave_the_longest(limits: CellLimits, advance: Advance) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: limits.raise_flag("pause", str(n), seconds=n), range(1, 31)))
    advance(29.5)
    assert limits.flag("pause") == "30"


def test_a_lowered_flag_is_down_and_lowering_it_twice_is_no_fault(limits: CellLimits) -> None:
    limits.raise_flag("pause", "a", seconds=60)
    limits.lower_flag("pause")
    limits.lower_flag("pause")
    assert limits.flag("pause") is None


def test_the_last_samples_are_kept_oldest_first(limits: CellLimits) -> None:
    for value in range(6):
        limits.sample("solve", float(value), keep=4)
    assert limits.samples("solve") == [2, 3, 4, 5]
    assert limits.samples("nothing") == []


def test_one_name_serves_counter_flag_and_samples_apart(limits: CellLimits) -> None:
    limits.add("x", 1, limit=None, seconds=60)
    limits.raise_flag("x", "up", seconds=60)
    limits.sample("x", 1.5)
    limits.strike("x", "note", keep=60)
    assert (limits.count("x"), limits.flag("x"), limits.samples("x")) == (1, "up", [1.5])
    assert limits.streak("x") == Streak(1, 0, "note")


def test_what_ended_long_ago_is_purged_and_what_lives_is_not(limits: CellLimits, advance: Advance) -> None:
    limits.add("short", 1, limit=None, seconds=1)
    limits.add("long", 1, limit=None, seconds=10_000)
    advance(500)
    assert (limits.count("short"), limits.count("long"), limits.count("short")) == (0, 1, 0)


def test_threads_never_pass_a_limit_together(limits: CellLimits) -> None:
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda _: limits.add("run", 1, limit=20, seconds=60), range(60)))
        slots = list(pool.map(lambda n: take(limits, f"owner {n}", limit=5), range(30)))
        failures = list(pool.map(lambda _: limits.strike("calls", "x", keep=60).failures, range(40)))
    assert (sum(added), limits.count("run"), sum(slots)) == (20, 20, 5)
    assert sorted(failures) == list(range(1, 41))
