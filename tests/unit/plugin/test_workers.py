"""What a worker tells at its end arrives where the run is decided."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.plugin.workers import Told, WorkerHooks


class Exits:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def note_deselected(self, count: int) -> None:
        self.heard.append(count)

    def expect_records(self, name: str, *, budget: int) -> None:
        self.heard.append((name, budget))

    def note_left(self, worker: object) -> None:
        self.heard.append(worker)


def _ended(*told: Told) -> tuple[Any, list[object]]:
    """Return a worker that has told this at its end, and what was heard of it."""
    node, exits, run = SimpleNamespace(workeroutput={}), Exits(), object()
    for one in told:
        one.tell(SimpleNamespace(config=node))  # type: ignore[arg-type]
    WorkerHooks(run, exits).pytest_testnodedown(node)  # type: ignore[arg-type]
    return node, exits.heard


def test_a_workers_record_file_and_what_it_left_out_are_heard() -> None:
    node, heard = _ended(Told(2, "run-gw0.jsonl", budget=8, left=False))

    assert heard == [2, ("run-gw0.jsonl", 8)]
    assert "exitstatus" not in node.workeroutput


def test_a_worker_without_attempts_has_no_record_file_that_could_vanish() -> None:
    assert _ended(Told(0, None, budget=2, left=False))[1] == [0]


def test_a_worker_that_was_left_ends_as_by_ctrl_c() -> None:
    node, heard = _ended(Told(0, None, budget=2, left=True))

    assert heard == [0, node]
    assert node.workeroutput["exitstatus"] == pytest.ExitCode.INTERRUPTED


def test_a_worker_that_crashed_has_told_nothing() -> None:
    assert _ended()[1] == []
