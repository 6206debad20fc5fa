"""Functions of the team: how they are found, and what their errors are turned into."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, PageError, ScopeDenied, UnknownName
from pytest_captcha_qa.wiring import functions
from pytest_captcha_qa.wiring.functions import TeamFunction

KEY = "forms.signup.prepare"


@pytest.fixture
def load(module: Callable[[str], str], tmp_path: Path) -> Callable[[str], TeamFunction]:
    return lambda text: TeamFunction.load(KEY, f"{module(text)}:steps", tmp_path)


def test_a_function_is_found_beside_the_configuration_and_called_with_what_it_is_given(load):
    assert load("def steps(*given): return given")(1, 2, 3) == (1, 2, 3)


def test_a_package_of_the_team_is_found_too(tmp_path, module):
    name = module("")
    (tmp_path / f"{name}.py").unlink()
    (tmp_path / name).mkdir()
    (tmp_path / name / "flows.py").write_text("def steps(): return 'from a package'")

    assert TeamFunction.load(KEY, f"{name}.flows:steps", tmp_path)() == "from a package"


def test_the_folder_is_searched_last_and_added_once(tmp_path, module):
    name = module("def steps(): ...")
    for _ in range(2):
        TeamFunction.load(KEY, f"{name}:steps", tmp_path)

    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("def stops(): ...", UnknownName, r"unknown function 'steps' in flows_\d+, which forms.signup.prepare names"),
        ("steps = 7", ConfigError, r"flows_\d+:steps is no function but a int"),
        ("import not_there_at_all", ConfigError, "cannot be imported: there is no module not_there_at_all"),
        ("from os import not_there", ConfigError, "cannot be imported: an import fails in it"),
        ("def steps(:", ConfigError, r"its module raised SyntaxError at flows_\d+.py:1"),
        ("\n\nraise KeyError('s3cret')", ConfigError, r"its module raised KeyError at flows_\d+.py:3"),
    ],
    ids=["other name", "no function", "no module", "no name", "syntax", "error"],
)
def test_what_cannot_be_found_is_told_with_its_key(load, text, error, words):
    with pytest.raises(error, match=words) as caught:
        load(text)
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (
            "raise KeyError('s3cret')",
            ConfigError,
            r"forms.signup.prepare: flows_\d+:steps itself raised KeyError at fl",
        ),
        ("import os; os.environ['NOT_THERE']", ConfigError, r"raised KeyError \(NOT_THERE\) at flows_\d+.py:2"),
        ("{}.nothing", ConfigError, r"raised AttributeError \(nothing\) at flows_\d+.py:2"),
        ("assert 's3cret' == ''", PageError, r"an assertion of flows_\d+:steps failed at flows_\d+.py:2"),
        ("import json; json.loads('{s3cret')", ConfigError, r"raised JSONDecodeError at flows_\d+.py:2"),
    ],
    ids=["error", "no variable", "no attribute", "assertion", "in a library"],
)
def test_what_goes_wrong_in_it_names_it_and_its_line_and_repeats_no_text(load, body, error, words):
    steps = load(f"def steps():\n    {body}")

    with pytest.raises(error, match=words) as caught:
        steps()
    assert "s3cret" not in caught.value.message
    assert caught.value.__cause__ is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "text", ["async def steps(): return True", "def steps(): yield True", "async def steps(): yield True"]
)
def test_a_function_that_has_only_begun_is_refused(load, text):
    with pytest.raises(ConfigError, match=r"flows_\d+:steps is asynchronous or a generator, and has done nothing yet"):
        load(text)()


@pytest.mark.parametrize("error", [ScopeDenied("no"), KeyboardInterrupt(), SystemExit(3)])
def test_our_own_errors_and_interrupts_go_on_as_they_are(load, error: BaseException):
    steps = load("def steps(error): raise error")

    with pytest.raises(type(error)) as caught:
        steps(error)
    assert caught.value is error


def test_what_ends_the_run_goes_on_though_it_is_an_ordinary_exception(load, monkeypatch):
    monkeypatch.setattr(functions, "_ENDING", set())
    functions.let_pass(TimeoutError)
    steps = load("def steps(error): raise error")

    with pytest.raises(TimeoutError):
        steps(TimeoutError("the job's time is over"))
    with pytest.raises(ConfigError):
        steps(LookupError("its own"))


def test_every_error_it_turns_into_is_one_of_ours():
    assert issubclass(PageError, CaptchaQAError)
    assert (PageError.exit_code, ConfigError.exit_code) == (1, 4)
