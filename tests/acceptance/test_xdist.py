"""Runs over several workers, and runs that are ended from outside: nothing is lost, nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

SECONDS = 60
VALID = jsonschema.Draft202012Validator(json.loads((files("pytest_captcha_qa.records") / "schema.json").read_text()))
SUITES = ("--captcha-env=demo", "--pyargs", "pytest_captcha_qa.suites")
# What a test needs to end a run from outside: who decides, who runs tests, and where the site is.
NOTES = """\
import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def notes(captcha_env):
    Path("origin.txt").write_text(captcha_env.origin)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    note(os.getppid() if worker else os.getpid(), "decides.pid")
    note(os.getpid(), f"{worker}.pid")


def note(pid, name):
    part = Path(f"{name}.{os.getpid()}")
    part.write_text(str(pid))
    part.replace(name)
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def serves(origin: str) -> bool:
    parts = urlsplit(origin)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0


def left_in(folder: Path) -> list[str]:
    """Return what is left in a folder for temporary files; pytest keeps its own folder there."""
    return [path.name for path in folder.iterdir() if not path.name.startswith("pytest-of-")]


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, "what the test waits for did not happen"
        time.sleep(0.05)


def said_by(run: Any, run_id: str) -> set[tuple[str, ...]]:
    names = ("nodeid", "slug", "expect", "outcome")
    return {tuple(a[name] for name in names) for a in run.attempts if a["run_id"] == run_id}


def test_four_workers_record_what_one_process_records_in_whole_files(
    run_pytest: Callable[..., Any],
) -> None:
    alone = run_pytest(*SUITES, "--captcha-run-id=alone")
    spread = run_pytest(*SUITES, "--captcha-run-id=spread", "-n", "4")

    assert (alone.code, spread.code) == (0, 0), alone.output + spread.output
    tests = {nodeid for nodeid, *_ in said_by(spread, "alone")}
    assert f"{len(tests)} passed" in alone.output
    assert said_by(spread, "alone") == said_by(spread, "spread")
    names = [path.name for path in spread.record_files]
    assert names == ["alone.jsonl", *(f"spread-gw{number}.jsonl" for number in range(4))]
    for path in spread.record_files:
        check_whole_and_valid([json.loads(line) for line in path.read_text().splitlines()])


def check_whole_and_valid(lines: list[dict[str, Any]]) -> None:
    """Check the lines of a record file against the published schema, and each other."""
    assert [problem.message for line in lines for problem in VALID.iter_errors(line)] == []
    kinds = [line["$type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("header", "footer")
    assert kinds.count("header") == kinds.count("footer") == 1
    assert (lines[-1]["complete"], lines[-1]["attempts"]) == (True, kinds.count("attempt"))
    started, ended = ([line["id"] for line in lines if line["$type"] == kind] for kind in ("started", "attempt"))
    assert sorted(started) == sorted(ended)


@WORKERS
def test_nothing_of_a_run_stays_behind(
    run_pytest: Callable[..., Any], own_folder: Path, workers: tuple[str, ...]
) -> None:
    test = "def test_it(captcha_attempt):\n    assert captcha_attempt('login')\n"
    run = run_pytest(
        "--captcha-env=demo",
        *workers,
        files={"conftest.py": NOTES, "test_it.py": test},
        env={"TMPDIR": str(own_folder)},
    )

    assert run.code == 0, run.output
    assert not serves((run.folder / "origin.txt").read_text())
    assert left_in(own_folder) == []


def test_a_worker_killed_inside_an_attempt_leaves_a_lost_one_and_no_hole(
    run_pytest: Callable[..., Any], own_folder: Path
) -> None:
    test = """\
import os
import signal

import pytest


@pytest.mark.parametrize("number", range(4))
def test_it(captcha_attempt, number):
    assert captcha_attempt("login")


def test_dies(captcha_form):
    captcha_form("login")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run = run_pytest(
        "--captcha-env=demo",
        "-n",
        "2",
        files={"conftest.py": NOTES, "test_it.py": test},
        env={"TMPDIR": str(own_folder)},
    )

    assert run.code == run.verdict["exit"] == 1, run.output
    assert run.verdict["lost"] == 1
    assert run.verdict["complete"] is False
    assert {code["code"] for code in run.verdict["codes"]} == {1, 12}
    ended = {attempt["id"]: attempt["nodeid"] for attempt in run.attempts}
    assert sorted(ended.values()) == [f"test_it.py::test_it[{number}]" for number in range(4)]
    [lost] = [line for line in run.of_type("started") if line["id"] not in ended]
    assert lost["nodeid"] == "test_it.py::test_dies"
    assert not serves((run.folder / "origin.txt").read_text())
    assert left_in(own_folder) == []


@WORKERS
def test_the_sandbox_ends_when_the_process_that_decides_is_killed(
    run_pytest: Callable[..., Any], tmp_path: Path, own_folder: Path, workers: tuple[str, ...]
) -> None:
    test = "import time\ndef test_it(captcha_form):\n    captcha_form('login')\n    time.sleep(60)\n"
    pid, origin = tmp_path / "decides.pid", tmp_path / "origin.txt"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(
            run_pytest,
            "--captcha-env=demo",
            *workers,
            files={"conftest.py": NOTES, "test_it.py": test},
            env={"TMPDIR": str(own_folder)},
        )
        wait_until(pid.exists)
        assert serves(origin.read_text())
        os.kill(int(pid.read_text()), signal.SIGKILL)
        assert running.result(SECONDS).code == -signal.SIGKILL
    wait_until(lambda: not serves(origin.read_text()))


@pytest.fixture
def never_solved(sandbox: SandboxAddresses, ask: Callable[..., Any], one_form: Callable[..., str]) -> Mapping[str, str]:
    """The files of a project, on a sandbox whose tasks are never solved."""
    ask(f"{sandbox.audit}/reset", {})
    ask(f"{sandbox.audit}/control", {"faults": {"provider": [{"kind": "not_ready_forever"}]}})
    test = """\
def test_first(captcha_form):
    captcha_form("login")

def test_second(captcha_attempt):
    captcha_attempt("login")
"""
    return {"conftest.py": NOTES, "test_it.py": test, "captcha-qa.toml": one_form(sandbox.site)}


@pytest.mark.parametrize(
    ("workers", "reached"),
    [((), "decides.pid"), (("-n", "2"), "decides.pid"), (("-n", "2"), "*.pid")],
    ids=["one process", "two workers", "two workers that get it too"],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_ended_by_a_signal_closes_its_records_as_incomplete_and_exits_2(
    run_pytest: Callable[..., Any],
    ask: Callable[..., Any],
    tmp_path: Path,
    own_folder: Path,
    sandbox: SandboxAddresses,
    never_solved: Mapping[str, str],
    workers: tuple[str, ...],
    reached: str,
    number: signal.Signals,
) -> None:
    env = {"SANDBOX_PROVIDER_URL": sandbox.provider, "TMPDIR": str(own_folder)}
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_pytest, "--captcha-env=staging", *workers, files=never_solved, env=env)
        wait_until(lambda: "CAPCHA_NOT_READY" in ask(sandbox.audit)["provider"]["codes"])
        for pid in {int(path.read_text()) for path in tmp_path.glob(reached)}:
            os.kill(pid, number)
        run = running.result(SECONDS)

    assert run.code == run.verdict["exit"] == 2, run.output
    assert (run.verdict["complete"], run.verdict["lost"]) == (False, 0)
    [attempt] = [attempt for attempt in run.attempts if attempt["nodeid"] == "test_it.py::test_second"]
    assert attempt["outcome"] == "indeterminate"
    assert attempt["error"]["code"] == "KeyboardInterrupt"
    assert attempt["task_id"] is not None
    footers = run.of_type("footer")
    assert len(footers) == len(run.record_files)
    assert False in {footer["complete"] for footer in footers}
    assert left_in(own_folder) == []
