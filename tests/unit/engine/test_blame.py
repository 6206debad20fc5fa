from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_captcha_qa.engine.blame import judge_answer, judge_verdict
from pytest_captcha_qa.model.attempt import Expect, Fault, Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.form import Answer, Rule
from pytest_captcha_qa.testing import BASE_URL, accepted, form, refused

ACCEPT, REFUSE = Expect.ACCEPT, Expect.REFUSE
OK, FAILED, INDETERMINATE = Result.OK, Result.FAILED, Result.INDETERMINATE
PASS, FAIL, ERROR = VerifyStatus.PASS, VerifyStatus.FAIL, VerifyStatus.ERROR

ANSWERS: Mapping[str, Answer] = {
    "success": accepted(),
    "refused": refused(),
    "crash": Answer(500, BASE_URL),
    "gateway": Answer(502, BASE_URL),
    "unavailable": Answer(503, BASE_URL),
    "gateway late": Answer(504, BASE_URL),
    "neither": Answer(200, BASE_URL, text="something else"),
}

# What the site answers and what was expected: what the backend said, the result, whose fault it is.
TABLE = [
    ("success", ACCEPT, PASS, OK, None),
    ("success", REFUSE, PASS, FAILED, Fault.PRODUCT),
    ("refused", ACCEPT, FAIL, FAILED, Fault.PRODUCT),
    ("refused", REFUSE, FAIL, OK, None),
    ("crash", ACCEPT, ERROR, FAILED, Fault.PRODUCT),
    ("crash", REFUSE, ERROR, FAILED, Fault.PRODUCT),
    ("gateway", ACCEPT, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("gateway", REFUSE, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("unavailable", ACCEPT, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("unavailable", REFUSE, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("gateway late", ACCEPT, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("gateway late", REFUSE, ERROR, INDETERMINATE, Fault.INFRASTRUCTURE),
    ("neither", ACCEPT, ERROR, INDETERMINATE, Fault.UNDETERMINED),
    ("neither", REFUSE, ERROR, INDETERMINATE, Fault.UNDETERMINED),
]


@pytest.mark.parametrize(("answer", "expect", "status", "result", "fault"), TABLE)
def test_an_answer_is_judged_by_what_was_expected(
    answer: str, expect: Expect, status: VerifyStatus, result: Result, fault: Fault | None
) -> None:
    judgement = judge_answer(form(), ANSWERS[answer], expect)

    assert (judgement.verdict.status, judgement.result, judgement.fault) == (status, result, fault)
    assert judgement.verdict.http_status == ANSWERS[answer].status


@pytest.mark.parametrize(
    ("status", "expect", "result", "fault"),
    [
        (PASS, ACCEPT, OK, None),
        (PASS, REFUSE, FAILED, Fault.PRODUCT),
        (FAIL, ACCEPT, FAILED, Fault.PRODUCT),
        (FAIL, REFUSE, OK, None),
        (ERROR, ACCEPT, INDETERMINATE, Fault.UNDETERMINED),
        (ERROR, REFUSE, INDETERMINATE, Fault.UNDETERMINED),
    ],
)
def test_a_verifiers_verdict_is_judged_by_what_was_expected(
    status: VerifyStatus, expect: Expect, result: Result, fault: Fault | None
) -> None:
    judgement = judge_verdict(Verdict(status, "said so"), expect)

    assert (judgement.result, judgement.fault) == (result, fault)


@pytest.mark.parametrize(("status", "result"), [(200, OK), (403, OK), (500, FAILED), (503, INDETERMINATE)])
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
    assert (unmet.fault, unmet.http_status) == (Fault.PRODUCT, 422)
