from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line, timestamp
from pytest_captcha_qa.records.lines import encode
from pytest_captcha_qa.records.runs import Run, RunFile
from pytest_captcha_qa.reporting.dataset import open_dataset

TS = "2026-11-29T11:18:03.120Z"
MakeRun = Callable[..., Run]
MakeHistory = Callable[..., Any]


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


@pytest.fixture
def history(tmp_path: Path, attempt: Callable[..., AttemptLine]) -> Iterator[MakeHistory]:
    """Write runs, each a mapping of its header's changes and its attempts' changes, and open them as a dataset."""
    opened: list[Any] = []
    numbers = itertools.count(1)

    def make(*runs: tuple[dict[str, Any], Sequence[dict[str, Any]]], folder: Path = tmp_path / "records") -> Any:
        folder.mkdir(exist_ok=True)
        for header, lines in runs:
            number = next(numbers)
            write_run(folder / f"r{number}.jsonl", header | {"run_id": f"r{number}"}, number, lines, attempt)
        opened.append(open_dataset([folder]))
        return opened[-1]

    yield make
    for dataset in opened:
        dataset.close()


def write_run(
    path: Path,
    header: dict[str, Any],
    day: int,
    lines: Sequence[dict[str, Any]],
    attempt: Callable[..., AttemptLine],
) -> None:
    ts = timestamp(1_790_000_000.0 + 86_400 * day)
    first = Header(**({"ts": ts, "tool": "t", "env": "staging", "release": "1.0"} | header))
    common = {"ts": ts, "run_id": first.run_id, "release": first.release, "env": first.env}
    attempts = [attempt(**(common | changes)) for changes in lines]
    footer = Footer(ts=ts, run_id=first.run_id, complete=True, attempts=len(attempts))
    path.write_bytes(b"".join(map(encode, (first, *attempts, footer))))
