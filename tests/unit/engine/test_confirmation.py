"""A refused token gets one confirmation: what is sent, what it may cost, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest, Fault, KeyMode, Outcome, Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import ScorePolicy, VerifySpec, VerifyVia
from pytest_captcha_qa.model.policy import AccountLimits
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.testing import (
    BASE_URL,
    Bench,
    ScriptedDriver,
    ScriptedProvider,
    ScriptedVerifier,
    accepted,
    form,
    refused,
    solution,
)

SIGNUP = AttemptRequest("signup", "subject")
Answers = list[Answer | CaptchaQAError]


def _run(bench: Bench, *, mode: KeyMode = KeyMode.STANDIN, slug: str = "signup") -> Outcome:
    return run_attempt(replace(SIGNUP, form=slug), _services(bench, mode))


def _services(bench: Bench, mode: KeyMode) -> Services:
    services = bench.services()
    return replace(services, about=replace(services.about, key_mode=mode))


def _answering(bench: Bench, *answers: Answer | CaptchaQAError) -> Bench:
    bench.driver = ScriptedDriver(answers)
    return bench


def _lines(bench: Bench) -> list[AttemptLine]:
    return [line for line in bench.records.lines if isinstance(line, AttemptLine)]


def _sent(bench: Bench) -> list[str]:
    posted = [entry for opened in bench.driver.opened for entry in opened.posted]
    return [solution.text for solution, _ in posted if solution is not None]


def test_an_accepted_token_costs_one_submit(bench: Bench) -> None:
    outcome = _run(bench)

    assert (outcome.tokens_tried, outcome.control, len(bench.provider.told)) == (1, None, 1)
    assert bench.events == []


def test_the_second_token_is_another_one_on_a_freshly_opened_page(bench: Bench) -> None:
    outcome = _run(_answering(bench, refused(), refused()))

    [line] = _lines(bench)
    assert [len(opened.posted) for opened in bench.driver.opened] == [1, 1]
    assert len(set(_sent(bench))) == 2
    assert (line.submits, line.task_id, outcome.tokens_tried) == (2, "task-2", 2)
    assert {state.state for state in bench.store._keys.values()} == {State.DONE}


def test_what_a_caller_holds_stays_the_first_token(bench: Bench) -> None:
    with Attempt(SIGNUP, _answering(bench, refused(), refused()).services()) as attempt:
        attempt.start()
        attempt.open()
        held = attempt.obtain()
        attempt.submit()
    assert attempt.token is held


def test_both_refused_is_the_forms_fault_where_tokens_are_known_to_be_good(bench: Bench) -> None:
    outcome = _run(_answering(bench, refused(), refused()))

    [line] = _lines(bench)
    assert (outcome.result, outcome.fault) == (Result.FAILED, Fault.PRODUCT)
    assert (line.outcome, line.fault, line.verify_status) == ("failed", "product", "fail")
    assert line.error is not None
    assert line.error["code"] == "refused_twice"
    assert [event.name for event in bench.events] == [events.CONFIRMATION]


def test_an_accepted_second_token_is_ok_and_the_first_ones_refusal_is_told(bench: Bench) -> None:
    outcome = _run(_answering(bench, refused(), accepted()))

    [line] = _lines(bench)
    assert outcome.ok
    assert (line.outcome, line.fault, line.error, line.verify_status) == ("ok", None, None, "pass")
    [_, told] = bench.events
    assert told.name == events.TOKEN_REFUSED_ONCE
    assert (told.data["slug"], told.data["verify_status"], told.data["task_id"]) == ("signup", "fail", "task-1")
    assert "(was 422)" in str(told.data["reason"])


@pytest.mark.parametrize(
    ("second", "result", "fault"),
    [
        (Answer(500, BASE_URL), Result.FAILED, Fault.PRODUCT),
        (Answer(502, BASE_URL), Result.INDETERMINATE, Fault.INFRASTRUCTURE),
    ],
    ids=["crash", "gateway"],
)
def test_what_the_second_submit_met_speaks_for_itself(
    bench: Bench, second: Answer, result: Result, fault: Fault
) -> None:
    outcome = _run(_answering(bench, refused(), second))

    assert (outcome.result, outcome.fault, outcome.tokens_tried) == (result, fault, 2)


# A live account needs a control.


def _two_forms(bench: Bench, other: CaptchaType = CaptchaType.RECAPTCHA_V2) -> Bench:
    bench.forms = [form(), form("login", other)]
    return bench


def test_live_tokens_that_nobody_vouches_for_leave_the_fault_undetermined(bench: Bench) -> None:
    outcome = _run(_answering(_two_forms(bench), refused(), refused()), mode=KeyMode.LIVE)

    assert (outcome.result, outcome.fault) == (Result.INDETERMINATE, Fault.UNDETERMINED)
    assert outcome.control is not None
    assert "no other form of type recaptcha_v2" in outcome.control


@pytest.mark.parametrize(
    ("other", "fault"),
    [(CaptchaType.RECAPTCHA_V2, Fault.PRODUCT), (CaptchaType.TURNSTILE, Fault.UNDETERMINED)],
    ids=["same type", "another type"],
)
def test_another_form_of_the_type_that_accepted_a_token_is_a_control(
    bench: Bench, other: CaptchaType, fault: Fault
) -> None:
    _answering(_two_forms(bench, other), accepted(), refused(), refused())
    assert _run(bench, mode=KeyMode.LIVE, slug="login")

    outcome = _run(bench, mode=KeyMode.LIVE)

    assert outcome.fault is fault


def test_the_form_itself_is_no_control(bench: Bench) -> None:
    _answering(bench, accepted(), refused(), refused())
    assert _run(bench, mode=KeyMode.LIVE)

    assert _run(bench, mode=KeyMode.LIVE).fault is Fault.UNDETERMINED


def test_a_form_that_accepted_only_made_up_tokens_is_no_control(bench: Bench) -> None:
    _answering(_two_forms(bench), refused(), refused(), refused(), refused())
    assert not _run(bench, mode=KeyMode.LIVE, slug="login")

    assert _run(bench, mode=KeyMode.LIVE).fault is Fault.UNDETERMINED


# What keeps a second token from being tried.


def _no_budget(bench: Bench) -> None:
    bench.limits_rules = AccountLimits(run_budget=1)


def _no_provider(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[solution("task-1"), errors.RequestRejected("malformed")])


@pytest.mark.parametrize(
    ("lacking", "why"),
    [(_no_budget, "the budget of 1 submits"), (_no_provider, "malformed")],
    ids=["budget", "provider"],
)
def test_a_refusal_that_cannot_be_confirmed_blames_nobody(
    bench: Bench, lacking: Callable[[Bench], None], why: str
) -> None:
    lacking(bench)

    outcome = _run(_answering(bench, refused(), refused()))

    [line] = _lines(bench)
    assert (outcome.result, outcome.fault, outcome.tokens_tried) == (Result.INDETERMINATE, Fault.UNDETERMINED, 1)
    assert why in outcome.verdict.reason
    assert (line.verify_status, line.fault, line.task_id) == ("fail", "undetermined", "task-1")
    assert line.error is not None
    assert line.error["code"] == "refused_once"
    assert len(_sent(bench)) == 1


def test_a_page_that_is_broken_when_it_is_opened_again_is_the_forms_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answering(bench, refused())
    services = bench.services()
    first = services.driver.open

    def once(*args: object) -> object:
        if bench.driver.opened:
            raise errors.PageError("the widget is gone")
        return first(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(services.driver, "open", once)

    with pytest.raises(errors.PageError, match="gone"):
        run_attempt(SIGNUP, services)

    [line] = _lines(bench)
    assert (line.outcome, line.fault) == ("failed", "product")


def test_both_tokens_are_made_within_the_seconds_of_the_attempt(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[solution("task-1")] + [None] * 999)
    _answering(bench, refused())
    began = bench.clock.monotonic()

    outcome = run_attempt(replace(SIGNUP, timeout=40), bench.services())

    assert bench.clock.monotonic() - began == pytest.approx(40)
    assert outcome.fault is Fault.UNDETERMINED
    assert "was not over" in outcome.verdict.reason


def test_a_redelivered_message_is_not_confirmed_again(bench: Bench) -> None:
    message = replace(SIGNUP, fresh=False)
    _answering(bench, refused(), refused())
    assert not run_attempt(message, bench.services())

    with pytest.raises(errors.SpentElsewhere):
        run_attempt(message, bench.services())

    assert len(_sent(bench)) == 2


# Persons, and verifiers.


@pytest.mark.parametrize(("via", "persons"), [(VerifyVia.FORM, 1), (VerifyVia.LOOKUP, 2)])
def test_a_lookup_is_confirmed_with_an_address_of_its_own(bench: Bench, via: VerifyVia, persons: int) -> None:
    """The form took the first submit: what it recorded of that person would answer the second lookup too."""
    bench.forms = [form(verify=VerifySpec(via), fields={"email": "{identity.email}"})]
    bench.verifier = ScriptedVerifier([Verdict(VerifyStatus.FAIL, "unverified")])
    _answering(bench, *([refused()] if via is VerifyVia.FORM else []))

    assert _run(bench).tokens_tried == 2

    assert len({opened.posted[0][1]["email"] for opened in bench.driver.opened}) == persons


def test_a_verifier_is_asked_about_a_second_token(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.ENDPOINT))]
    bench.verifier = ScriptedVerifier([Verdict(VerifyStatus.FAIL, "the backend refuses the token")])

    outcome = _run(bench)

    assert (outcome.ok, outcome.tokens_tried, len(bench.provider.told)) == (True, 2, 2)
    assert _sent(bench) == []


def test_an_observed_score_costs_no_second_token(bench: Bench) -> None:
    bench.forms = [form(type=CaptchaType.RECAPTCHA_V3, score_policy=ScorePolicy.OBSERVE)]

    outcome = _run(_answering(bench, refused()))

    assert (outcome.result, outcome.fault, outcome.error) == (
        Result.INDETERMINATE,
        Fault.UNDETERMINED,
        "score_observed",
    )
    assert len(bench.provider.told) == 1


# A token whose store was restarted since: it may have been used before.


@pytest.fixture
def restarted(bench: Bench) -> Bench:
    """A store that was restarted while the task of a worker that is gone was solved."""
    bench.provider = ScriptedProvider(polls=[errors.DeadlineExceeded("gone")])
    with pytest.raises(errors.DeadlineExceeded):
        _run(bench)
    bench.store.epoch = "after the restart"
    bench.clock.advance(31)
    bench.records.lines.clear()
    return bench


def test_a_suspect_token_that_is_accepted_is_as_good_as_any(restarted: Bench) -> None:
    assert _run(restarted).ok
    assert (len(restarted.provider.told), restarted.events) == (1, [])


def test_a_suspect_token_that_is_refused_is_solved_anew_and_held_against_nobody(restarted: Bench) -> None:
    outcome = _run(_answering(restarted, refused(), accepted()))

    [line] = _lines(restarted)
    assert (outcome.ok, outcome.tokens_tried) == (True, 1)
    assert (line.outcome, line.fault, line.error) == ("ok", None, None)
    [renewed] = restarted.events
    assert (renewed.name, renewed.data["why"]) == (events.TOKEN_RENEWED, "suspect")
    assert restarted.provider.reported == []


def test_the_new_one_for_a_suspect_token_is_judged_like_any_fresh_one(restarted: Bench) -> None:
    outcome = _run(_answering(restarted, refused(), refused(), refused()))

    assert (outcome.result, outcome.fault, outcome.tokens_tried) == (Result.FAILED, Fault.PRODUCT, 2)
    assert len(set(_sent(restarted))) == 3
    told = [(event.name, event.data.get("why")) for event in restarted.events]
    assert told == [(events.TOKEN_RENEWED, "suspect"), (events.CONFIRMATION, None), (events.TOKEN_RENEWED, "fresh")]


def test_a_suspect_token_says_nothing_where_no_new_one_can_be_had(restarted: Bench) -> None:
    restarted.limits_rules = AccountLimits(run_budget=1)
    outcome = _run(_answering(restarted, refused()))

    [line] = _lines(restarted)
    assert (outcome.result, outcome.fault) == (Result.INDETERMINATE, Fault.UNDETERMINED)
    assert line.error is not None
    assert line.error["code"] == "verdict"  # not refused_once, which is held against the form later
    assert "may have been used before the store was restarted" in outcome.verdict.reason
