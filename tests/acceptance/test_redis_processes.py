"""A worker that is stopped past its lease, or whose clock is wrong, among others on one Redis."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.engine.store import Busy, Granted
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.state.redis import RedisStore

KEY, FORM = "5e" * 32, Fingerprint("form")
TIMES = KeyTimes(lease=0.8, renew=0.2, http=0.1, solve=300, redelivery=90, keep=110)
WORKER = """\
import sys, time
from pytest_captcha_qa.errors import OwnerLost
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink

skew, now = float(sys.argv[2]), time.time
time.time = lambda: now() + skew
times = KeyTimes(lease=0.8, renew=0.2, http=0.1, solve=300, redelivery=90, keep=110)
store = RedisStore(RedisLink(StoreAddress.parse(sys.argv[1])))
answer = store.claim("5e" * 32, Fingerprint("form"), "worker", times=times)
print(type(answer).__name__, flush=True)
sys.stdin.readline()
try:
    store.intend(answer.lease)
    print("written", flush=True)
except OwnerLost:
    print("owner lost", flush=True)
"""


@pytest.fixture
def start(redis_server: Any) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """Starts a worker whose clock is wrong by so many seconds; it claims the key, and writes after a line on stdin."""
    redis_server.empty()
    started = []

    def start(skew: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, redis_server.url, str(skew)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def claim(store: RedisStore) -> Any:
    return store.claim(KEY, FORM, "other", times=replace(TIMES, lease=30))


@pytest.mark.parametrize("skew", [-600.0, 600.0])
def test_a_worker_stopped_past_its_lease_writes_nothing_when_it_goes_on(
    start: Callable[[float], subprocess.Popen[str]], redis_link: Any, skew: float
) -> None:
    worker, store = start(skew), RedisStore(redis_link)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "Granted\n"
    worker.send_signal(signal.SIGSTOP)
    answer = claim(store)
    while isinstance(answer, Busy):
        Stop().wait(answer.retry_after)
        answer = claim(store)
    assert isinstance(answer, Granted)
    store.intend(answer.lease)
    worker.send_signal(signal.SIGCONT)
    assert worker.communicate("\n", timeout=30)[0] == "owner lost\n"
    store.submitted(answer.lease, "t-1")
