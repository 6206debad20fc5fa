"""What a failed attempt leaves: the text in the report, a folder with the exchange, JUnit, verdict.json, `explain`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

BROKEN = """
[forms.broken]
path = "/broken"
type = "turnstile"
owner = "team-login"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
"""
TESTS = """\
def test_broken(captcha_attempt):
    assert captcha_attempt("broken")

def test_sound(captcha_attempt):
    assert captcha_attempt("login")

def test_ordinary():
    pass
"""
ATTEMPT = "def test_it(captcha_attempt): assert captcha_attempt('login')\n"
NOBODY = "http://127.0.0.1:9"  # nothing listens on the discard port


def exchanges(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("reports/failures/*/exchange.json"))]


def text_of(output: str) -> list[str]:
    """Return the lines of the first failure text in an output."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("form     "))
    end = next(number for number, line in enumerate(lines) if line.startswith("run again"))
    return lines[start : end + 1]


def said(output: str) -> dict[str, str]:
    rows = (line.split("  ", 1) for line in text_of(output))
    return {name: text.strip() for name, text in rows}


@pytest.fixture(scope="module", params=[(), ("-n2",)], ids=["plain", "-n2"])
def broken(staging: Callable[..., Any], request: pytest.FixtureRequest) -> Any:
    project = staging({"test_it.py": TESTS}, settings=BROKEN)
    return project.run("--captcha-env=staging", "--junitxml=junit.xml", "--show-capture=no", *request.param)


def test_the_report_says_what_failed_in_at_most_twelve_lines(broken: Any) -> None:
    assert broken.code == 1, broken.output
    assert len(text_of(broken.output)) <= 12
    [folder] = (broken.folder / "reports" / "failures").iterdir()
    rows = said(broken.output)
    assert rows.pop("fault").startswith("product: the site refused a fresh token")
    assert rows.pop("control")
    assert rows.pop("when").startswith("release ")
    assert rows.pop("next").startswith("compare the backend's secret")
    assert rows == {
        "form": "broken (turnstile), environment staging",
        "owner": "team-login",
        "phase": "submit the form",
        "tokens tried": "2",
        "HTTP status": "422",
        "last pass": "none in the earlier records",
        "evidence": f"reports/failures/{folder.name}/",
        "run again": "pytest --captcha-env=staging test_it.py::test_broken",
    }
    assert broken.output.count("run again ") == 1


def test_the_folder_has_the_record_and_the_exchange_without_values(broken: Any) -> None:
    [told] = exchanges(broken.folder)
    [failed] = [attempt for attempt in broken.attempts if attempt["outcome"] != "ok"]
    assert json.loads((broken.folder / "reports" / "failures" / failed["id"] / "record.json").read_text()) == failed
    steps = [(exchange["step"], exchange["method"], exchange["status"]) for exchange in told["exchanges"]]
    assert steps == [("page", "GET", 200)] * 2 + [("submit", "POST", 422)] * 2
    last = told["exchanges"][-1]
    assert [field["name"] for field in last["fields"]] == ["csrf_token", "email", "name", "cf-turnstile-response"]
    assert last["headers"]["X-Captcha-QA-Run"] == failed["run_id"]
    assert last["headers"]["Cookie"] is None
    assert "The captcha check failed. Please try again." in last["excerpt"].splitlines()
    assert list(told["page"]["widgets"]) == ["turnstile"]


def test_the_verdict_names_owner_and_evidence(broken: Any) -> None:
    [folder] = (broken.folder / "reports" / "failures").iterdir()
    forms = broken.verdict["forms"]
    assert (forms["broken"]["owner"], forms["broken"]["evidence"]) == (
        "team-login",
        [f"reports/failures/{folder.name}"],
    )
    assert (forms["login"]["owner"], forms["login"]["evidence"]) == (None, [])


def test_junit_has_properties_and_an_attachment(broken: Any) -> None:
    cases = {case.get("name"): case for case in ElementTree.parse(broken.folder / "junit.xml").iter("testcase")}
    [folder] = (broken.folder / "reports" / "failures").iterdir()
    failed = {p.get("name"): p.get("value") for p in cases["test_broken"].iter("property")}
    assert failed.pop("captcha.task_id", "").isdigit()
    assert failed == {
        "captcha.form": "broken",
        "captcha.outcome": "failed",
        "captcha.fault": "product",
        "captcha.evidence": f"reports/failures/{folder.name}",
    }
    out = cases["test_broken"].findtext("system-out") or ""
    assert out.splitlines() == [f"[[ATTACHMENT|reports/failures/{folder.name}/exchange.json]]"]
    assert "tokens tried  2" in (cases["test_broken"].findtext("failure") or "")
    sound = {p.get("name"): p.get("value") for p in cases["test_sound"].iter("property")}
    assert (sound["captcha.form"], sound["captcha.outcome"]) == ("login", "ok")
    assert cases["test_sound"].find("system-out") is None
    assert list(cases["test_ordinary"].iter("property")) == []


@pytest.mark.parametrize(
    ("env", "settings", "phase", "fault", "asked"),
    [
        ({"PROVIDER_URL": NOBODY}, "", "obtain the token", "provider", ["GET"]),
        ({"SITE_URL": NOBODY}, "", "open the form", "infrastructure", ["GET"]),
        ({}, '[env.staging.forms.login]\npath = "/search"\n', "open the form", "product", ["GET"]),
        ({"SITE_URL": "https://shop.example"}, "", "open the form", "scope", []),
    ],
    ids=["provider down", "site down", "no widget", "not authorised"],
)
def test_whatever_ends_an_attempt_is_told_and_kept(
    staging: Callable[..., Any], env: dict[str, str], settings: str, phase: str, fault: str, asked: list[str]
) -> None:
    project = staging({"test_it.py": ATTEMPT}, settings=settings, also=(NOBODY, "https://shop.example"))
    ran = project.run("--captcha-env=staging", env=env)
    rows = said(ran.output)
    assert (rows["phase"], rows["fault"].partition(":")[0]) == (phase, fault), ran.output
    [told] = exchanges(ran.folder)
    assert [exchange["method"] for exchange in told["exchanges"] if "captcha-qa" not in exchange["url"]] == asked


def test_the_last_pass_comes_from_the_records_of_earlier_runs(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": ATTEMPT})
    first = project.run("--captcha-env=staging", "--captcha-run-id=first", "--captcha-release=1.2.0")
    assert first.code == 0, first.output
    with (project.folder / "captcha-qa.toml").open("a") as file:
        file.write('\n[env.staging.forms.login]\npath = "/broken"\n')
    second = project.run("--captcha-env=staging", "--captcha-run-id=second", "--captcha-release=1.3.0")
    passed = first.attempts[0]["ts"]
    assert said(second.output)["last pass"] == f"release 1.2.0, {passed} (run first)"

    told = explain(project.folder, "reports/records", "--form", "login")
    assert (told.returncode, told.stderr) == (0, "")
    assert said(told.stdout) == said(second.output) | {"owner": "not configured"}
    assert told.stdout.splitlines()[-1] == "history, newest first: failed second (1.3.0), ok first (1.2.0)"

    answer = json.loads(explain(project.folder, "reports/records/staging/*.jsonl", "--form=login", "--json").stdout)
    assert [run["verdict"] for run in answer["history"]] == ["failed", "ok"]
    [failure] = answer["failures"]
    assert (failure["tokens_tried"], failure["last_pass"]["run_id"], failure["http_status"]) == (2, "first", 422)


def explain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_captcha_qa.cli.main", "explain", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_explain_refuses_what_is_not_there(broken: Any) -> None:
    wrong = explain(broken.folder, "reports/records", "--form", "brocken")
    assert (wrong.returncode, wrong.stdout) == (4, "")
    assert wrong.stderr == "error: unknown form 'brocken' in these records; did you mean 'broken'?\n"
    gone = explain(broken.folder, "nowhere", "--form", "broken", "--json")
    assert gone.returncode == 4
    assert json.loads(gone.stdout)["problems"] == [
        "there is no record file or folder nowhere; name one, or a pattern like 'reports/records/**'"
    ]


def test_explain_tells_the_owner_and_a_form_without_failures(broken: Any) -> None:
    assert "owner         team-login" in explain(broken.folder, "reports/records", "--form=broken").stdout
    sound = explain(broken.folder, "reports/records", "--form=login")
    assert sound.stdout.splitlines()[0] == "no failed attempt on form 'login' in these records"


def test_explain_says_that_the_records_are_not_the_whole_story(broken: Any, tmp_path: Path) -> None:
    whole = next(text for text in map(Path.read_bytes, broken.record_files) if b'"slug":"login"' in text)
    (tmp_path / "cut.jsonl").write_bytes(whole[: whole.rindex(b"{") + 9])
    cut = explain(tmp_path, "cut.jsonl", "--form=login")
    last = f"cut.jsonl:{len(whole.splitlines())}: not a line of JSON, perhaps cut off"
    assert cut.stdout.splitlines()[-2:] == [
        "incomplete: cut.jsonl: no footer: its writer ended early",
        f"incomplete: cut.jsonl: 1 damaged lines, the first at {last}",
    ]
    assert len(json.loads(explain(tmp_path, "cut.jsonl", "--form=login", "--json").stdout)["incomplete"]) == 2
    (tmp_path / "empty.jsonl").write_bytes(b"")
    empty = explain(tmp_path, "empty.jsonl", "--form=login").stderr
    assert empty == (
        "error: unknown form 'login' in these records, which are incomplete (empty.jsonl: no header); none is defined\n"
    )


def test_each_try_of_a_test_leaves_its_own_evidence(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": TESTS}, settings=BROKEN).run(
        "--captcha-env=staging", "--reruns=1", "--captcha-budget=20", "--junitxml=junit.xml", "-k broken"
    )
    assert ran.counts == "1 failed, 2 deselected, 1 rerun", ran.output
    assert len(exchanges(ran.folder)) == len(ran.verdict["forms"]["broken"]["evidence"]) == 2
    told = [
        (
            case.findtext("system-out"),
            [p.get("value") for p in case.iter("property") if p.get("name") == "captcha.evidence"],
        )
        for case in ElementTree.parse(ran.folder / "junit.xml").iter("testcase")
    ]
    assert len(told) == 2
    for attached, [evidence] in told:
        assert attached == f"[[ATTACHMENT|{evidence}/exchange.json]]"


def test_an_outage_that_is_shown_as_a_skip_keeps_its_evidence(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": ATTEMPT}).run(
        "--captcha-env=staging", "--captcha-outage=skip", "--junitxml=junit.xml", env={"PROVIDER_URL": NOBODY}
    )
    assert (ran.code, ran.counts) == (12, "1 skipped"), ran.output
    assert len(exchanges(ran.folder)) == 1
    faults = [p.get("value") for p in ElementTree.parse(ran.folder / "junit.xml").iter("property")]
    assert "provider" in faults


def test_a_test_with_many_failed_attempts_tells_of_a_few(staging: Callable[..., Any]) -> None:
    tests = "def test_it(captcha_form):\n    form = captcha_form('login')\n    token = 'x' * 40\n" + (
        "    all_of_them = [form.submit(token=None, expect='refuse') for _ in range(5)]\n    assert not all_of_them\n"
    )
    accepting = "[env.staging.forms.login]\nsuccess = { status = [303, 422] }\nrefused = { status = 400 }\n"
    ran = staging({"test_it.py": tests}, settings=accepting).run("--captcha-env=staging")
    assert ran.output.count("tokens tried  no fresh one: a refusal was expected") == 3, ran.output
    assert "... and 2 more failed attempts of this test, see the records" in ran.output
    assert len(exchanges(ran.folder)) == 5


def test_a_folder_that_cannot_be_written_changes_no_result(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS, "reports/failures": "a file"}, settings=BROKEN)
    ran = project.run("--captcha-env=staging")
    assert (ran.code, ran.counts) == (1, "1 failed, 2 passed"), ran.output
    assert said(ran.output)["evidence"] == "none was kept"
    assert ran.verdict["forms"]["broken"]["evidence"] == []


def test_an_error_that_is_no_attempts_gets_no_text(staging: Callable[..., Any]) -> None:
    tests = "def test_it(captcha_attempt):\n    assert captcha_attempt('login')\n    assert 1 + 1 == 3\n"
    ran = staging({"test_it.py": tests}).run("--captcha-env=staging")
    assert ran.code == 1, ran.output
    assert "run again" not in ran.output
    assert not (ran.folder / "reports" / "failures").exists()
