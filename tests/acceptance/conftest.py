"""What acceptance tests share: a sandbox, pytest as a child process, and its verdict and records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

_SECONDS = 150
WITHOUT = ("-pno:cacheprovider", "-pno:randomly", "-pno:asyncio")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    """A sandbox of this module's own, fifty times as fast as life."""
    process = SandboxProcess()
    try:
        yield process.start(time_scale=0.02, seed=7)
    finally:
        process.stop()


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


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., PytestRun]:
    """Run pytest in a folder of its own, as a team does in its repository."""

    def run(*arguments: str, files: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> PytestRun:
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if not (tmp_path / "pytest.ini").exists():
            (tmp_path / "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", *WITHOUT, "--color=no", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=clean_environment(tmp_path) | dict(env or {}), timeout=_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        verdict = tmp_path / "reports" / "verdict.json"
        found = json.loads(verdict.read_text()) if verdict.exists() else {}
        return PytestRun(done.returncode, done.stdout, tmp_path, found)

    return run


def clean_environment(home: Path) -> dict[str, str]:
    """Return the process's variables without what a CI or a user has set for this package."""
    ours = ("CAPTCHA_QA_", "CI", "GITHUB_", "GITLAB_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"XDG_CACHE_HOME": str(home / "cache")}


def fetch_json(url: str, data: object = None) -> Any:
    """Return the JSON that an address of this machine answers."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)


@pytest.fixture
def ask() -> Callable[..., Any]:
    """`ask(url, data=None)` returns the JSON that an address of this machine answers."""
    return fetch_json
