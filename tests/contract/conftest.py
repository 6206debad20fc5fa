"""The backends every contract suite runs over; each is made only when a test asks for it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_captcha_qa.state.cells import CellLimits
from pytest_captcha_qa.state.memory import MemoryLimits, MemoryStore
from pytest_captcha_qa.state.sqlite import SqliteLimits, SqliteStore
from pytest_captcha_qa.state.transitional import TransitionalStore

BACKENDS = ("memory", "sqlite")


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
