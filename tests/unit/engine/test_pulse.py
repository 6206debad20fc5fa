from __future__ import annotations

import threading

import pytest

from pytest_captcha_qa.engine.pulse import ThreadPulse
from pytest_captcha_qa.testing import ManualClock


def _pulses() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "captcha-qa pulse"}


def test_a_beat_goes_on_beside_the_block_and_not_after_it() -> None:
    calls, often = [], threading.Event()

    def beat() -> float:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            often.set()
        return 0.0

    with ThreadPulse().during(beat):
        assert often.wait(10)

    assert threading.current_thread() not in calls
    assert not _pulses()


def test_a_beat_that_is_not_due_is_not_waited_for() -> None:
    first = threading.Event()

    def beat() -> float:
        first.set()
        return 3600.0

    with ThreadPulse().during(beat):
        assert first.wait(10)

    assert not _pulses()


def test_a_beat_that_needs_no_other_ends_by_itself() -> None:
    with ThreadPulse().during(lambda: None):
        for thread in _pulses():
            thread.join(10)
        assert not _pulses()


def test_the_block_goes_on_where_the_system_gives_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    went_on = False
    with ThreadPulse().during(lambda: 1.0):
        went_on = True

    assert went_on


def test_what_ends_the_block_ends_the_beat() -> None:
    with pytest.raises(KeyError), ThreadPulse().during(lambda: 3600.0):
        raise KeyError("broken")

    assert not _pulses()


def test_a_manual_clock_beats_at_the_moments_that_are_asked_for() -> None:
    clock, moments = ManualClock(0.0), list[float]()

    def beat() -> float | None:
        moments.append(clock.monotonic())
        return 10.0 if len(moments) < 4 else None

    clock.advance(5)
    with clock.during(beat):
        clock.advance(21)
        clock.advance(100)

    clock.advance(100)
    assert moments == [5, 15, 25, 35]
    assert clock.monotonic() == 226
