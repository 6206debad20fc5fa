"""What tests of the product as a whole share: pytest as a child process, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_SECONDS = 150
_NOT_OURS = ("CAPTCHA_QA_", "CI", "GITHUB_", "GITLAB_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
_WITHOUT = ("cacheprovider", "randomly", "asyncio")


def pytest_configure() -> None:
    """Let child processes be interrupted although this one was started in the background, which ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class PytestRun:
    """What one run of pytest left behind."""

    code: int
    output: str
    folder: Path
    verdict: dict[str, Any] = field(default_factory=dict)

    @property
    def record_files(self) -> list[Path]:
        return sorted(self.folder.glob("reports/records/*/*.jsonl"))

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for path in self.record_files for line in path.read_text().splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["$type"] == kind]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self.of_type("attempt")

    @property
    def counts(self) -> str:
        """Return pytest's last line without its time, such as `1 failed, 2 passed`."""
        last = self.output.strip().splitlines()[-1]
        return last.strip("= ").split(" in ")[0]


@pytest.fixture(scope="session")
def clean_environment() -> Callable[[Path], dict[str, str]]:
    """`clean_environment(home)` returns the variables without what a CI or a user has set for this package."""

    def clean(home: Path) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        return kept | {"XDG_CACHE_HOME": str(home / ".cache"), "COLUMNS": "120", "NO_COLOR": "1"}

    return clean


@pytest.fixture(scope="session")
def run_child(clean_environment: Callable[[Path], dict[str, str]]) -> Callable[..., PytestRun]:
    """`run_child(folder, *arguments, env=...)` runs pytest in a folder, as a team does in its repository."""

    def run(
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        without: tuple[str, ...] = _WITHOUT,
    ) -> PytestRun:
        done = subprocess.run(
            [python, "-m", "pytest", *(f"-pno:{name}" for name in without), *arguments],
            cwd=folder,
            env=clean_environment(folder) | dict(env or {}),
            timeout=_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        verdict = folder / "reports" / "verdict.json"
        found = json.loads(verdict.read_text()) if verdict.exists() else {}
        return PytestRun(done.returncode, done.stdout, folder, found)

    return run


@pytest.fixture(scope="session")
def write_files() -> Callable[[Path, Mapping[str, str]], None]:
    """`write_files(folder, {name: text})` writes a team's files."""

    def write(folder: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


@pytest.fixture(scope="session")
def ask() -> Callable[..., Any]:
    """`ask(url, data=None)` returns the JSON that an address of this machine answers."""

    def fetch(url: str, data: object = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    return fetch
