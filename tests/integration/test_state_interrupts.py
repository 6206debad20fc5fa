"""Ctrl-C while another process holds the state file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_captcha_qa.state.sqlite import SqliteLimits

WAITING = """
import sys
from pathlib import Path
from pytest_captcha_qa.state.sqlite import SqliteLimits
limits = None if sys.argv[2] == "opening" else SqliteLimits(Path(sys.argv[1]))
print("waits now", flush=True)
sys.stdin.readline()
limits = limits or SqliteLimits(Path(sys.argv[1]))
limits.count("run")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("step", ["opening", "using"])
def test_an_interrupt_ends_the_wait_for_a_locked_file_at_once(tmp_path: Path, step: str) -> None:
    path = tmp_path / "keys.sqlite3"
    SqliteLimits(path).close()
    waiting = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(path), step],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waits now\n"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.communicate("\n", timeout=0.5)

    waiting.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, said = waiting.communicate(timeout=9)

    assert time.monotonic() - sent < 2.0
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    other.close()
