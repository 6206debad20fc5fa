"""Where the state of a run is kept, and what is said when it cannot be kept there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_captcha_qa.engine.events import Event
from pytest_captcha_qa.engine.store import Granted
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes, OnStoreLoss
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.testing import ManualClock, ManualStop
from pytest_captcha_qa.wiring.stores import Loss, Stores, open_stores, unusable_store

NOBODY = StoreAddress.parse("unix://:s3cret@/nowhere/redis.sock")
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)


def opened(policy: OnStoreLoss, told: list[Event]) -> Stores:
    clock = ManualClock()
    return open_stores(NOBODY, Loss(policy), clock=clock, stop=ManualStop(clock), emit=told.append)


def test_a_shared_store_that_is_not_there_at_the_start_is_said_and_done_without() -> None:
    told: list[Event] = []
    stores = opened(OnStoreLoss.CONTINUE, told)
    assert isinstance(stores.keys.claim("5e" * 32, Fingerprint("form"), "a", times=TIMES), Granted)
    assert stores.limits.add("budget", 1, limit=5, seconds=60)
    stores.close()
    assert [event.name for event in told] == ["store_degraded"]
    assert "s3cret" not in str(told)


def test_a_run_that_is_to_stop_does_not_start_without_its_store() -> None:
    with pytest.raises(StoreUnavailable, match=r"unix:///nowhere/redis\.sock cannot be reached") as lost:
        opened(OnStoreLoss.STOP, [])
    assert "s3cret" not in str(lost.value)


def test_a_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unusable_store(NOBODY) == []
    monkeypatch.setitem(sys.modules, "redis.backoff", None)
    [said] = unusable_store(NOBODY)
    assert said.endswith("needs the extra `redis`: pip install 'pytest-captcha-qa[redis]'")
    assert "s3cret" not in said


def test_a_file_that_cannot_be_one_is_a_sentence(tmp_path: Path) -> None:
    [said] = unusable_store(tmp_path)
    assert str(tmp_path) in said
