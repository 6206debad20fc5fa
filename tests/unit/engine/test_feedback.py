from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.testing import Bench, ScriptedDriver, accepted, refused

SIGNUP = AttemptRequest("signup", "subject")


def _reports(bench: Bench, *answers: Answer, switched_on: bool = True) -> list[tuple[str, bool]]:
    bench.driver = ScriptedDriver(answers)
    run_attempt(SIGNUP, replace(bench.services(), reports=switched_on))
    return bench.provider.reported


def test_nothing_is_reported_unless_the_account_says_so(bench: Bench) -> None:
    assert _reports(bench, refused(), accepted(), switched_on=False) == []


def test_an_accepted_token_is_reported_as_good(bench: Bench) -> None:
    assert _reports(bench, accepted()) == [("task-1", True)]
    [told] = bench.events
    assert (told.name, told.data) == (events.TOKEN_REPORTED, {"task_id": "task-1", "good": True})


def test_a_refused_token_is_reported_as_bad_once_the_next_one_is_accepted(bench: Bench) -> None:
    assert _reports(bench, refused(), accepted()) == [("task-1", False), ("task-2", True)]


@pytest.mark.parametrize("answer", [refused(), refused(status=500)], ids=["refuses all", "crashes"])
def test_what_is_the_forms_fault_is_held_against_no_token(bench: Bench, answer: Answer) -> None:
    assert _reports(bench, answer, answer) == []


def test_what_is_sent_to_be_refused_is_not_reported(bench: Bench) -> None:
    bench.driver = ScriptedDriver([refused()])
    with Attempt(SIGNUP, replace(bench.services(), reports=True)) as attempt:
        attempt.start()
        attempt.open()
        attempt.submit_expecting_refusal(Solution.of_text("made-up"))

    assert bench.provider.reported == []


@pytest.mark.parametrize(
    "error",
    [
        errors.ProviderUnavailable("reset"),
        errors.RequestRejected("ERROR_DUPLICATE_REPORT"),
        errors.KeyRejected("banned"),
        errors.BalanceExhausted("empty"),
    ],
    ids=lambda error: error.code,
)
def test_a_report_that_fails_changes_nothing_for_the_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: CaptchaQAError
) -> None:
    def fails(*args: object, **kwargs: object) -> bool:
        raise error

    monkeypatch.setattr(bench.provider, "report", fails)

    outcome = run_attempt(SIGNUP, replace(bench.services(), reports=True))

    assert outcome.ok
    assert bench.events[-1].data == {"task_id": "task-1", "good": True, "code": error.code}


def test_a_service_that_takes_no_reports_is_no_event(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.provider, "report", lambda *args, **kwargs: False)

    run_attempt(SIGNUP, replace(bench.services(), reports=True))

    assert bench.events == []
