from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.model.attempt import Fault, Outcome, Result, Verdict, VerifyStatus
from pytest_captcha_qa.plugin.attributing import About, about
from pytest_captcha_qa.plugin.fixtures import Crossing

BAD = Outcome(Result.FAILED, Verdict(VerifyStatus.FAIL, "refused"), fault=Fault.PRODUCT, http_status=422)
GOOD = Outcome(Result.OK, Verdict(VerifyStatus.PASS, "accepted"), http_status=303)
Attempt = Callable[[str], Outcome]


def attempted(slug: str) -> Outcome:
    return BAD if slug == "legacy" else GOOD


def helper(outcome: Outcome) -> None:
    assert outcome


class Flow:
    """A page object as teams write them."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt, self.last = attempt, attempt("legacy")

    def passes(self) -> bool:
        return bool(self.attempt("legacy"))


def asserts_the_call(attempt: Attempt) -> None:
    assert attempt("legacy")


def asserts_a_part(attempt: Attempt) -> None:
    outcome = attempt("legacy")
    assert outcome.verdict.status == "pass"


def asserts_what_was_made_from_it(attempt: Attempt) -> None:
    status = attempt("legacy").http_status
    series = f"{status}"[0]
    assert series == "3"


def asserts_one_of_several(attempt: Attempt) -> None:
    outcomes = {slug: attempt(slug) for slug in ("login", "legacy")}
    assert all(outcomes.values())


def fails_under_a_condition(attempt: Attempt) -> None:
    outcome = attempt("legacy")
    if not outcome:
        pytest.fail("the form is broken")


def asserts_in_a_helper(attempt: Attempt) -> None:
    helper(attempt("legacy"))


def asserts_by_a_partial(attempt: Attempt) -> None:
    legacy = functools.partial(attempt, "legacy")
    assert legacy()


def asserts_by_a_closure(attempt: Attempt) -> None:
    def legacy() -> bool:
        return bool(attempt("legacy"))

    assert legacy()


def asserts_by_a_page_object(attempt: Attempt) -> None:
    flow = Flow(attempt)
    assert flow.passes()


def asserts_an_attribute_of_its_own_object(attempt: Attempt) -> None:
    flow = SimpleNamespace(last=attempt("legacy"))
    assert flow.last


def asserts_what_another_calls(attempt: Attempt) -> None:
    assert all(map(attempt, ["legacy"]))


def raises_because_of_it(attempt: Attempt) -> None:
    try:
        assert attempt("legacy")
    except AssertionError as failed:
        raise RuntimeError("the login is broken") from failed


def raises_a_group(attempt: Attempt) -> None:
    try:
        assert attempt("legacy")
    except AssertionError as failed:
        group = ExceptionGroup("tasks", [failed])
    raise group


@pytest.mark.parametrize(
    "test",
    [
        asserts_the_call, asserts_a_part, asserts_what_was_made_from_it, asserts_one_of_several,
        fails_under_a_condition, asserts_in_a_helper, asserts_by_a_partial, asserts_by_a_closure,
        asserts_by_a_page_object, asserts_an_attribute_of_its_own_object, asserts_what_another_calls,
        raises_because_of_it, raises_a_group,
    ],
)  # fmt: skip
def test_a_failure_that_speaks_of_an_attempt_is_about_it(test: Callable[[Any], None]) -> None:
    assert told(test) is About.AN_ATTEMPT


def asserts_something_else(attempt: Attempt) -> None:
    attempt("legacy")
    total = 4
    assert total == 3


def asserts_another_outcome(attempt: Attempt) -> None:
    attempt("legacy")
    good = attempt("login")
    assert good.http_status == 200


def breaks(attempt: Attempt) -> None:
    outcome = attempt("legacy")
    assert not outcome
    raise KeyError("cart")


def fails_under_a_condition_of_its_own(attempt: Attempt) -> None:
    attempt("legacy")
    empty = True
    if empty:
        pytest.fail("the cart is empty")


@pytest.mark.parametrize(
    "test", [asserts_something_else, asserts_another_outcome, breaks, fails_under_a_condition_of_its_own]
)
def test_a_failure_beside_an_attempt_is_the_tests_own(test: Callable[[Any], None]) -> None:
    assert told(test) is About.ITSELF


def test_nothing_is_told_by_a_failure_that_a_plugin_made() -> None:
    assert about(AssertionError("two checks failed"), [BAD], Path(__file__)) is About.NOT_TOLD
    assert about(None, [BAD], None) is About.NOT_TOLD


def test_a_test_without_source_is_told_by_what_its_names_hold() -> None:
    assert told(run("def test(attempt):\n    outcome = attempt('legacy')\n    assert outcome")) is About.AN_ATTEMPT
    assert told(run("def test(attempt):\n    attempt('legacy')\n    assert 1 == 2")) is About.ITSELF


def run(source: str) -> Callable[[Any], None]:
    names: dict[str, Any] = {}
    exec(compile(source, "<generated>", "exec"), names)
    made: Callable[[Any], None] = names["test"]
    return made


def told(test: Callable[[Any], None]) -> About:
    with pytest.raises((Exception, pytest.fail.Exception)) as failed:
        test(Crossing("captcha_attempt", attempted))
    return about(failed.value, [BAD], Path(__file__))
