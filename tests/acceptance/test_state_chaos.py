"""Eight processes on one store, killed at random and with leases that lapse under way: what must hold of it all.

One store is a SQLite file, the other a Redis that is itself killed and started again, with all it has acknowledged.
What the sandbox counts of whole attempts under such kills is test_chaos.py; here the stores alone are asked, so that
leases lapse far more often than a solve allows, some claims ask for a fresh token, and SQLite is killed too.

Every process writes what it did, and when, to a file of its own; a line that was written outlives a SIGKILL.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine.store import Busy, Granted, Lease, Ready, Resume, Won
from pytest_captcha_qa.errors import OwnerLost, StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.state.sqlite import SqliteStore

FORM = Fingerprint("signup")
# Leases that a busy machine lets lapse now and then, while tasks and tokens outlive the test.
TIMES = KeyTimes(lease=0.3, renew=0.1, http=0.2, solve=600, redelivery=600, keep=600)


@dataclass(frozen=True)
class Plan:
    """How many keys there are, and how often something is killed meanwhile."""

    keys: int
    kills: int
    restarts: int = 0


@dataclass(frozen=True)
class Deed:
    """What somebody did to a generation of a key; `moment` is on the clock that all processes share."""

    what: str
    key: str
    generation: int
    moment: float
    token: str = ""


class Ledger:
    """The deeds of one process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, what: str, key: str, generation: int, *, token: str = "", moment: float | None = None) -> None:
        deed = Deed(what, key, generation, time.monotonic() if moment is None else moment, token)
        os.write(self._file, (json.dumps(asdict(deed)) + "\n").encode())


class Worker:
    """Brings every key to its end once, or finds that others did."""

    def __init__(self, store: Path | str, keys: int, ledger: Path, seed: int) -> None:
        self._store: SqliteStore | RedisStore = (
            SqliteStore(store) if isinstance(store, Path) else RedisStore(RedisLink(StoreAddress.parse(store)))
        )
        self._keys = keys
        self._ledger = Ledger(ledger)
        self._random = random.Random(seed)
        self._owner = f"owner {seed}"
        self._pause = threading.Event()

    def run(self) -> None:
        left = [f"{number:064x}" for number in range(self._keys)]
        while left:
            self._random.shuffle(left)
            left = [key for key in left if not self._is_over(key)]
            self._pause.wait(0.02)

    def _is_over(self, key: str) -> bool:
        with suppress(StoreUnavailable):  # it was killed; whether it has done the last thing it was asked is not known
            return self._settled(key)
        return False

    def _settled(self, key: str) -> bool:
        asked = time.monotonic()
        answer = self._store.claim(key, FORM, self._owner, times=TIMES, fresh=self._random.random() < 0.02)
        if isinstance(answer, Busy):
            return False
        with suppress(OwnerLost):  # the lease lapsed in a pause, and another owner went on
            if isinstance(answer, Granted):
                self._solve(answer.lease)
            elif isinstance(answer, Resume):
                self._deliver(answer.lease, answer.task_id, age_bound=answer.not_ready_age)
            elif isinstance(answer, Ready):
                token = answer.solution.text
                self._ledger.note("handed out", key, answer.generation, token=token, moment=asked)
                self._use(answer)
            else:
                return True  # done, or lost with its consumer
        return False

    def _solve(self, lease: Lease) -> None:
        self._store.intend(lease)
        self._ledger.note("submit", lease.key, lease.generation)
        self._dawdle()
        task = f"{self._owner} {lease.key} {lease.generation} {lease.nonce}"
        self._store.submitted(lease, task)
        self._ledger.note("accepted", lease.key, lease.generation)
        self._dawdle()
        self._deliver(lease, task, age_bound=0.0)

    def _deliver(self, lease: Lease, task: str, *, age_bound: float) -> None:
        self._use(self._store.solved(lease, Solution({"token": f"token of {task}"}), age_bound=age_bound))

    def _use(self, offer: Ready) -> None:
        self._dawdle()
        won = self._store.spend(offer, self._owner)
        if not isinstance(won, Won):
            return
        self._ledger.note("won", offer.key, offer.generation, token=offer.solution.text)
        self._dawdle()
        self._store.done(won.lease, "ok")
        self._ledger.note("done", offer.key, offer.generation)

    def _dawdle(self) -> None:
        """Take the time in which a kill may strike, and rarely so long that the lease lapses."""
        slow = self._random.random() < 0.02
        self._pause.wait(self._random.uniform(0.3, 0.8) if slow else self._random.uniform(0, 0.01))


def work(store: Path | str, keys: int, ledger: Path, seed: int) -> None:
    Worker(store, keys, ledger, seed).run()


def deeds_in(folder: Path) -> list[Deed]:
    """Return what all of them wrote."""
    return [Deed(**json.loads(line)) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def count(deeds: Iterable[Deed], what: str) -> Counter[tuple[str, int]]:
    """Return how often something was done to each generation of each key."""
    return Counter((deed.key, deed.generation) for deed in deeds if deed.what == what)


def handed_out_after_use(deeds: Iterable[Deed]) -> list[Deed]:
    """Return the offers of a token whose claim began after somebody knew that the token was theirs."""
    won = {deed.token: deed.moment for deed in deeds if deed.what == "won"}
    return [deed for deed in deeds if deed.what == "handed out" and deed.moment > won.get(deed.token, float("inf"))]


def audited(crew: Callable[..., Any], folder: Path, store: Path | str, plan: Plan, restart: Callable[[], None]) -> None:
    """Let a crew work, and look at all that it did."""
    hired = crew(
        work,
        lambda number: (store, plan.keys, folder / f"{number}.jsonl", number),
        plan.kills,
        plan.restarts,
        lambda crew: restart(),
    )
    hired.run()
    deeds = deeds_in(folder)
    won, submits, accepted = (count(deeds, what) for what in ("won", "submit", "accepted"))
    unknown = submits - accepted
    renewed = {each for each in submits if each[1] > 1}
    print(
        f"{plan.keys} keys, {hired.killed} kills, {hired.restarted} restarts: {submits.total()} submits, "
        f"{len(renewed)} renewed, {unknown.total()} unknown (W1), {won.total()} tokens used"
    )

    assert (hired.killed, hired.restarted) == (plan.kills, plan.restarts)
    assert max(won.values()) == 1
    assert max(Counter(deed.token for deed in deeds if deed.what == "won").values()) == 1
    assert handed_out_after_use(deeds) == []
    # A submit whose task the store has is never made again; one whose task was lost on the way (W1) may be.
    assert max(accepted.values()) == 1
    assert all(submits[each] <= 1 + unknown[each] for each in submits)
    assert submits.total() <= plan.keys + len(renewed) + unknown.total()
    # All that happened did happen: else the test would hold of processes that never came to anything.
    assert {key for key, _ in submits} == {f"{number:064x}" for number in range(plan.keys)}
    assert renewed


@pytest.mark.soak
def test_kills_neither_use_a_token_twice_nor_submit_beyond_what_is_counted(tmp_path: Path, crew: Any) -> None:
    plan, path = Plan(300, 120), tmp_path / "state" / "keys.sqlite3"
    audited(crew, tmp_path, path, plan, lambda: None)
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.close()


@pytest.mark.soak
def test_the_same_holds_on_a_redis_that_is_killed_too(tmp_path: Path, start_redis: Any, crew: Any) -> None:
    plan = Plan(1000, 120, 12)
    server = start_redis("--appendonly", "yes", "--appendfsync", "always")

    def restart() -> None:
        server.kill()
        server.start()

    audited(crew, tmp_path, server.url, plan, restart)
