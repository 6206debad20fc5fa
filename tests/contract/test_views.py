"""What an operator sees of the keys of every store that outlives a process: where they stand, and no token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine.store import Granted, Won
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.listing import KeyView
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.state.sqlite import SqliteStore
from pytest_captcha_qa.wiring.stores import StorePlace, keys_in

TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
TOKEN = Solution({"token": "03AGdBq24" * 20}, task_id="t-1")


@pytest.fixture(params=["sqlite", "redis"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, StorePlace]]:
    """A store and its place."""
    place: StorePlace = tmp_path / "state" / "keys.sqlite3"
    store: SqliteStore | RedisStore
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        server.empty()
        place = server.address
        store = RedisStore(RedisLink(server.address))
    else:
        assert keys_in(place) == []
        store = SqliteStore(tmp_path / "state" / "keys.sqlite3")
    yield store, place
    store.close()


def reached(store: Any, key: str, steps: int) -> None:
    answer = store.claim(key, Fingerprint("form"), "owner of " + key, times=TIMES)
    assert isinstance(answer, Granted)
    lease = answer.lease
    taken: list[Callable[[], object]] = [lambda: store.intend(lease), lambda: store.submitted(lease, "t-1")]
    for step in taken[:steps]:
        step()
    if steps < 3:
        return
    offer = store.solved(lease, TOKEN, age_bound=10)
    if steps > 3:
        won = store.spend(offer, "consumer")
        assert isinstance(won, Won)
        store.verified(key, 1, "pass")
        store.done(won.lease, "ok", session="the cookies")


def test_each_key_shows_its_state_and_its_times(filled: tuple[Any, StorePlace]) -> None:
    store, place = filled
    for steps in range(5):
        reached(store, f"{steps}" * 64, steps)
    found = {view.key[0]: view for view in keys_in(place)}
    assert [found[str(steps)].state for steps in range(5)] == ["leased", "intent", "submitted", "ready", "done"]
    task, token, over = found["2"], found["3"], found["4"]
    assert (task.owner, task.task_id, task.generation, task.token) == ("owner of 222", "t-1", 1, None)
    assert (task.lease, task.task_age) == (pytest.approx(30, abs=2), pytest.approx(0, abs=2))
    assert (token.lease, token.token) == (None, pytest.approx(100, abs=2))
    assert (over.verdict, over.outcome, over.lease) == ("pass", "ok", None)
    assert over.forgotten_in == pytest.approx(TIMES.tombstone, abs=2)
    shown = str([*found.values()])
    assert TOKEN.text[:9] not in shown
    assert "cookies" not in shown
    assert all(isinstance(view, KeyView) for view in found.values())
