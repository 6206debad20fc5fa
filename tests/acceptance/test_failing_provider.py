"""A solving service that fails in many ways in the middle of a run: nothing that is paid for is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import ProviderUnavailable
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from solving.account import Account

Ask = Callable[..., Any]
SCALE = 0.03
ATTEMPTS, WORKERS = 100, 16
SUBMIT, RESULT = "/in.php", "/res.php"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as process:
        yield process.start(time_scale=SCALE, seed=11)


@pytest.fixture
def account(sandbox: SandboxAddresses, tmp_path: Path, ask: Ask) -> Iterator[Callable[[str], Account]]:
    made: list[Account] = []

    def make(key: str) -> Account:
        folder = tmp_path / key
        made.append(
            Account(sandbox.provider, sandbox.site, key.ljust(32, "0"), folder, SCALE, in_flight=WORKERS, lease=2.0)
        )
        return made[-1]

    yield make
    for each in made:
        each.close()
    ask(f"{sandbox.audit}/reset", {})


_SPOILT = ({"kind": "status", "status": 502}, {"kind": "reset"}, {"kind": "html200"}, {"kind": "truncated"})
# About every third poll is spoilt, in turn; some submits find no slot, some are taken and their answer lost; some tasks
# cannot be solved. What is struck lies between calls that go on, so that it is a failing service and not an outage.
IN_THE_MIDDLE = [
    *({**fault, "path": RESULT, "skip": 10 + 2 * n, "count": 1} for n, fault in enumerate(_SPOILT * 8)),
    {"kind": "error", "code": "ERROR_NO_SLOT_AVAILABLE", "path": SUBMIT, "skip": 10, "count": 5},
    *({"kind": "reset", "late": True, "path": SUBMIT, "skip": skip, "count": 1} for skip in (30, 50, 70)),
    {"kind": "unsolvable", "skip": 50, "count": 4},
]
READ_IN_VAIN = 8  # an answer that was cut short had been given out


def test_no_paid_task_is_lost_and_every_submit_has_its_reason(
    account: Callable[[str], Account], sandbox: SandboxAddresses, ask: Ask
) -> None:
    here = account("middle")
    ask(f"{sandbox.audit}/control", {"faults": {"provider": IN_THE_MIDDLE}})
    tallies = [Tally() for _ in range(ATTEMPTS)]

    with ThreadPoolExecutor(WORKERS) as pool:
        tasks = list(pool.map(lambda n: here.obtain(f"attempt {n}", tallies[n]), range(ATTEMPTS)))

    counts = ask(sandbox.audit)["provider"]
    told = Counter(event.name for event in here.told)
    why = Counter(event.data.get("why") for event in here.told if event.name == events.TOKEN_RENEWED)
    print(f"\n{dict(told)} {dict(why)} submits {counts['submits']} polls {counts['polls']} reads {counts['reads']}")
    assert len(set(tasks)) == ATTEMPTS
    assert (told[events.SUBMIT_UNKNOWN], why) == (3, {"unsolvable": 4})
    assert counts["submits"] == ATTEMPTS + told[events.SUBMIT_UNKNOWN] + told[events.TOKEN_RENEWED]
    assert sum(tally.submits for tally in tallies) == counts["submits"]
    assert ATTEMPTS < counts["reads"] <= ATTEMPTS + READ_IN_VAIN
    assert sum(tally.polls for tally in tallies) >= counts["polls"] + 2 * READ_IN_VAIN, "that many never arrived"
    states = Counter(task["state"] for task in counts["tasks"].values())
    # What nobody read is exactly what nobody knew the id of.
    assert states == {"read": ATTEMPTS, "failed": 4, "submitted": 3}
    assert {task for task, told in counts["tasks"].items() if told["state"] == "read"} == set(tasks)


def test_a_run_against_a_dead_service_ends_in_seconds_and_loses_no_task(
    account: Callable[[str], Account], sandbox: SandboxAddresses, ask: Ask
) -> None:
    """The service dies under a run of a hundred and comes back; then the same keys are asked for again."""
    here = account("dead")
    subjects = [f"attempt {n}" for n in range(100)]
    ask(f"{sandbox.audit}/control", {"faults": {"provider": [{"kind": "status", "status": 503, "skip": 60}]}})
    dead = threading.Event()

    def try_one(subject: str) -> bool:
        try:
            here.obtain(subject)
        except ProviderUnavailable:
            dead.set()
            return False
        return True

    clock = SystemClock()
    began = clock.monotonic()
    with ThreadPoolExecutor(WORKERS) as pool:
        before = list(pool.map(try_one, subjects))
    took = clock.monotonic() - began
    during = ask(sandbox.audit)["provider"]
    ask(f"{sandbox.audit}/control", {"faults": {"provider": []}})
    Stop().wait(2.5)  # longer than the leases of the tasks left behind
    with ThreadPoolExecutor(WORKERS) as pool:
        after = list(pool.map(try_one, subjects))

    counts = ask(sandbox.audit)["provider"]
    print(f"\n{sum(before)} of 100 before, {took:.1f} s, {during['submits']} submits, then {counts['submits']}")
    assert dead.is_set()
    assert 0 < sum(before) < 60
    assert took < 10
    assert all(after)
    assert counts["submits"] == counts["reads"] == len(subjects), "what was paid for before was resumed"


WAYS = ("zero_balance", "no_slot", "queue")
TASKS = 12


def test_no_more_is_in_flight_than_the_service_has_threads_and_a_busy_one_loses_nothing(
    account: Callable[[str], Account], sandbox: SandboxAddresses, ask: Ask
) -> None:
    """In the three ways of CaptchaAI's own sources. First it says how many threads there are, then it has fewer."""
    accounts = {way: account(f"busy{way.replace('_', '')}") for way in WAYS}

    def run(way: str, threads: int) -> dict[str, Any]:
        here = accounts[way]
        ask(f"{sandbox.audit}/control", {"keys": {here.key: {"threads": threads, "when_busy": way}}})
        with ThreadPoolExecutor(WORKERS) as pool:
            tasks = list(pool.map(lambda n: here.obtain(f"{threads} {n}"), range(TASKS)))
        assert len(set(tasks)) == TASKS
        found: dict[str, Any] = ask(sandbox.audit)["provider"]["by_key"][fingerprint(here.key)]
        return found

    with ThreadPoolExecutor(len(WAYS)) as pool:
        told = list(pool.map(lambda way: run(way, 4), WAYS))
        untold = list(pool.map(lambda way: run(way, 2), WAYS))

    assert [(counts["submits"], counts["peak"]) for counts in told] == [(TASKS, 4)] * 3
    assert [(counts["submits"], counts["reads"]) for counts in untold] == [(2 * TASKS, 2 * TASKS)] * 3
    refused = {way: [event.data["code"] for event in accounts[way].told] for way in WAYS}
    print(f"\n{ {way: len(codes) for way, codes in refused.items()} } of {TASKS} submits were refused")
    assert set(refused["zero_balance"]) == set(refused["no_slot"]) == {"provider_busy"}
    assert refused["queue"] == []
    assert max(map(len, refused.values())) <= TASKS / 2, "the service is asked for its threads anew"
