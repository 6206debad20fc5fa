"""`--captcha-metrics`: the figures of runs in a textfile, over all workers and run after run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

TESTS = """\
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(captcha_attempt, number):
    assert captcha_attempt("login")
"""
WITHOUT_THE_EXTRA = """\
import sys
sys.modules["prometheus_client"] = None
"""


def samples(file: Path, name: str) -> list[tuple[dict[str, str], float]]:
    families = text_string_to_metric_families(file.read_text())
    found = [one for family in families for one in family.samples if one.name == f"captcha_qa_{name}"]
    return [(one.labels, one.value) for one in found]


def test_runs_add_up_over_all_their_workers(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS})
    first = project.run("--captcha-env=staging", "-n2", "--captcha-metrics=out/captcha.prom", "--captcha-release=1.0")
    second = project.run("--captcha-env=staging", "-k0", env={"CAPTCHA_QA_METRICS": "out/captcha.prom"})
    file = project.folder / "out" / "captcha.prom"

    assert (first.code, second.code) == (0, 0), first.output
    assert "metrics: out/captcha.prom" in first.output
    releases = {labels["release"]: value for labels, value in samples(file, "attempts_total")}
    assert releases == {"1.0": 4.0, "none": 1.0}
    waits = [json.loads(line)["wait"] for line in _attempts(project.folder)]
    assert abs(sum(value for _, value in samples(file, "wait_seconds_sum")) - sum(waits)) < 0.001
    assert {labels["time_scale"] for labels, _ in samples(file, "wait_seconds_sum")} == {"0.02"}
    assert samples(file, "run_exit_code") == [({"env": "staging"}, 0.0)]
    assert samples(file, "provider_up") == [({"env": "staging", "provider": "sandbox"}, 1.0)]


def _attempts(folder: Path) -> list[str]:
    lines = (line for path in folder.glob("reports/records/*/*.jsonl") for line in path.read_text().splitlines())
    return [line for line in lines if '"$type":"attempt"' in line]


def test_a_file_that_cannot_be_written_decides_nothing(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS, "taken": ""})
    ran = project.run("--captcha-env=staging", "-k0", "--captcha-metrics=taken/captcha.prom")

    assert ran.code == 0, ran.output
    assert "metrics: taken/captcha.prom cannot be written: Not a directory" in ran.output


def test_what_cannot_work_is_a_usage_error(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS, "hiding.py": WITHOUT_THE_EXTRA})
    named = project.run("--captcha-env=staging", "--captcha-metrics=captcha.txt")
    missing = project.run("--captcha-env=staging", "-phiding", "--captcha-metrics=a.prom", env={"PYTHONPATH": "."})

    assert (named.code, missing.code) == (4, 4), missing.output
    assert "--captcha-metrics: 'captcha.txt' must end in .prom" in named.output
    assert "--captcha-metrics needs its extra: pip install 'pytest-captcha-qa[metrics]'" in missing.output
