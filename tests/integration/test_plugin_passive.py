"""The plugin in a project that chose no environment: it skips captcha tests, says so, and stays out of the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

REASON = "no captcha environment was chosen; pass --captcha-env NAME (`demo` is built in)"

TESTS = """\
import unittest
import pytest

@pytest.mark.captcha
def test_marked(): raise AssertionError("must not run")

def test_with_a_fixture(captcha_form_name, captcha_token): raise AssertionError("must not run")

def test_asking_while_it_runs(request):
    request.getfixturevalue("captcha_attempt")
    raise AssertionError("must not run")

@pytest.mark.captcha
class TestOldStyle(unittest.TestCase):
    def test_method(self): raise AssertionError("must not run")

@pytest.fixture
def ours(captcha_attempt): raise AssertionError("must not run")

def test_through_a_fixture_of_the_team(ours): raise AssertionError("must not run")

def test_ordinary():
    \"\"\"
    >>> 1 + 1
    2
    \"\"\"
"""


@pytest.fixture(scope="module")
def project(new_project: Callable[..., Any]) -> Any:
    return new_project({"test_it.py": TESTS})


def test_captcha_tests_are_skipped_with_the_reason_and_counted(project: Any) -> None:
    ran = project.run("-rs", "--strict-markers", "-W", "error", "--doctest-modules")
    assert (ran.code, ran.counts) == (0, "2 passed, 5 skipped"), ran.output
    assert ran.output.count(REASON) == ran.output.count("SKIPPED ["), ran.output
    assert "= captcha =" not in ran.output
    assert not (project.folder / "reports").exists()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "xdist"])
@pytest.mark.parametrize("where", ["option", "variable"])
def test_where_an_environment_is_required_its_absence_ends_4(
    project: Any, workers: tuple[str, ...], where: str
) -> None:
    if where == "option":
        ran = project.run("--captcha-required", *workers)
    else:
        ran = project.run(*workers, env={"CAPTCHA_QA_REQUIRED": "true"})
    assert ran.code == 4, ran.output
    assert "--captcha-required: test_it.py::test_marked needs an environment; pass --captcha-env NAME" in ran.output
    assert "INTERNALERROR" not in ran.output


def test_ordinary_tests_need_no_environment_though_one_is_required(project: Any) -> None:
    ran = project.run("--captcha-required", "-k", "ordinary")
    assert (ran.code, ran.counts) == (0, "1 passed, 5 deselected")


def test_marker_and_fixtures_are_known(project: Any) -> None:
    markers = project.run("--markers").output
    assert "@pytest.mark.captcha(form=None, types=[...], tags=[...], subject=None, prefetch=True): " in markers
    fixtures = project.run("--fixtures", "test_it.py").output
    for name in ("attempt", "env", "form", "form_args", "form_name", "http", "identity", "solver", "token", "verify"):
        assert f"\ncaptcha_{name}" in fixtures
    ours = fixtures.partition("fixtures defined from pytest_captcha_qa")[2].partition("fixtures defined from")[0]
    assert "\ncaptcha_token" in ours
    assert "no docstring available" not in ours


def test_the_options_stand_in_a_group_of_their_own(project: Any) -> None:
    output = project.run("--help").output
    assert "QA of the CAPTCHA integration of your own forms:" in output
    assert "--captcha-outage=skip|error" in output or "--captcha-outage skip|error" in output
    assert "captcha_exit_codes" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--captcha-outage=skipp",), "--captcha-outage: 'skipp' is not one of skip, error; did you mean 'skip'?"),
        (("--captcha-env=stagin",), "unknown environment 'stagin'"),
    ],
)
def test_a_value_that_does_not_fit_ends_4(project: Any, arguments: tuple[str, ...], sentence: str) -> None:
    ran = project.run("--captcha-env=demo", *arguments)
    assert ran.code == 4, ran.output
    assert sentence in ran.output
    assert "Traceback" not in ran.output


def test_without_the_plugin_nothing_of_it_is_left(new_project: Callable[..., Any]) -> None:
    ran = new_project({"test_it.py": "def test_it(): pass"}).run(
        "-p", "no:captcha-qa", "--captcha-env=demo", all_plugins=True
    )
    assert ran.code == 4
    assert "unrecognized arguments: --captcha-env=demo" in ran.output


@pytest.mark.parametrize("code", [0, 1, 5])
@pytest.mark.parametrize("arguments", [(), ("--captcha-env=demo",)], ids=["passive", "demo"])
def test_a_run_without_captcha_tests_keeps_pytests_code(
    new_project: Callable[..., Any], arguments: tuple[str, ...], code: int
) -> None:
    body = {0: "def test_it(): pass", 1: "def test_it(): assert False", 5: ""}[code]
    ran = new_project({"test_it.py": body}).run(*arguments)
    assert ran.code == code, ran.output
    assert "= captcha =" not in ran.output
    assert not (ran.folder / "reports").exists()
