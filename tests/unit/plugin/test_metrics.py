from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_captcha_qa.model.record import AttemptLine, Header
from pytest_captcha_qa.plugin.metrics import Textfile
from pytest_captcha_qa.records.jsonl import JsonlSink
from pytest_captcha_qa.reporting.causes import Session
from pytest_captcha_qa.reporting.verdict import Verdict, decide

TS = "2026-11-29T11:18:03.120Z"


@pytest.fixture
def verdict_on(tmp_path: Path, attempt: Callable[..., AttemptLine]) -> Callable[..., Verdict]:
    """`verdict_on(exit, *changes)` returns the verdict on a run of these attempts, whose records are there."""

    def verdict(exit: int, *changes: dict[str, Any]) -> Verdict:
        header = Header(ts=TS, tool="t", run_id="r1", env="staging", release="1.3.0")
        sink = JsonlSink(tmp_path / "records", header)
        for number, change in enumerate(changes):
            sink.write(attempt(id=f"a{number}", ts=TS.replace("03.120", f"{number:02d}.000"), **change))
        sink.close(True)
        made = decide(Session(pytest_exit=0, environment="staging"), None)
        return replace(made, exit=exit, environment="staging", records=(sink.path,))

    return verdict


def gauges(path: Path, name: str) -> list[float]:
    families = text_string_to_metric_families(path.read_text())
    return [one.value for family in families for one in family.samples if one.name == f"captcha_qa_{name}"]


FAILED = {"outcome": "indeterminate", "fault": "provider", "verify_status": "skipped", "source": None, "wait": None}


@pytest.mark.parametrize(("exit", "up"), [(0, 1.0), (12, 0.0)])
def test_an_unlucky_last_attempt_is_no_outage(
    tmp_path: Path, verdict_on: Callable[..., Verdict], exit: int, up: float
) -> None:
    file = tmp_path / "captcha.prom"
    said = Textfile(file, tmp_path)(verdict_on(exit, {}, FAILED))

    assert said == "metrics: captcha.prom"
    assert gauges(file, "provider_up") == [up]
    assert gauges(file, "run_exit_code") == [exit]


def test_whose_fault_it_is_the_whole_run_tells(tmp_path: Path, verdict_on: Callable[..., Verdict]) -> None:
    refused = {
        "outcome": "failed", "fault": "undetermined", "verify_status": "fail",
        "error": {"code": "refused_twice", "message": "refused"},
    }  # fmt: skip
    file = tmp_path / "captcha.prom"
    Textfile(file, tmp_path)(verdict_on(1, refused, {"slug": "login"}))

    assert sorted(gauges(file, "form_up")) == [0.0, 1.0]


def test_records_that_are_gone_are_told(tmp_path: Path, verdict_on: Callable[..., Verdict]) -> None:
    verdict = verdict_on(0, {})
    verdict.records[0].unlink()

    said = Textfile(tmp_path / "captcha.prom", tmp_path)(verdict)
    assert said is not None
    assert said.startswith("metrics: there is no record file")
