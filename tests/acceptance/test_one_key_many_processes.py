"""One key in many processes and threads: what the sandbox counted, not what the harness says of itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

PROGRAM = Path(__file__).with_name("programs") / "callers.py"
SECONDS = 60
LEASE = 2.0


class Program:
    """One process with callers of the key. What it tells is read line by line; it is killed if it tells too little."""

    def __init__(self, told: dict[str, Any], provider: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(told)],
            env=os.environ | {"SANDBOX_PROVIDER_URL": provider},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._heard: list[dict[str, Any]] = []
        self._watchdog = threading.Timer(SECONDS, self.process.kill)
        self._watchdog.start()

    def tells(self, name: str, times: int = 1) -> list[Any]:
        """Return what it told by that name, once it has so many times."""
        assert self.process.stdout is not None
        while len(told := [said[name] for said in self._heard if name in said]) < times:
            line = self.process.stdout.readline()
            assert line, f"the process ended before it told its {name}: {self._heard}"
            self._heard.append(json.loads(line))
        return told

    def go_on(self) -> None:
        """Let its callers take the next step."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def obtains(self) -> dict[str, Any]:
        """Let its one caller obtain the token, and return what it tells of it."""
        self.tells("step")
        self.go_on()
        self.tells("token")
        return self._heard[-1]

    def submits(self) -> str:
        """Let its one caller, who has obtained the token, submit the form, and return the outcome."""
        self.go_on()
        return str(self.tells("outcome")[0])

    def is_refused(self) -> str:
        """Let its one caller ask for the token, and return the error."""
        self.tells("step")
        self.go_on()
        return str(self.tells("outcome")[0])

    def dies(self) -> None:
        """Let its one caller go on to the step in which it dies."""
        self.go_on()
        assert self.process.wait(SECONDS) == -signal.SIGKILL

    def end(self) -> None:
        """Kill it if it still runs."""
        self.process.kill()
        self.process.communicate()
        self._watchdog.cancel()


class Counted:
    """What the sandbox has counted since the start of the test, and its faults."""

    def __init__(self, audit: str, ask: Callable[..., Any]) -> None:
        self._audit, self._ask = audit, ask
        ask(f"{audit}/reset", {})

    @property
    def submits(self) -> int:
        return int(self._ask(self._audit)["provider"]["submits"])

    @property
    def posts(self) -> dict[str, int]:
        return dict(self._ask(self._audit)["site"]["posts_by_token"])

    def polled_in_vain(self) -> bool:
        return bool(self._ask(self._audit)["provider"]["codes"].get("CAPCHA_NOT_READY"))

    def answer_polls_with(self, *codes: str) -> None:
        faults = [{"kind": "error", "code": code, "path": "/res.php", "action": "get"} for code in codes]
        self._ask(f"{self._audit}/control", {"faults": {"provider": faults}})


@pytest.fixture
def counted(sandbox: SandboxAddresses, ask: Callable[..., Any]) -> Counted:
    return Counted(sandbox.audit, ask)


@pytest.fixture
def kept_in(request: pytest.FixtureRequest) -> str | None:
    """The address of the Redis the callers share; None, unless a test asks otherwise, for a file."""
    if getattr(request, "param", "a file") == "a file":
        return None
    server = request.getfixturevalue("redis_server")
    server.empty()
    return str(server.url)


IN_BOTH = pytest.mark.parametrize("kept_in", ["a file", "redis"], indirect=True)


@pytest.fixture
def start(
    sandbox: SandboxAddresses, tmp_path: Path, counted: Counted, kept_in: str | None, one_form: Callable[..., str]
) -> Iterator[Callable[..., Program]]:
    """`start(callers=1, fresh=False, crash=None)` starts a process for the one key of this test."""
    (tmp_path / "captcha-qa.toml").write_text(one_form(sandbox.site))
    started: list[Program] = []

    def program(*, callers: int = 1, fresh: bool = False, crash: str | None = None) -> Program:
        told = {"folder": str(tmp_path), "subject": "registration 7", "lease": LEASE, "store": kept_in}
        told |= {"callers": callers, "fresh": fresh, "crash": crash}
        started.append(Program(told, sandbox.provider))
        return started[-1]

    yield program
    for one in started:
        one.end()


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, "what the test waits for did not happen"
        time.sleep(0.05)


def fingerprints(programs: list[Program], callers: int) -> list[str]:
    """Let all callers ask at once, and return the fingerprint of the token that each got."""
    for program in programs:
        program.tells("step")
    for program in programs:
        program.go_on()
    return [token for program in programs for token in program.tells("token", callers)]


def outcomes(programs: list[Program], callers: int) -> list[str]:
    """Let all callers use their token at once, and return what came of it."""
    for program in programs:
        program.tells("step", 2)
    for program in programs:
        program.go_on()
    return sorted(outcome for program in programs for outcome in program.tells("outcome", callers))


@pytest.mark.parametrize(
    ("kept_in", "processes", "callers"),
    [("a file", 8, 1), ("a file", 1, 8), ("a file", 2, 4), ("redis", 8, 1)],
    ids=["8 processes", "8 threads", "2 processes with 4", "8 processes on redis"],
    indirect=["kept_in"],
)
def test_eight_callers_of_one_key_cause_one_submit_and_one_post(
    start: Callable[..., Program], counted: Counted, processes: int, callers: int
) -> None:
    programs = [start(callers=callers) for _ in range(processes)]

    tokens = fingerprints(programs, callers)
    assert len(tokens) == 8
    assert len(set(tokens)) == 1
    assert counted.submits == 1
    assert counted.posts == {}

    assert outcomes(programs, callers) == ["ok"] + ["spent_elsewhere"] * 7
    assert counted.submits == 1
    assert counted.posts == {tokens[0]: 1}


def test_eight_test_runs_of_one_key_never_post_a_token_twice(start: Callable[..., Program], counted: Counted) -> None:
    programs = [start(fresh=True) for _ in range(8)]

    tokens = fingerprints(programs, 1)
    assert len(set(tokens)) == 1
    done = outcomes(programs, 1)

    # Each wants a post of its own, so one whose token was used by another goes on to the next generation; after
    # four that others have used it gives up.
    assert set(done) <= {"ok", "spent_elsewhere"}
    assert set(counted.posts.values()) == {1}
    assert len(counted.posts) == done.count("ok") >= 4
    assert counted.submits == len(counted.posts)


@IN_BOTH
def test_the_task_of_a_killed_solver_is_resumed(start: Callable[..., Program], counted: Counted) -> None:
    counted.answer_polls_with("CAPCHA_NOT_READY")
    solver = start()
    solver.tells("step")
    solver.go_on()
    wait_until(counted.polled_in_vain)
    solver.end()
    counted.answer_polls_with()

    heir = start()
    assert heir.obtains()["source"] == "resumed"
    assert heir.submits() == "ok"
    assert counted.submits == 1
    assert set(counted.posts.values()) == {1}


def test_who_waits_for_a_solver_that_is_killed_resumes_its_task(
    start: Callable[..., Program], counted: Counted
) -> None:
    counted.answer_polls_with("CAPCHA_NOT_READY")
    solver, heir = start(), start()
    for program in (solver, heir):
        program.tells("step")
    solver.go_on()
    wait_until(counted.polled_in_vain)
    heir.go_on()
    solver.end()
    counted.answer_polls_with()

    assert heir.tells("source") == ["resumed"]
    assert heir.submits() == "ok"
    assert counted.submits == 1


@pytest.mark.parametrize(("moment", "posts"), [("before the post", 0), ("after the post", 1)])
def test_a_token_spent_by_a_crashed_consumer_is_never_sent_again(
    start: Callable[..., Program], counted: Counted, moment: str, posts: int
) -> None:
    crashing = start(crash=moment)
    lost = crashing.obtains()
    crashing.dies()

    assert start(fresh=False).is_refused() == "spent_elsewhere"
    assert sum(counted.posts.values()) == posts
    assert counted.submits == 1

    rerun = start(fresh=True)
    found = rerun.obtains()
    assert found["token"] != lost["token"]
    assert (found["generation"], found["source"]) == (lost["generation"] + 1, "solved")
    assert rerun.submits() == "ok"
    assert counted.submits == 2
    assert counted.posts == dict.fromkeys([lost["token"]] * posts + [found["token"]], 1)
