from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.engine.events import SUBMIT_MAYBE_POSTED, TOKEN_LOST
from pytest_captcha_qa.engine.sharing import _ERRORS, SharedLogin
from pytest_captcha_qa.engine.store import Granted
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    KeyRejected,
    PageError,
    ScopeDenied,
    SessionRefused,
    SessionUnclear,
    SpentElsewhere,
    TargetUnavailable,
    UnknownName,
)
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest, Fault, Result
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import VerifySpec, VerifyVia
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.testing import BASE_URL, Bench, form, refused, solution

NewLogin = Callable[..., SharedLogin]
RUN_LENGTH = 6 * 3600.0


@pytest.fixture
def bench() -> Bench:
    vendor = form("vendor", verify=VerifySpec(VerifyVia.SITEVERIFY))
    return Bench(forms=[form("login"), form("puzzle", CaptchaType.GEETEST_V3), vendor])


@pytest.fixture
def new_login(bench: Bench) -> NewLogin:
    """`new_login()` returns the login as one process of the run sees it; each leaves a session of another name."""
    numbers = itertools.count(1)

    def new(slug: str = "login", subject: str = "run", **fields: str) -> SharedLogin:
        name = f"session of process {next(numbers)}"
        request = AttemptRequest(slug, subject)
        return SharedLogin(request, bench.services(), fields=fields, session=lambda: name)

    return new


def attempts(bench: Bench) -> list[AttemptLine]:
    return [line for line in bench.records.lines if isinstance(line, AttemptLine)]


def failure_of(login: SharedLogin) -> CaptchaQAError:
    with pytest.raises(CaptchaQAError) as caught:
        login.session()
    return caught.value


def claimed_by_a_process_that_dies(bench: Bench, login: SharedLogin) -> Any:
    claim = bench.store.claim(login._shared.key.digest, login._fingerprint, "dead", times=login._times())
    assert isinstance(claim, Granted)
    return claim.lease


def test_who_asks_first_logs_in_and_the_others_get_its_session(bench: Bench, new_login: NewLogin) -> None:
    assert [new_login().session() for _ in range(3)] == ["session of process 1"] * 3
    [attempt] = attempts(bench)
    assert (attempt.slug, attempt.outcome, attempt.submits) == ("login", Result.OK, 1)
    assert len(bench.driver.opened) == len(bench.provider.told) == 1


def test_the_session_outlives_the_longest_run(bench: Bench, new_login: NewLogin) -> None:
    new_login().session()
    bench.clock.advance(RUN_LENGTH)
    assert new_login().session() == "session of process 1"


def test_other_subjects_and_other_forms_are_other_logins(bench: Bench, new_login: NewLogin) -> None:
    found = {new_login().session(), new_login(subject="other").session(), new_login("puzzle").session()}
    assert len(found) == len(attempts(bench)) == 3


def test_the_fields_go_with_the_submit(bench: Bench, new_login: NewLogin) -> None:
    new_login(user="admin").session()
    [(_, posted)] = bench.driver.opened[0].posted
    assert posted["user"] == "admin"


def test_a_login_whose_second_fresh_token_is_accepted_is_shared_too(bench: Bench, new_login: NewLogin) -> None:
    bench.driver.answers = ()
    bench.driver._answers = iter([refused()])
    assert new_login().session() == new_login().session() == "session of process 1"
    assert len(bench.provider.told) == 2
    assert len(attempts(bench)) == 1


# A login that fails is not tried again.


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([refused(), refused()], SessionUnclear | SessionRefused),
        ([Answer(500, BASE_URL)], SessionRefused),
        ([Answer(503, BASE_URL)], TargetUnavailable),
        ([Answer(200, BASE_URL)], SessionUnclear),
    ],
    ids=["refused", "crash", "gateway", "neither"],
)
def test_a_login_that_the_site_does_not_take_fails_everybody_alike(
    bench: Bench, new_login: NewLogin, answers: list[Answer], error: type[CaptchaQAError]
) -> None:
    bench.driver._answers = iter(answers)
    first = failure_of(new_login())
    opened, told = len(bench.driver.opened), len(bench.provider.told)
    bench.clock.advance(60)
    second = failure_of(new_login())

    assert isinstance(first, error)
    assert first.message.startswith("the login on form 'login' that the tests of this run share failed: ")
    assert (type(second), second.message) == (type(first), first.message)
    assert (len(bench.driver.opened), len(bench.provider.told)) == (opened, told)
    assert len(attempts(bench)) == 1


@pytest.mark.parametrize("error", [PageError("no widget"), ScopeDenied("no proof"), TargetUnavailable("down")])
def test_a_page_that_cannot_be_opened_fails_everybody_alike(
    bench: Bench, new_login: NewLogin, error: CaptchaQAError
) -> None:
    bench.driver.fails = error
    first, second = failure_of(new_login()), failure_of(new_login())
    assert (type(second), second.message) == (type(first), first.message) == (type(error), error.message)
    assert len(attempts(bench)) == 1


def test_a_field_that_the_login_does_not_have_fails_everybody_alike_and_costs_no_token(
    bench: Bench, new_login: NewLogin
) -> None:
    bench.driver.names = ["user", "password"]
    failures = [failure_of(new_login(usr="admin")) for _ in range(2)]
    assert [type(failure) for failure in failures] == [UnknownName, UnknownName]
    assert "did you mean 'user'" in failures[0].message
    assert failures[0].message == failures[1].message
    assert bench.provider.told == []
    assert len(attempts(bench)) == 1


def test_a_solve_that_fails_fails_everybody_alike(bench: Bench, new_login: NewLogin) -> None:
    bench.provider._submits = iter([KeyRejected("wrong key")])
    first = failure_of(new_login())
    bench.clock.advance(60)
    second = failure_of(new_login())
    assert (type(second), second.message) == (type(first), first.message)
    assert isinstance(first, KeyRejected)
    assert len(bench.provider.told) == 1


def test_whose_fault_a_failed_login_is_decides_its_error() -> None:
    assert set(_ERRORS) == set(Fault)
    assert {fault: cls.fault for fault, cls in _ERRORS.items()} == {fault: str(fault) for fault in Fault}


# Processes that die.


def test_a_process_that_dies_before_it_sent_anything_is_waited_for_and_replaced(
    bench: Bench, new_login: NewLogin
) -> None:
    login = new_login()
    claimed_by_a_process_that_dies(bench, login)
    assert login.session() == "session of process 1"
    assert sum(bench.stop.waits) >= login._times().lease


@pytest.mark.parametrize(("slug", "submits"), [("login", 0), ("puzzle", 1)])
def test_the_task_of_a_process_that_died_is_resumed_unless_it_is_bound_to_the_page(
    bench: Bench, new_login: NewLogin, slug: str, submits: int
) -> None:
    login = new_login(slug)
    lease = claimed_by_a_process_that_dies(bench, login)
    bench.store.intend(lease)
    bench.store.submitted(lease, "left behind")
    assert login.session() == "session of process 1"
    assert len(bench.provider.told) == submits
    assert (TOKEN_LOST in [event.name for event in bench.events]) is bool(submits)


def test_a_login_that_was_perhaps_posted_is_not_posted_again(bench: Bench, new_login: NewLogin) -> None:
    login = new_login()
    lease = claimed_by_a_process_that_dies(bench, login)
    bench.store.intend(lease)
    bench.store.submitted(lease, "task")
    bench.store.spend(bench.store.solved(lease, solution("task"), age_bound=0.0), "dead")
    first, second = failure_of(login), failure_of(new_login())
    assert isinstance(first, SpentElsewhere)
    assert first.message == second.message
    assert bench.driver.opened == []
    assert SUBMIT_MAYBE_POSTED in [event.name for event in bench.events]


def test_a_login_that_ended_and_left_neither_session_nor_reason_is_not_waited_for_long(
    bench: Bench, new_login: NewLogin
) -> None:
    login = new_login()
    lease = claimed_by_a_process_that_dies(bench, login)
    bench.store.failed(lease, "internal")
    first, second = failure_of(login), failure_of(new_login())
    assert isinstance(first, SessionUnclear)
    assert first.message == second.message
    assert sum(bench.stop.waits) <= 60


# What cannot work.


@pytest.mark.parametrize(
    ("slug", "error", "words"),
    [("logn", UnknownName, "did you mean 'login'"), ("vendor", ConfigError, "opens no session")],
)
def test_a_form_that_opens_no_session_is_refused_before_anything_is_sent(
    bench: Bench, new_login: NewLogin, slug: str, error: type[ConfigError], words: str
) -> None:
    with pytest.raises(error, match=words):
        new_login(slug)
    assert bench.records.lines == []
