"""The backends every contract suite runs over; each is made only when a test asks for it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.model.policy import OnStoreLoss
from pytest_captcha_qa.state.apart import OwnKeys
from pytest_captcha_qa.state.cells import CellLimits
from pytest_captcha_qa.state.fallback import FallbackStore
from pytest_captcha_qa.state.fallback_limits import FallbackLimits
from pytest_captcha_qa.state.memory import MemoryLimits, MemoryStore
from pytest_captcha_qa.state.outage import Outage
from pytest_captcha_qa.state.redis import RedisLimits, RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.state.sqlite import SqliteLimits, SqliteStore
from pytest_captcha_qa.state.transitional import TransitionalStore

BACKENDS = ("memory", "sqlite", "redis", "fallback")


class ManualClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(clock: ManualClock) -> tuple[TransitionalStore, CellLimits]:
    return MemoryStore(clock=clock), MemoryLimits(clock=clock)


@pytest.fixture
def sqlite(clock: ManualClock, tmp_path: Path) -> tuple[TransitionalStore, CellLimits]:
    path = tmp_path / "state" / "keys.sqlite3"
    return SqliteStore(path, clock=clock), SqliteLimits(path, clock=clock)


@pytest.fixture
def redis(clock: ManualClock, redis_link: RedisLink) -> tuple[RedisStore, RedisLimits]:
    return RedisStore(redis_link, clock=clock, epoch="first"), RedisLimits(redis_link, clock=clock)


class Transparent(FallbackStore):
    """A fallback whose shared store is there all the time, and can be looked into."""

    def peek(self, key: str) -> Any:
        return self._shared.peek(key)

    @property
    def epoch(self) -> str:
        return self._shared.epoch

    @epoch.setter
    def epoch(self, epoch: str) -> None:
        self._shared.epoch = epoch


@pytest.fixture
def fallback(clock: ManualClock) -> tuple[Transparent, FallbackLimits]:
    outage = Outage("shared", lambda: None, SystemClock(), Stop())
    store = Transparent(MemoryStore(clock=clock), OwnKeys(clock=clock), outage, OnStoreLoss.STOP)
    limits = (MemoryLimits(clock=clock), MemoryLimits(clock=clock))
    return store, FallbackLimits(*limits, outage, OnStoreLoss.STOP)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[TransitionalStore, CellLimits]]:
    store, limits = request.getfixturevalue(request.param)
    yield store, limits
    store.close()
    limits.close()


@pytest.fixture
def store(backend: tuple[TransitionalStore, CellLimits]) -> TransitionalStore:
    return backend[0]


@pytest.fixture
def limits(backend: tuple[TransitionalStore, CellLimits]) -> CellLimits:
    return backend[1]


@pytest.fixture
def advance(clock: ManualClock) -> Callable[[float], None]:
    return clock.advance
