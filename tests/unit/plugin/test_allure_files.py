from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.plugin.allure_files import (
    CATEGORIES,
    ENVIRONMENT,
    categories,
    marked,
    write_categories,
    write_environment,
)

MESSAGES = ["AssertionError: <Outcome failed>\nassert False", "XFAIL\n\nTypeError", None]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("fault", Fault)
def test_each_fault_has_one_category_in_allure_2_and_3(fault: Fault, message: str | None) -> None:
    said = marked(message, fault)
    whole = [one["name"] for one in categories() if re.fullmatch(one["messageRegex"], said)]
    part = [one["name"] for one in categories() if re.search(one["messageRegex"], said)]

    assert whole == part
    assert len(whole) == 1
    assert said.startswith(message or "captcha fault: ")


def test_a_failure_that_is_nobody_s_has_none_of_ours() -> None:
    assert [one for one in categories() if re.search(one["messageRegex"], str(MESSAGES[0]))] == []


def test_only_an_outage_may_be_a_skip() -> None:
    skipped = [one["name"] for one in categories() if "skipped" in one["matchedStatuses"]]

    assert [name.startswith("No verdict") for name in skipped] == [True, True]


def test_categories_of_the_team_s_own_stay(tmp_path: Path) -> None:
    (tmp_path / CATEGORIES).write_text("[]")
    write_categories(tmp_path)
    assert json.loads((tmp_path / CATEGORIES).read_text()) == []


def test_the_environment_is_written_beside_the_team_s_own_lines(tmp_path: Path) -> None:
    (tmp_path / ENVIRONMENT).write_text("Browser=Firefox\ncaptcha.environment=old\n")
    write_environment(tmp_path, {"environment": "qa", "release": None, "verdict": "exit 0"})
    assert (tmp_path / ENVIRONMENT).read_text() == "Browser=Firefox\ncaptcha.environment=qa\ncaptcha.verdict=exit 0\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\nb=c\r\n#d", "a b=c #d"),
        ("C:\\x", "C:\\\\x"),
        ("релиз", "\\u0440\\u0435\\u043b\\u0438\\u0437"),
        ("\U0001f600", "\\ud83d\\ude00"),
        ("a\u2028b\x1b[31m", "a b [31m"),
    ],
    ids=["lines", "backslash", "other letters", "beyond 16 bits", "line breakers and escapes"],
)
def test_a_value_stays_one_value(tmp_path: Path, value: str, written: str) -> None:
    write_environment(tmp_path, {"release": value})
    assert (tmp_path / ENVIRONMENT).read_text() == f"captcha.release={written}\n"
