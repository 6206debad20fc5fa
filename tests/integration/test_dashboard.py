"""The dashboard by `captcha-qa report` and at the end of a run of pytest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from history.team import Team, write_history
from pytest_captcha_qa.cli.main import main
from pytest_captcha_qa.reporting.dashboard import making

GATE = """
[gate]
max_p90 = { submit = 0.001 }
"""
# Altair and SciPy take seconds to compile; other children compile into a folder of the test run.
COMPILED = {"PYTHONPYCACHEPREFIX": ""}
TESTS = "def test_login(captcha_attempt): assert captcha_attempt('login')\n"


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of two releases in a folder where the command line runs."""
    write_history(tmp_path / "records", Team(releases=["1.0.0", "1.1.0"], evenings=0))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_report_writes_a_page_and_says_its_verdict(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "records", "-o", "public/index.html"]) == 0

    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("Release 1.1.0 on staging works: 4 of 4 forms passed in its newest run")
    assert told[-1].startswith("public/index.html: ")
    text = (records / "public" / "index.html").read_text(encoding="utf-8")
    assert "<title>CAPTCHA QA: staging, release 1.1.0</title>" in text
    assert 'href="./../records/7-000' in text


def test_report_as_json_gives_a_script_the_verdict_of_each_environment(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "records", "-o", "page.html", "--env", "staging", "--baseline", "1.0.0", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert said["page"] == "page.html"
    assert said["bytes"] == (records / "page.html").stat().st_size
    assert [(one["env"], one["level"]) for one in said["verdicts"]] == [("staging", "unknown")]


def test_report_shows_what_the_gate_of_the_configuration_says(records: Path) -> None:
    (records / "captcha-qa.toml").write_text(GATE)

    assert main(["report", "records", "-o", "page.html"]) == 0

    text = (records / "page.html").read_text(encoding="utf-8")
    assert "Rules of the gate" in text
    assert '<th scope="row" class="rule">max_p90</th>' in text
    assert "breaches the gate" in text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--env", "stagin"], 4, "unknown environment 'stagin' in these records"),
        (["--release", "9"], 4, "unknown release '9' in these records"),
        (["--baseline", "0.1"], 16, "the baseline '0.1' has no record in environment 'staging'"),
        (["--config", "nowhere.toml"], 4, "nowhere.toml"),
    ],
)
def test_report_refuses_what_is_not_there(
    records: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert main(["report", "records", "-o", "page.html", *arguments]) == code

    assert said in capsys.readouterr().err
    assert not (records / "page.html").exists()


def test_a_page_that_cannot_be_written_keeps_the_old_one_and_is_told(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (records / "taken").write_text("a file")

    assert main(["report", "records", "-o", "taken/page.html"]) == 4

    assert "the dashboard cannot be written to taken/page.html" in capsys.readouterr().err
    assert (records / "taken").read_text() == "a file"


def test_without_the_extra_report_names_it(
    records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "EXTRA", ("altair", "no_such_module_here"))

    assert main(["report", "records", "-o", "page.html"]) == 4

    assert "pip install 'pytest-captcha-qa[dashboard]'" in capsys.readouterr().err


def test_a_run_writes_its_page_after_the_verdict(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS})
    ran = project.run("--captcha-env=staging", "--captcha-dashboard=reports/page.html", env=COMPILED)

    assert ran.code == 0, ran.output
    assert "dashboard: reports/page.html" in ran.output
    text = (ran.folder / "reports" / "page.html").read_text(encoding="utf-8")
    assert "Works, not compared" in text
    assert "login" in text


def test_a_page_that_a_run_cannot_write_is_told_and_the_verdict_stands(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS})
    ran = project.run("--captcha-env=staging", "--captcha-dashboard=test_it.py/page.html", env=COMPILED)

    assert (ran.code, ran.verdict["exit"]) == (0, 0), ran.output
    assert "NO DASHBOARD: the dashboard cannot be written to" in ran.output
