"""What a run comes to: reruns, expected failures, skips, ordinary failures, the summary and verdict.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

RERUN = """\
import pytest
SEEN = []

def test_flaky(captcha_token, captcha_attempt):
    token = captcha_token("login")
    text = token.reveal()
    assert text not in SEEN, "a rerun was given a spent token"
    SEEN.append(text)
    assert captcha_attempt("login")
    assert len(SEEN) == 3, "not yet"
"""

BROKEN = """
[forms.broken]
path = "/broken"
type = "turnstile"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
"""

EXPECTED = """\
import pytest

@pytest.mark.xfail(reason="known", strict=True)
def test_known_to_be_broken(captcha_attempt):
    assert captcha_attempt("broken")

def test_skipped_inside(captcha_form):
    captcha_form("login")
    pytest.skip("not today")

def test_sound(captcha_attempt):
    assert captcha_attempt("login")
"""


@pytest.fixture(scope="module")
def rerun(staging: Callable[..., Any]) -> Any:
    return staging({"test_it.py": RERUN}).run("--captcha-env=staging", "--reruns=3", "--captcha-budget=20")


def test_a_rerun_never_gets_a_spent_token(rerun: Any) -> None:
    assert rerun.counts == "1 passed, 2 rerun", rerun.output


def test_a_test_that_passes_at_last_counts_as_passed(rerun: Any) -> None:
    assert rerun.code == rerun.verdict["exit"] == 0, rerun.output
    assert rerun.verdict["codes"] == []


def test_the_attempts_of_reruns_are_numbered(rerun: Any) -> None:
    assert sorted(a["attempt"] for a in rerun.attempts) == [1, 1, 2, 2, 3, 3]
    assert sorted(a["generation"] for a in rerun.attempts if a["verify_status"] == "pass") == [1, 2, 3]


def test_a_test_that_fails_every_time_counts_once(staging: Callable[..., Any]) -> None:
    tests = "def test_it(captcha_attempt): assert captcha_attempt('broken')\n"
    ran = staging({"test_it.py": tests}, settings=BROKEN).run("--captcha-env=staging", "--reruns=1")
    assert (ran.code, ran.counts) == (1, "1 failed, 1 rerun"), ran.output
    [code] = ran.verdict["codes"]
    assert code["code"] == 1
    assert [reason["times"] for reason in code["reasons"]] == [1]


def test_expected_failures_and_skips_are_not_held_against_the_run(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": EXPECTED}, settings=BROKEN).run("--captcha-env=staging")
    assert (ran.code, ran.counts) == (0, "1 passed, 1 skipped, 1 xfailed"), ran.output
    assert ran.verdict["exit"] == 0
    assert "captcha tests skipped: 2" in ran.output


def test_an_expected_failure_that_passes_is_a_failure(staging: Callable[..., Any]) -> None:
    tests = "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(captcha_attempt): captcha_attempt('login')\n"
    ran = staging({"test_it.py": tests}).run("--captcha-env=staging")
    assert ran.code == ran.verdict["exit"] == 1, ran.output
    assert "test_it.py::test_it failed" in ran.output


@pytest.fixture(scope="module")
def mixed(staging: Callable[..., Any]) -> Any:
    tests = """\
def test_sound(captcha_attempt): assert captcha_attempt("login")
def test_ordinary(): assert 1 + 1 == 3
"""
    return staging({"test_it.py": tests}).run("--captcha-env=staging", "-q", "--captcha-run-id=nightly-7")


def test_an_ordinary_failure_beside_sound_forms_ends_1(mixed: Any) -> None:
    assert mixed.code == mixed.verdict["exit"] == 1, mixed.output
    assert mixed.verdict["forms"]["login"]["verdict"] == "ok"
    assert [reason["what"] for reason in mixed.verdict["codes"][0]["reasons"]] == ["test_it.py::test_ordinary failed"]


def test_the_summary_tells_form_figures_and_places(mixed: Any) -> None:
    summary = mixed.output.partition("= captcha =")[2]
    assert re.search(r"login +turnstile +1/1 +100 % +[0-9.]+ m?s +[0-9.]+ m?s +1 ", summary), mixed.output
    assert "environment staging · release unknown · run nightly-7" in summary
    assert "records: reports/records/staging/nightly-7.jsonl" in summary
    assert "verdict: reports/verdict.json" in summary
    assert "exit 1: a form is broken or a test failed: test_it.py::test_ordinary failed" in summary


def test_the_verdict_file_says_the_same(mixed: Any) -> None:
    verdict = mixed.verdict
    assert (verdict["environment"], verdict["run_id"], verdict["complete"]) == ("staging", "nightly-7", True)
    assert (verdict["key_mode"], verdict["captcha_tests"]) == ("standin", 1)
    assert (verdict["coverage"]["measured"], verdict["coverage"]["selected"]) == (1, 1)
    assert verdict["records"] == ["reports/records/staging/nightly-7.jsonl"]
    assert verdict["cost"]["submits"] == 1


@pytest.mark.parametrize("arguments", [("-p", "no:terminal"), ("-n", "2", "-q")], ids=["no terminal", "xdist"])
def test_the_verdict_is_reached_however_pytest_shows_it(
    staging: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    ran = staging({"test_it.py": "def test_it(captcha_attempt): assert captcha_attempt('login')\n"}).run(
        "--captcha-env=staging", *arguments
    )
    assert ran.code == 0, ran.output
    assert (ran.verdict["exit"], ran.verdict["coverage"]["measured"]) == (0, 1)
    assert ("= captcha =" in ran.output) == ("-n" in arguments)


def test_a_test_that_comes_by_a_fixture_while_it_runs_is_a_captcha_test(staging: Callable[..., Any]) -> None:
    tests = "def test_it(request): assert request.getfixturevalue('captcha_attempt')('broken')\n"
    ran = staging({"test_it.py": tests}, settings=BROKEN).run("--captcha-env=staging")
    assert ran.code == 1, ran.output
    assert (ran.verdict["captcha_tests"], ran.verdict["forms"]["broken"]["fault"]) == (1, "product")


OTHER_PLUGIN = """\
import pytest

@pytest.hookimpl
def pytest_sessionfinish(session):
    session.exitstatus = 77
"""


def test_an_exit_code_of_another_plugin_is_not_hidden(staging: Callable[..., Any]) -> None:
    files = {"conftest.py": OTHER_PLUGIN, "test_it.py": "def test_it(captcha_attempt): assert captcha_attempt('login')"}
    ran = staging(files).run("--captcha-env=staging")
    assert ran.code == 77, ran.output


def test_a_plugin_that_breaks_at_the_end_takes_neither_records_nor_verdict_along(staging: Callable[..., Any]) -> None:
    breaks = "def pytest_sessionfinish(): raise RuntimeError('at the very end')\n"
    test = "def test_it(captcha_attempt): assert captcha_attempt('login')\n"
    ran = staging({"conftest.py": breaks, "test_it.py": test}).run("--captcha-env=staging")
    assert "RuntimeError: at the very end" in ran.output
    assert ran.code != 0
    assert (ran.verdict["exit"], [line["outcome"] for line in ran.attempts]) == (3, ["ok"])
    assert [line["complete"] for line in ran.of_type("footer")] == [False]


def test_a_verdict_of_an_earlier_run_does_not_outlive_an_interrupted_one(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": "def test_it(captcha_attempt): raise KeyboardInterrupt"})
    project.write({"reports/verdict.json": json.dumps({"exit": 0})})
    ran = project.run("--captcha-env=staging")
    assert ran.code == 2, ran.output
    assert ran.verdict.get("exit") != 0


def test_the_traceback_of_our_own_errors_shows_the_teams_lines_only(staging: Callable[..., Any]) -> None:
    tests = "def test_it(captcha_form): captcha_form('login').submit(emial='x')\ndef test_env(captcha_http): pass\n"
    project = staging({"test_it.py": tests})
    ran = project.run("--captcha-env=staging", "--showlocals")
    assert "did you mean 'email'" in ran.output
    assert "pytest_captcha_qa/" not in ran.output.partition("= FAILURES =")[2].partition("= captcha =")[0]
