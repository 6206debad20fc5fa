"""The order at the site: tests beside each other, or one alone."""

from __future__ import annotations

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.place import LEASE, Leases, Place
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import StoreUnavailable, WaitedTooLong


class Order:
    """Processes that share one store."""

    def __init__(self):
        self.bench = testing.Bench()

    def place(self, owner):
        return Place(self.bench.limits, self.bench.stop, session="s", owner=owner)

    def soon(self):
        return Deadline(3, what="waiting", now=self.bench.clock.monotonic)

    def cannot(self, entering):
        with pytest.raises(WaitedTooLong, match="nothing was sent"), entering(self.soon()):
            raise AssertionError("somebody else is there")


@pytest.fixture
def order():
    return Order()


def test_who_wants_to_be_alone_waits_for_the_others_and_they_for_him(order):
    one, two, three = map(order.place, "123")
    with one.beside(order.soon()), two.beside(order.soon()):
        order.cannot(three.alone)
    with three.alone(order.soon()):
        order.cannot(one.beside)
        order.cannot(two.alone)
    with one.beside(order.soon()), two.beside(order.soon()):
        assert order.bench.stop.waits


def test_who_waits_to_be_alone_lets_nobody_else_in(order, monkeypatch):
    there, waiting, late = map(order.place, "123")
    with there.beside(order.soon()):
        pauses = []

        def meanwhile(seconds):
            order.bench.clock.advance(seconds)
            if not pauses:
                pauses.append(seconds)
                order.cannot(late.beside)

        monkeypatch.setattr(order.bench.stop, "wait", meanwhile)
        order.cannot(waiting.alone)
    with late.beside(order.soon()):
        assert pauses


def test_two_who_are_beside_each_other_can_both_be_alone_one_after_the_other(order):
    one, two = order.place("1"), order.place("2")
    with one.beside(order.soon()):
        with one.alone(order.soon()):
            order.cannot(two.beside)
        with two.beside(order.soon()):
            order.cannot(order.place("3").alone)
        with one.beside(order.soon()):  # it is there already
            order.cannot(two.alone)
    with two.alone(order.soon()):
        pass


def test_what_a_dead_process_held_lapses_and_what_a_living_one_holds_does_not(order):
    limits, clock = order.bench.limits, order.bench.clock
    dead, living = Leases(limits, "dead"), Leases(limits, "living")
    assert dead.take("site", limit=1)
    assert not living.take("site", limit=1)
    clock.advance(LEASE + 1)
    assert living.take("site", limit=1)
    for _ in range(5):
        clock.advance(LEASE * 0.9)
        living.renew()
    dead.renew()  # it was only held up, and comes too late
    clock.advance(LEASE * 0.9)
    assert not Leases(limits, "third").take("site", limit=1)
    for lease in (dead, living):
        lease.give_back("site")
    assert Leases(limits, "third").take("site", limit=1)


def test_a_store_that_is_lost_keeps_nobody_waiting_at_the_end(order, monkeypatch):
    place = order.place("1")

    def lost(*_args, **_options):
        raise StoreUnavailable("the store is gone")

    with place.alone(order.soon()):
        monkeypatch.setattr(order.bench.limits, "release", lost)
    monkeypatch.setattr(order.bench.limits, "acquire", lost)
    with pytest.raises(StoreUnavailable), place.beside(order.soon()):
        raise AssertionError("nobody can say who is there")
