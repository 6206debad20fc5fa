"""The gate over whole runs of pytest, and over their records by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RULES = """
[gate]
min_verify_rate = 0.99
min_coverage = 1.0
max_age_of_pass = "3d"
max_resolve_share = 0.02
max_p90 = { page = 20, submit = 20 }
warn_p90 = { wait = 60 }
"""
IMPOSSIBLE = RULES.replace("submit = 20", "submit = 0.0001")
TESTS = """\
import pytest
@pytest.mark.parametrize("n", range(3))
def test_login(captcha_attempt, n): assert captcha_attempt("login")
"""
HEAVY = """\
import sys
def pytest_unconfigure(): print("heavy:", sorted({"duckdb", "scipy", "numpy"} & sys.modules.keys()))
"""
RUN = ("--captcha-env=staging", "--captcha-gate=enforce")


def command(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "CI", "GITHUB_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest_captcha_qa.cli.main", "gate", *arguments],
        cwd=folder,
        env={**kept, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_day_one_is_green_with_workers_too_and_says_what_it_cannot_know(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": TESTS}, settings=RULES).run(
        *RUN, "--captcha-baseline=previous", "--captcha-suite", "-n2"
    )
    gate = ran.verdict["gate"]
    assert (ran.code, gate["exit"], gate["counts"], gate["held_back"]) == (0, 0, True, None), ran.output
    states = {rule["rule"]: rule["status"] for rule in gate["rules"]}
    assert (states["min_coverage"], states["max_age_of_pass"]) == ("passed", "passed")
    assert states["regression"] == "not enough data"
    assert "gate: exit 0: no rule is breached" in ran.output
    assert gate["runs"] == [ran.verdict["run_id"]]


def test_a_breach_answers_10_where_it_counts_and_is_told_where_not(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS}, settings=IMPOSSIBLE)
    enforced = project.run(*RUN)
    assert (enforced.code, enforced.counts) == (10, "3 passed"), enforced.output
    assert [code["code"] for code in enforced.verdict["codes"]] == [10]
    assert "gate: breached: submitting the form of turnstile" in enforced.output
    assert "exit 10: the gate is breached: submitting the form" in enforced.output
    for arguments, why in (
        (("-k", "0 or 1", "-n1"), "(1 captcha test deselected)"),
        (("test_it.py::test_login",), "(only some tests were named)"),
    ):
        ran = project.run(*RUN, *arguments)
        assert (ran.code, ran.verdict["gate"]["exit"], ran.verdict["gate"]["mode"]) == (0, 10, "report"), ran.output
        assert f"gate, only reported {why}: enforced it would be exit 10" in ran.output
    by_default = project.run("--captcha-env=staging", "--captcha-baseline=9.9")
    assert (by_default.code, by_default.verdict["gate"]["codes"]) == (0, [10, 16]), by_default.output


def test_without_a_gate_nothing_is_loaded_and_one_without_rules_is_refused(
    staging: Callable[..., Any],
) -> None:
    project = staging({"test_it.py": TESTS, "conftest.py": HEAVY})
    absent = project.run("--captcha-env=staging")
    assert (absent.code, absent.verdict["gate"]) == (0, None)
    assert "heavy: []" in absent.output
    for option in ("--captcha-gate=report", "--captcha-baseline=previous"):
        refused = project.run("--captcha-env=staging", option)
        assert refused.code == 4, refused.output
        assert f"{option.partition('=')[0]}: there is no table [gate] in captcha-qa.toml" in refused.output


def test_shards_only_report_and_the_command_judges_them_together(staging: Callable[..., Any], tmp_path: Path) -> None:
    project = staging({"test_it.py": TESTS}, settings=IMPOSSIBLE)
    for shard in ("1", "2"):
        ran = project.run(*RUN, "--captcha-run-id=nightly", "-k", shard, env={"CAPTCHA_QA_SHARD": shard})
        assert ran.code == 0, ran.output
        assert f"(this is shard {shard}; judge all of them with `captcha-qa gate`)" in ran.output
    summary, quality = tmp_path / "summary.md", tmp_path / "quality.json"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = command(project.folder, "reports/records", "--json", "--code-quality", str(quality), env=github)
    said = json.loads(done.stdout)
    assert (done.returncode, said["runs"], said["codes"]) == (10, ["nightly"], [10]), done.stderr
    (rate,) = [rule for rule in said["rules"] if rule["rule"] == "min_verify_rate"]
    assert rate["numbers"]["judged"] == 2
    line = (
        (project.folder / "captcha-qa.toml").read_text().splitlines().index("max_p90 = { page = 20, submit = 0.0001 }")
    )
    assert f"::error file=captcha-qa.toml,line={line + 1},title=captcha gate%3A max_p90::breached: " in done.stderr
    assert "❌ breached" in summary.read_text("utf-8")
    assert [issue["check_name"] for issue in json.loads(quality.read_text())] == ["captcha-gate/max_p90"]
    reported = command(project.folder, "reports/records", "--mode", "report")
    assert (reported.returncode, "gate, only reported: enforced it would be exit 10" in reported.stdout) == (0, True)
    assert "::error" not in reported.stdout + reported.stderr
    assert command(project.folder, "reports/records", "--baseline", "9.9", "--mode", "enforce").returncode == 10
