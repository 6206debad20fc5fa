from __future__ import annotations

from pytest_captcha_qa.engine.glance import Glance
from pytest_captcha_qa.testing import ManualClock


def test_a_value_is_looked_for_again_after_its_seconds_or_when_it_was_forgotten() -> None:
    clock, values = ManualClock(), iter("abc")
    glance = Glance(lambda: next(values), 2.0, clock)

    assert [glance(), glance()] == ["a", "a"]
    clock.advance(2)
    assert glance() == "b"
    glance.forget()
    assert glance() == "c"


def test_a_value_that_is_known_otherwise_is_not_looked_for() -> None:
    clock, values = ManualClock(), iter("a")
    glance = Glance(lambda: next(values), 2.0, clock)

    assert glance.see("x") == "x"
    assert glance() == "x"
    clock.advance(2)
    assert glance() == "a"
