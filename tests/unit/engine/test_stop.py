from __future__ import annotations

import threading

import pytest

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import DeadlineExceeded, Stopped
from pytest_captcha_qa.testing import ManualClock, ManualStop


def test_a_wait_ends_with_the_reason_when_a_stop_was_asked_for_before() -> None:
    stop = Stop()
    stop.set("the worker drains")

    with pytest.raises(Stopped, match="the wait was ended: the worker drains"):
        stop.wait(60)


def test_a_wait_that_is_under_way_is_ended_from_another_thread() -> None:
    stop = Stop()
    waiting = threading.Thread(target=lambda: stop.set("Ctrl-C"))
    waiting.start()

    with pytest.raises(Stopped, match="Ctrl-C"):
        stop.wait(60)
    waiting.join()


def test_the_first_reason_stays() -> None:
    stop = Stop()
    stop.set("first")
    stop.set("second")

    with pytest.raises(Stopped, match="first"):
        stop.check()


def test_nothing_happens_until_a_stop_is_asked_for() -> None:
    stop = Stop()
    stop.check()
    stop.wait(0)

    assert not stop.requested


def test_remaining_falls_with_the_clock_and_never_below_zero() -> None:
    clock = ManualClock()
    deadline = Deadline(10, what="it", now=clock.monotonic)

    clock.advance(4)
    assert deadline.remaining() == 6
    clock.advance(60)
    assert deadline.remaining() == 0


def test_cap_gives_a_call_no_more_than_is_left() -> None:
    clock = ManualClock()
    deadline = Deadline(10, what="it", now=clock.monotonic)
    clock.advance(7)

    assert deadline.cap(2) == 2
    assert deadline.cap(30) == 3


def test_a_deadline_that_has_passed_names_what_was_not_over() -> None:
    clock = ManualClock()
    deadline = Deadline(10, what="the solve", now=clock.monotonic)
    clock.advance(10)

    with pytest.raises(DeadlineExceeded, match="the solve was not over after 10 s"):
        deadline.cap(1)
    with pytest.raises(DeadlineExceeded, match="the solve"):
        deadline.part(5, what="the stage")


@pytest.mark.parametrize(("stage", "left"), [(4, 4), (100, 10)])
def test_a_part_never_reaches_beyond_the_whole(stage: float, left: float) -> None:
    clock = ManualClock()
    whole = Deadline(10, what="whole", now=clock.monotonic)

    assert whole.part(stage, what="stage").remaining() == left


def test_a_manual_stop_moves_its_clock_in_place_of_waiting() -> None:
    clock = ManualClock()
    stop = ManualStop(clock)
    before = clock.monotonic()

    stop.wait(300)

    assert (clock.monotonic() - before, stop.waits) == (300, [300])
    stop.set("over")
    with pytest.raises(Stopped):
        stop.wait(1)
    assert clock.monotonic() - before == 300
