from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from allure_commons import model2

import pytest_captcha_qa
from pytest_captcha_qa.plugin.allure import _name_everywhere_alike
from pytest_captcha_qa.plugin.suite import module_name

SUITES = Path(pytest_captcha_qa.__file__).parent / "suites"


def named(full_name: str, path: Path) -> model2.TestResult:
    parameter = model2.Parameter(name="captcha_form_name", value="'login'")
    labels = {"parentSuite": "x", "suite": "y", "tag": "z"}
    result = model2.TestResult(fullName=full_name, parameters=[parameter])
    result.labels = [model2.Label(name=name, value=value) for name, value in labels.items()]
    item = SimpleNamespace(path=path, callspec=SimpleNamespace(params={"captcha_form_name": "login"}))
    _name_everywhere_alike(item, result)
    return result


@pytest.mark.parametrize("folder", [".venv.lib.python3.11.site-packages.", "", "pytest_captcha_qa.suites."])
def test_a_test_of_the_suite_has_one_history_wherever_it_is_installed(folder: str) -> None:
    result = named(f"{folder}test_turnstile#test_a_valid_token_passes", SUITES / "test_turnstile.py")

    assert result.fullName == "pytest_captcha_qa.suites.test_turnstile#test_a_valid_token_passes"
    assert result.historyId == named("anything#test_a_valid_token_passes", SUITES / "test_turnstile.py").historyId
    assert {label.name: label.value for label in result.labels} == {
        "parentSuite": "pytest_captcha_qa.suites",
        "suite": "test_turnstile",
        "tag": "z",
    }


def test_a_team_s_own_test_keeps_its_name(tmp_path: Path) -> None:
    result = named("tests.test_login#test_it", tmp_path / "test_turnstile.py")

    assert (result.fullName, result.historyId) == ("tests.test_login#test_it", None)


def test_modules_of_the_suites_are_told_from_others(tmp_path: Path) -> None:
    assert module_name(SUITES / "conformance" / "test_x.py") == "pytest_captcha_qa.suites.conformance.test_x"
    assert module_name(tmp_path / "suites" / "test_x.py") is None
