"""Real processes on one SQLite file: one solves, one consumes, and crashes leave what state.md says."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.engine.store import Busy, Claim, Granted, Indeterminate, Ready, Resume, Won
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.sqlite import SqliteStore

KEY = "5e" * 32
FORM = Fingerprint("signup")
TIMES = KeyTimes(lease=30, renew=10, http=30, solve=300, redelivery=90, keep=110)
SHORT = KeyTimes(lease=1, renew=0.3, http=1, solve=300, redelivery=90, keep=110)
WORKERS = 8
PATIENCE = 30.0

Answers = Queue  # of (worker, word) pairs


def claim(store: SqliteStore, owner: str, times: KeyTimes = TIMES) -> Claim:
    return store.claim(KEY, FORM, owner, times=times)


def settled(ask: Callable[[], Claim]) -> Claim:
    """Return the first answer other than Busy."""
    stop, until = Stop(), time.monotonic() + PATIENCE
    while isinstance(answer := ask(), Busy):
        assert time.monotonic() < until, "the key stayed busy"
        stop.wait(min(0.05, answer.retry_after))
    return answer


def work(path: Path, number: int, gate: Any, answers: Answers[tuple[str, object]]) -> None:
    """Claim, solve if granted, then wait for all others before the spend."""
    store = SqliteStore(path)
    owner = f"worker {number}"
    gate.wait(PATIENCE)
    answer = claim(store, owner)
    if isinstance(answer, Granted):
        answers.put(("granted", owner))
        store.intend(answer.lease)
        store.submitted(answer.lease, "t-1")
        store.solved(answer.lease, Solution({"token": f"solved by {owner}"}), age_bound=0)
    offer = settled(lambda: claim(store, owner))
    assert isinstance(offer, Ready)
    answers.put(("ready", (offer.generation, offer.solution.text)))
    gate.wait(PATIENCE)
    answers.put(("spend", type(store.spend(offer, owner)).__name__))


def crash_after_submit(path: Path, told: Answers[tuple[str, object]]) -> None:
    """Submit a task, say so, and hang until killed."""
    store = SqliteStore(path)
    answer = claim(store, "doomed", SHORT)
    assert isinstance(answer, Granted)
    store.intend(answer.lease)
    store.submitted(answer.lease, "t-7")
    told.put(("at", "submitted"))
    signal.pause()


def crash_after_spend(path: Path, told: Answers[tuple[str, object]]) -> None:
    """Spend a token, say so, and hang until killed."""
    store = SqliteStore(path)
    answer = claim(store, "doomed", SHORT)
    assert isinstance(answer, Granted)
    store.intend(answer.lease)
    store.submitted(answer.lease, "t-7")
    won = store.spend(store.solved(answer.lease, Solution({"token": "x"}), age_bound=0), "doomed")
    told.put(("at", type(won).__name__))
    signal.pause()


Start = Callable[..., BaseProcess]


@pytest.fixture
def context() -> multiprocessing.context.SpawnContext:
    return multiprocessing.get_context("spawn")


@pytest.fixture
def start(context: multiprocessing.context.SpawnContext) -> Iterator[Start]:
    running: list[BaseProcess] = []

    def started(target: Callable[..., None], *args: object) -> BaseProcess:
        process = context.Process(target=target, args=args)
        process.start()
        running.append(process)
        return process

    yield started
    for process in running:
        if process.is_alive():
            process.kill()
        process.join(PATIENCE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "keys.sqlite3"


def test_eight_processes_cause_one_submit_and_one_of_them_consumes(
    path: Path, start: Start, context: multiprocessing.context.SpawnContext
) -> None:
    gate, answers = context.Barrier(WORKERS), context.Queue()
    processes = [start(work, path, number, gate, answers) for number in range(WORKERS)]
    told = [answers.get(timeout=PATIENCE) for _ in range(1 + 2 * WORKERS)]
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0] * WORKERS
    solvers = [value for word, value in told if word == "granted"]
    assert len(solvers) == 1
    offers = [value for word, value in told if word == "ready"]
    assert offers == [(1, f"solved by {solvers[0]}")] * WORKERS
    assert sorted(value for word, value in told if word == "spend") == ["Lost"] * (WORKERS - 1) + ["Won"]


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="needs POSIX signals")
def test_the_task_of_a_killed_process_is_resumed_by_its_id(
    path: Path, start: Start, context: multiprocessing.context.SpawnContext
) -> None:
    told = context.Queue()
    doomed = start(crash_after_submit, path, told)
    assert told.get(timeout=PATIENCE) == ("at", "submitted")
    assert doomed.pid is not None
    os.kill(doomed.pid, signal.SIGKILL)
    store = SqliteStore(path)
    answer = settled(lambda: claim(store, "heir", SHORT))
    assert isinstance(answer, Resume)
    assert answer.task_id == "t-7"
    store.solved(answer.lease, Solution({"token": "x"}), age_bound=answer.not_ready_age)
    store.close()


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="needs POSIX signals")
def test_the_token_of_a_killed_consumer_is_never_handed_out_again(
    path: Path, start: Start, context: multiprocessing.context.SpawnContext
) -> None:
    told = context.Queue()
    doomed = start(crash_after_spend, path, told)
    assert told.get(timeout=PATIENCE) == ("at", "Won")
    assert doomed.pid is not None
    os.kill(doomed.pid, signal.SIGKILL)
    store = SqliteStore(path)
    assert settled(lambda: claim(store, "heir", SHORT)) == Indeterminate()
    assert claim(store, "another", SHORT) == Indeterminate()
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_the_file_anew_and_leaves_the_parent_its_own(path: Path) -> None:
    store = SqliteStore(path)
    mine = claim(store, "parent")
    assert isinstance(mine, Granted)
    child = os.fork()
    if child == 0:
        seen = claim(store, "child")
        os._exit(0 if isinstance(seen, Busy) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    store.intend(mine.lease)
    store.submitted(mine.lease, "t-1")
    offer = store.solved(mine.lease, Solution({"token": "x"}), age_bound=0)
    assert isinstance(store.spend(offer, "parent"), Won)
    store.close()
