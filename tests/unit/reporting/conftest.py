from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line
from pytest_captcha_qa.records.runs import Run, RunFile

TS = "2026-11-29T11:18:03.120Z"
MakeAttempt = Callable[..., AttemptLine]
MakeRun = Callable[..., Run]


@pytest.fixture
def attempt() -> MakeAttempt:
    """Make an attempt on `signup` that passed, changed by keywords."""
    numbers = itertools.count(1)

    def make(**changes: Any) -> AttemptLine:
        fields: dict[str, Any] = {
            "ts": TS, "id": f"a{next(numbers)}", "slug": "signup", "captcha": "turnstile", "task_id": "1",
            "wait": 8.0, "verify_status": "pass", "env": "staging", "release": "1.3.0", "run_id": "r1",
            "project": "default", "account": "main", "provider": "captchaai", "key_mode": "live",
            "purpose": "check", "expect": "accept", "outcome": "ok", "fault": None, "error": None,
            "source": "solved", "generation": 1, "submits": 1, "polls": 2, "seconds": {},
            "token_prefix": None, "http_status": 200, "variant": None, "attempt": 1, "worker": None,
            "worker_version": "0.3.0", "nodeid": "t.py::test_signup",
        }  # fmt: skip
        return AttemptLine(**(fields | changes))

    return make


@pytest.fixture
def run() -> MakeRun:
    """Make a complete run of the lines given, changed by keywords of its header."""

    def make(*lines: Line, complete: bool = True, **changes: Any) -> Run:
        fields: dict[str, Any] = {"tool": "t", "run_id": "r1", "env": "staging", "release": "1.3.0"} | changes
        file = RunFile(Path("reports/records/staging/r1.jsonl"), header=Header(ts=TS, **fields))
        file.attempts = [line for line in lines if isinstance(line, AttemptLine)]
        file.events = [line for line in lines if isinstance(line, EventLine)]
        file.footer = Footer(ts=TS, run_id="r1", complete=complete, attempts=len(file.attempts))
        return Run("r1", (file,))

    return make
