from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_captcha_qa.errors import ConfigError, ProviderUnavailable, TargetUnavailable, UnknownName, Unsolvable
from pytest_captcha_qa.model.attempt import Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import VerifySpec, VerifyVia
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.record import AttemptLine, Started
from pytest_captcha_qa.plugin.case import Case, Situation
from pytest_captcha_qa.testing import Bench, ScriptedDriver, ScriptedProvider, ScriptedVerifier, form, refused

ME = Identity("id", "me@example.com", "me", "Quality", "Check", "+12025550123", "word")
NewCase = Callable[..., Case]


@pytest.fixture
def bench() -> Bench:
    vendor = form("vendor", verify=VerifySpec(VerifyVia.SITEVERIFY))
    fields = {"email": "{identity.email}", "name": "{identity.name}"}
    puzzle = form("order", CaptchaType.GEETEST_V3)
    return Bench(forms=[form("signup", fields=fields), form("login"), vendor, puzzle])


@pytest.fixture
def new_case(bench: Bench) -> NewCase:
    def new(**changes: Any) -> Case:
        situation = Situation("test_it.py::test_it", "test_it.py::test_it", 1, ME, {})
        return Case(bench.services(), replace(situation, **changes))

    return new


@pytest.fixture
def case(new_case: NewCase) -> Case:
    return new_case()


def attempts(bench: Bench) -> list[AttemptLine]:
    return [line for line in bench.records.lines if isinstance(line, AttemptLine)]


def posted(bench: Bench) -> list[dict[str, str]]:
    return [dict(fields) for opened in bench.driver.opened for _, fields in opened.posted]


# Which attempt a page and a token belong to.


@pytest.mark.parametrize("order", ["form first", "token first"])
def test_a_page_and_a_token_of_one_form_are_one_attempt(bench: Bench, case: Case, order: str) -> None:
    if order == "form first":
        page = case.form("signup")
        token = case.token("signup")
    else:
        token = case.token("signup")
        page = case.form("signup")
    assert page.submit(token=token)
    case.close()

    assert len(bench.driver.opened) == 1
    [attempt] = attempts(bench)
    assert (attempt.outcome, attempt.submits, attempt.source) == (Result.OK, 1, "solved")


def test_two_pages_of_one_form_are_two_attempts(bench: Bench, case: Case) -> None:
    first, second = case.form("signup"), case.form("signup")
    assert first.submit()
    assert second.submit()
    assert [a.outcome for a in attempts(bench)] == [Result.OK, Result.OK]
    assert len({solution.text for o in bench.driver.opened for solution, _ in o.posted if solution}) == 2


def test_a_token_may_be_submitted_with_another_page_and_its_cost_goes_with_it(bench: Bench, case: Case) -> None:
    _first, second = case.form("signup"), case.form("signup")
    token = case.token("signup")
    assert second.submit(token=token)
    case.close()
    by_submits = {a.submits: a for a in attempts(bench)}
    assert by_submits[1].outcome is Result.OK
    assert by_submits[0].outcome is Result.INDETERMINATE
    assert token.spent


def test_a_second_submit_of_a_page_is_an_attempt_of_its_own(bench: Bench, case: Case) -> None:
    page = case.form("signup")
    assert page.submit()
    assert page.submit()
    assert page.submit(token="made up", expect="refuse").expect == "refuse"
    assert len(bench.driver.opened) == 1
    assert [a.expect for a in attempts(bench)] == ["accept", "accept", "refuse"]
    assert len({line.id for line in bench.records.lines if isinstance(line, Started)}) == 3


def test_the_ordinals_of_one_test_are_never_used_twice(bench: Bench, case: Case) -> None:
    case.token("signup").reveal()
    assert case.attempt("signup")
    case.token("signup").reveal()
    assert case.attempt("signup")
    assert len(bench.provider.told) == 4
    assert len({a.task_id for a in attempts(bench)} - {None}) == 2


# Fields.


def test_a_mistyped_field_of_a_submit_costs_no_token(bench: Bench, case: Case) -> None:
    bench.driver.names = ["email", "name"]
    page = case.form("signup")

    with pytest.raises(UnknownName, match="did you mean 'email'"):
        page.submit(emial="x")

    assert bench.provider.told == []
    assert page.submit(email="x")
    assert [(a.outcome, a.submits, a.error is None) for a in attempts(bench)] == [
        (Result.INDETERMINATE, 0, False),
        (Result.OK, 1, True),
    ]


def test_a_mistyped_field_leaves_a_token_that_is_there_to_the_next_submit(bench: Bench, case: Case) -> None:
    bench.driver.names = ["email"]
    token, page = case.token("signup"), case.form("signup")

    with pytest.raises(UnknownName):
        page.submit(token=token, emial="x")
    assert not token.spent
    assert page.submit(token=token, email="x")

    assert len(bench.provider.told) == 1


def test_a_mistyped_field_of_the_whole_test_is_told_before_its_token_is_solved(bench: Bench, new_case: NewCase) -> None:
    bench.driver.names = ["email"]
    case = new_case(fields={"emial": "x"}, submits=True)

    with pytest.raises(UnknownName, match="did you mean 'email'"):
        case.token("signup")

    assert bench.provider.told == []


@pytest.mark.parametrize(("name", "submits"), [("signup", False), ("vendor", True)])
def test_fields_are_not_held_against_a_token_that_goes_elsewhere(
    bench: Bench, new_case: NewCase, name: str, submits: bool
) -> None:
    bench.driver.names = []

    assert new_case(fields={"email": "x"}, submits=submits).token(name).reveal()


# Tokens.


def test_an_unspent_token_is_given_again_and_a_spent_one_is_followed_by_the_next(case: Case) -> None:
    first = case.token("signup")
    assert case.token("signup") is first
    first.reveal()
    assert case.token("signup") is not first


def test_a_new_case_of_the_same_test_gets_the_unspent_token_and_never_a_spent_one(
    bench: Bench, new_case: NewCase
) -> None:
    kept = new_case().token("signup")
    again = new_case(tries=2).token("signup")
    assert (again.task_id, again.source) == (kept.task_id, "reused")
    text = again.reveal()
    assert new_case(tries=3).token("signup").reveal() != text
    assert len(bench.provider.told) == 2


def test_a_rerun_is_recorded_as_such(bench: Bench, new_case: NewCase) -> None:
    new_case(tries=3).attempt("signup")
    assert [a.attempt for a in attempts(bench)] == [3]


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ("a text", "the token comes from captcha_token"),
        ("of another form", "this token is of form 'login' and form 'signup' cannot be submitted with it"),
        ("of another test", "this token was not obtained by this test"),
    ],
)
def test_what_is_no_token_of_this_test_and_form_is_not_submitted(
    bench: Bench, case: Case, new_case: NewCase, token: str, sentence: str
) -> None:
    made: dict[str, Callable[[], Any]] = {
        "a text": lambda: "some text",
        "of another form": lambda: case.token("login"),
        "of another test": lambda: new_case(subject="other").token("signup"),
    }
    given = made[token]()
    with pytest.raises(ConfigError, match=sentence):
        case.form("signup").submit(token=given)
    assert posted(bench) == []


def test_an_unknown_form_is_refused_and_not_counted_as_used(case: Case) -> None:
    for use in (case.form, case.token, case.attempt):
        with pytest.raises(ConfigError, match=r"unknown form 'sigup'.*did you mean 'signup'"):
            use("sigup")
    assert case.used_forms == ()


# Refusals that are asked for.


def test_a_refusal_touches_neither_store_nor_provider(bench: Bench, case: Case) -> None:
    bench.driver.answers = [refused()]
    bench.driver.__post_init__()
    assert case.form("signup").submit(token="made up", expect="refuse")
    assert bench.provider.told == []
    [attempt] = attempts(bench)
    assert (attempt.expect, attempt.outcome, attempt.submits, attempt.task_id) == ("refuse", Result.OK, 0, None)


def test_without_a_token_the_field_is_left_out(bench: Bench, case: Case) -> None:
    outcome = case.form("signup").submit(expect="refuse")
    assert not outcome, "this site accepts everything"
    [(solution, _)] = bench.driver.opened[0].posted
    assert solution is None
    assert outcome.fault == "product"


def test_a_spent_token_may_be_replayed_an_unspent_one_not(bench: Bench, case: Case) -> None:
    token = case.token("signup")
    with pytest.raises(ConfigError, match="this token is unspent"):
        case.form("signup").submit(token=token, expect="refuse")
    assert posted(bench) == []
    assert case.form("signup").submit(token=token)
    case.form("signup").submit(token=token, expect="refuse")
    texts = [solution.text for opened in bench.driver.opened for solution, _ in opened.posted if solution]
    assert len(texts) == 2
    assert len(set(texts)) == 1


def test_an_expectation_is_one_of_two(case: Case) -> None:
    with pytest.raises(ConfigError, match="expect is 'accept' or 'refuse', not 'maybe'"):
        case.form("signup").submit(expect="maybe")


# What is sent.


def test_the_fields_of_the_call_go_before_those_of_conftest_and_of_the_configuration(
    bench: Bench, new_case: NewCase
) -> None:
    case = new_case(fields={"name": "conftest", "city": "conftest"})
    assert case.form("signup").submit(city="call")
    assert posted(bench) == [{"email": "me@example.com", "name": "conftest", "city": "call"}]


def test_the_whole_sequence_sends_what_conftest_overrides(bench: Bench, new_case: NewCase) -> None:
    assert new_case(fields={"name": "conftest"}).attempt("signup")
    assert posted(bench) == [{"email": "me@example.com", "name": "conftest"}]


def test_each_attempt_of_a_test_has_an_address_of_its_own(bench: Bench, case: Case) -> None:
    assert case.form("signup").submit()
    assert case.attempt("signup")
    assert case.form("signup").submit()
    assert [fields["email"] for fields in posted(bench)] == ["me@example.com", "me.2@example.com", "me.3@example.com"]


# Verification without the form.


def test_a_token_is_checked_by_whoever_the_form_names(bench: Bench, case: Case) -> None:
    bench.verifier = ScriptedVerifier([Verdict(VerifyStatus.FAIL, "says no")] * 2)
    case = Case(bench.services(), Situation("n", "n", 1, ME, {}))
    token = case.token("vendor")
    verdict = case.verify(token)
    assert (verdict.status, token.spent) == (VerifyStatus.FAIL, True)
    assert [outcome.fault for outcome in case.outcomes] == ["product"]
    assert posted(bench) == []


def test_a_form_that_tells_by_itself_is_named(case: Case) -> None:
    token = case.token("signup")
    with pytest.raises(ConfigError, match=r"form 'signup' is verified via form.*captcha_form\(...\).submit"):
        case.verify(token)
    assert not token.spent


# Every attempt is recorded.


def test_an_attempt_that_the_test_leaves_open_is_recorded_when_it_ends(bench: Bench, case: Case) -> None:
    case.form("signup")
    case.token("login")
    assert attempts(bench) == []
    case.close()
    case.close()
    assert [(a.slug, a.outcome) for a in attempts(bench)] == [
        ("signup", Result.INDETERMINATE),
        ("login", Result.INDETERMINATE),
    ]


def test_a_page_that_does_not_open_is_recorded_with_its_fault(bench: Bench) -> None:
    bench.driver = ScriptedDriver(fails=TargetUnavailable("the site is down", sent=False))
    case = Case(bench.services(), Situation("n", "n", 1, ME, {}))
    with pytest.raises(TargetUnavailable):
        case.form("signup")
    assert [a.fault for a in attempts(bench)] == ["infrastructure"]
    assert case.used_forms == ("signup",)


def test_a_token_that_cannot_be_had_is_recorded_with_its_fault(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[Unsolvable("no"), Unsolvable("no")])
    case = Case(bench.services(), Situation("n", "n", 1, ME, {}))
    with pytest.raises(Unsolvable):
        case.token("signup")
    assert [(a.fault, a.submits) for a in attempts(bench)] == [("provider", 2)]


def test_a_failed_obtain_is_tried_anew_by_the_next_call(bench: Bench) -> None:
    bench.provider = ScriptedProvider(submits=[ProviderUnavailable("down", sent=False)] * 3)
    case = Case(bench.services(), Situation("n", "n", 1, ME, {}))
    with pytest.raises(ProviderUnavailable):
        case.token("signup")
    bench.clock.advance(600)
    assert case.token("signup").reveal()


def test_a_page_bound_token_stays_with_its_page(bench: Bench, case: Case) -> None:
    page = case.form("order")
    assert page.submit(token=case.token("order"))
    assert case.form("order").submit()
    assert [a.generation for a in attempts(bench)] == [1, 1]
    assert len({a.task_id for a in attempts(bench)}) == 2
