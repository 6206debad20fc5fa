from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line
from pytest_captcha_qa.records.runs import Run, RunFile

TS = "2026-11-29T11:18:03.120Z"
MakeRun = Callable[..., Run]


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
