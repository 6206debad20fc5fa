"""What five hundred solves in flight cost one process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxProcess

PROGRAMS = Path(__file__).parents[2] / "benchmarks"
SOLVES, RUNS = 500, 3
MOST_CORES, MOST_MIB = 0.2, 120
NOT_READY = {"kind": "error", "code": "CAPCHA_NOT_READY", "path": "/res.php"}


@pytest.fixture
def measured(tmp_path: Path, ask: Callable[..., Any]) -> Callable[[int], dict[str, Any]]:
    """Run the program once in a process of its own, against a sandbox of its own."""

    def run(number: int) -> dict[str, Any]:
        key = f"{number}".zfill(32)
        with SandboxProcess() as process:
            sandbox = process.start(time_scale=1.0, seed=number)
            ask(f"{sandbox.audit}/control", {"faults": {"provider": [NOT_READY]}, "keys": {key: {"threads": 1000}}})
            told = {
                "provider": sandbox.provider, "site": sandbox.site, "audit": sandbox.audit, "key": key,
                "solves": SOLVES, "folder": str(tmp_path / key),
            }  # fmt: skip
            done = subprocess.run(
                [sys.executable, "-m", "solving", json.dumps(told)],
                cwd=PROGRAMS, timeout=180, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            found: dict[str, Any] = json.loads(done.stdout)
            return found | {"audit": ask(sandbox.audit)["provider"]}

    return run


@pytest.mark.bench
def test_500_solves_in_flight_cost_little_and_none_is_lost(
    measured: Callable[[int], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = [measured(number) for number in range(1, RUNS + 1)]

    cores, memory = [[run[name] for run in found] for name in ("cores", "mib")]
    with capsys.disabled():
        told = ", ".join(f"{core:.3f} cores {mib:.0f} MiB" for core, mib in zip(cores, memory, strict=True))
        print(f"\n{SOLVES} solves in flight, a poll each 5 s: median {statistics.median(cores):.3f} of {told}")
    for run in found:
        assert run["threads"] >= SOLVES, "all of them were in flight"
        assert len(set(run["tasks"])) == run["audit"]["submits"] == run["audit"]["reads"] == SOLVES
    assert statistics.median(cores) < MOST_CORES
    assert statistics.median(memory) < MOST_MIB
