from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_captcha_qa.engine.blame import (
    Control,
    Judgement,
    confirmed,
    control_of,
    judge_answer,
    judge_verdict,
    unconfirmed,
)
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.attempt import (
    REFUSED_ONCE,
    REFUSED_TWICE,
    SCORE_OBSERVED,
    Expect,
    Fault,
    KeyMode,
    Result,
    Verdict,
    VerifyStatus,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import LOW_SCORE, ScorePolicy
from pytest_captcha_qa.testing import BASE_URL, accepted, form, refused

ACCEPT, REFUSE = Expect.ACCEPT, Expect.REFUSE
OK, FAILED, INDETERMINATE = Result.OK, Result.FAILED, Result.INDETERMINATE
PASS, FAIL, ERROR = VerifyStatus.PASS, VerifyStatus.FAIL, VerifyStatus.ERROR
PRODUCT, INFRASTRUCTURE, UNDETERMINED = Fault.PRODUCT, Fault.INFRASTRUCTURE, Fault.UNDETERMINED

ANSWERS: Mapping[str, Answer] = {
    "success": accepted(),
    "refused": refused(),
    "crash": Answer(500, BASE_URL),
    "gateway": Answer(502, BASE_URL),
    "unavailable": Answer(503, BASE_URL),
    "gateway late": Answer(504, BASE_URL),
    "neither": Answer(200, BASE_URL, text="something else"),
}

# What the site answers to one submit and what was expected: what the backend said, the result, whose fault it is.
TABLE = [
    ("success", ACCEPT, PASS, OK, None),
    ("success", REFUSE, PASS, FAILED, PRODUCT),
    ("refused", ACCEPT, FAIL, INDETERMINATE, UNDETERMINED),  # until a second token was tried
    ("refused", REFUSE, FAIL, OK, None),
    ("crash", ACCEPT, ERROR, FAILED, PRODUCT),
    ("crash", REFUSE, ERROR, FAILED, PRODUCT),
    ("gateway", ACCEPT, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("gateway", REFUSE, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("unavailable", ACCEPT, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("unavailable", REFUSE, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("gateway late", ACCEPT, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("gateway late", REFUSE, ERROR, INDETERMINATE, INFRASTRUCTURE),
    ("neither", ACCEPT, ERROR, INDETERMINATE, UNDETERMINED),
    ("neither", REFUSE, ERROR, INDETERMINATE, UNDETERMINED),
]


@pytest.mark.parametrize(("answer", "expect", "status", "result", "fault"), TABLE)
def test_an_answer_is_judged_by_what_was_expected(
    answer: str, expect: Expect, status: VerifyStatus, result: Result, fault: Fault | None
) -> None:
    judgement = judge_answer(form(), ANSWERS[answer], expect)

    assert (judgement.verdict.status, judgement.result, judgement.fault) == (status, result, fault)
    assert judgement.verdict.http_status == ANSWERS[answer].status
    assert judgement.may_be_the_tokens_fault is ((answer, expect) == ("refused", ACCEPT))


@pytest.mark.parametrize(
    ("status", "expect", "result", "fault", "code"),
    [
        (PASS, ACCEPT, OK, None, None),
        (PASS, REFUSE, FAILED, PRODUCT, None),
        (FAIL, ACCEPT, INDETERMINATE, UNDETERMINED, REFUSED_ONCE),
        (FAIL, REFUSE, OK, None, None),
        (ERROR, ACCEPT, INDETERMINATE, UNDETERMINED, None),
        (ERROR, REFUSE, INDETERMINATE, UNDETERMINED, None),
    ],
)
def test_a_verifiers_verdict_is_judged_by_what_was_expected(
    status: VerifyStatus, expect: Expect, result: Result, fault: Fault | None, code: str | None
) -> None:
    judgement = judge_verdict(form(), Verdict(status, "said so"), expect)

    assert (judgement.result, judgement.fault, judgement.code) == (result, fault, code)


# Two tokens, of which the first was refused: what the second met, whether the tokens are known to be good, and whose
# fault it is.
CONFIRMED = [
    ("success", True, PASS, OK, None, None),
    ("success", False, PASS, OK, None, None),
    ("refused", True, FAIL, FAILED, PRODUCT, REFUSED_TWICE),
    ("refused", False, FAIL, INDETERMINATE, UNDETERMINED, REFUSED_TWICE),
    ("crash", True, ERROR, FAILED, PRODUCT, None),
    ("crash", False, ERROR, FAILED, PRODUCT, None),
    ("gateway", True, ERROR, INDETERMINATE, INFRASTRUCTURE, None),
    ("gateway", False, ERROR, INDETERMINATE, INFRASTRUCTURE, None),
    ("neither", True, ERROR, INDETERMINATE, UNDETERMINED, None),
    ("neither", False, ERROR, INDETERMINATE, UNDETERMINED, None),
]


def _refused_once() -> Judgement:
    return judge_answer(form(), refused(), ACCEPT)


@pytest.mark.parametrize(("second", "control", "status", "result", "fault", "code"), CONFIRMED)
def test_a_second_token_decides_together_with_the_control(
    second: str, control: bool, status: VerifyStatus, result: Result, fault: Fault | None, code: str | None
) -> None:
    again = judge_answer(form(), ANSWERS[second], ACCEPT)

    judgement = confirmed(again, Control(control, "what is known of the tokens"))

    assert (judgement.verdict.status, judgement.result, judgement.fault) == (status, result, fault)
    assert (judgement.code, judgement.tokens) == (code, 2)
    assert judgement.outcome(ACCEPT).control == "what is known of the tokens"
    assert not judgement.may_be_the_tokens_fault


def test_two_refusals_tell_both_and_what_is_known_of_the_tokens() -> None:
    judgement = confirmed(_refused_once(), Control(True, "form 'other' accepted one"))

    reason = judgement.verdict.reason
    assert reason.startswith("the site refused a fresh token (the answer lacks")
    assert reason.endswith("and a second one too; form 'other' accepted one, so the form is at fault")


def test_an_accepted_second_token_holds_the_first_one_against_the_provider() -> None:
    judgement = confirmed(judge_answer(form(), accepted(), ACCEPT), Control(False, ""))

    assert "held against the provider" in judgement.verdict.reason
    assert judgement.outcome(ACCEPT).tokens_tried == 2


def test_without_a_second_token_nobody_is_blamed_and_the_reason_says_why() -> None:
    judgement = unconfirmed(_refused_once(), "the budget is used up")

    assert (judgement.result, judgement.fault, judgement.code) == (INDETERMINATE, UNDETERMINED, REFUSED_ONCE)
    assert judgement.verdict.reason.endswith("no second one could be tried: the budget is used up")
    assert judgement.outcome(ACCEPT).tokens_tried == 1


@pytest.mark.parametrize(
    ("mode", "other", "passed", "sentence"),
    [
        (KeyMode.STANDIN, None, True, "good by construction"),
        (KeyMode.TESTKEYS, None, True, "good by construction"),
        (KeyMode.LIVE, "login", True, "form 'login' of the same type"),
        (KeyMode.LIVE, None, False, "no other form of type turnstile"),
    ],
)
def test_live_tokens_need_another_form_to_vouch_for_them(
    mode: KeyMode, other: str | None, passed: bool, sentence: str
) -> None:
    control = control_of(mode, other, "turnstile")

    assert control.passed is passed
    assert sentence in control.sentence


# A score that is only observed.

V3 = CaptchaType.RECAPTCHA_V3


@pytest.mark.parametrize(
    ("policy", "expect", "result", "fault", "code"),
    [
        (ScorePolicy.OBSERVE, ACCEPT, INDETERMINATE, UNDETERMINED, SCORE_OBSERVED),
        (ScorePolicy.OBSERVE, REFUSE, OK, None, None),
        (ScorePolicy.REQUIRE, ACCEPT, INDETERMINATE, UNDETERMINED, REFUSED_ONCE),
    ],
)
def test_a_refusal_by_a_form_whose_score_is_observed_says_nothing(
    policy: ScorePolicy, expect: Expect, result: Result, fault: Fault | None, code: str | None
) -> None:
    judgement = judge_answer(form(type=V3, score_policy=policy), refused(), expect)

    assert (judgement.result, judgement.fault, judgement.code) == (result, fault, code)


@pytest.mark.parametrize(
    ("policy", "codes", "status", "code"),
    [
        (ScorePolicy.OBSERVE, (LOW_SCORE,), ERROR, SCORE_OBSERVED),
        (ScorePolicy.OBSERVE, ("timeout-or-duplicate",), FAIL, REFUSED_ONCE),
        (ScorePolicy.REQUIRE, (LOW_SCORE,), FAIL, REFUSED_ONCE),
    ],
)
def test_a_low_score_is_no_verdict_where_it_is_only_observed(
    policy: ScorePolicy, codes: tuple[str, ...], status: VerifyStatus, code: str
) -> None:
    verdict = Verdict(FAIL, "the score is 0.1", 200, codes)

    judgement = judge_verdict(form(type=V3, score_policy=policy), verdict, ACCEPT)

    assert (judgement.verdict.status, judgement.code) == (status, code)
    assert (judgement.result, judgement.fault) == (INDETERMINATE, UNDETERMINED)


def test_an_observed_score_is_not_confirmed_with_a_second_token() -> None:
    assert not judge_answer(form(type=V3, score_policy=ScorePolicy.OBSERVE), refused(), ACCEPT).may_be_the_tokens_fault


# Words.


@pytest.mark.parametrize(
    ("status", "result"), [(200, OK), (403, OK), (429, INDETERMINATE), (500, FAILED), (503, INDETERMINATE)]
)
def test_without_a_rule_for_refusals_every_answer_of_the_site_that_is_no_success_is_one(
    status: int, result: Result
) -> None:
    judgement = judge_answer(form(refused=None), Answer(status, BASE_URL), REFUSE)

    assert judgement.result is result


def test_a_refusal_that_was_not_expected_says_what_a_success_would_have_shown() -> None:
    spec = form(success=Rule((303,), location="/welcome*", text="Hello"))

    reason = judge_answer(spec, refused(), ACCEPT).verdict.reason

    assert "status 303 (was 422)" in reason
    assert "redirect to /welcome*" in reason
    assert "captcha" not in reason  # no text of the site's


def test_a_judgement_becomes_an_outcome_that_is_true_when_the_expectation_was_met() -> None:
    met = judge_answer(form(), refused(), REFUSE).outcome(REFUSE)
    unmet = judge_answer(form(), refused(), ACCEPT).outcome(ACCEPT)

    assert met
    assert not unmet
    assert (unmet.fault, unmet.http_status) == (UNDETERMINED, 422)
    assert (met.tokens_tried, unmet.tokens_tried) == (0, 1)
