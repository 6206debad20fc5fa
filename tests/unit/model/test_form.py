from __future__ import annotations

import pytest

from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, FormSpec, VerifyVia
from pytest_captcha_qa.model.url import Url

PAGE = Url.parse("https://shop.example/signup")
SPEC = FormSpec("signup", "/signup", CaptchaType.TURNSTILE, success=Rule((303,)), refused=Rule((422,)))


@pytest.mark.parametrize(
    ("status", "accepts", "refuses"), [(303, True, False), (422, False, True), (200, False, False), (500, False, False)]
)
def test_an_answer_is_a_success_a_refusal_or_neither(status: int, accepts: bool, refuses: bool) -> None:
    answer = Answer(status, PAGE)

    assert (SPEC.accepts(answer), SPEC.refuses(answer)) == (accepts, refuses)


@pytest.mark.parametrize(("status", "refuses"), [(303, False), (200, True), (404, True), (499, True), (500, False)])
def test_without_a_rule_for_refusals_the_site_refuses_by_every_answer_but_a_crash(status: int, refuses: bool) -> None:
    spec = FormSpec("signup", "/signup", CaptchaType.TURNSTILE, success=Rule((303,)))

    assert spec.refuses(Answer(status, PAGE)) is refuses


@pytest.mark.parametrize(
    ("via", "submits"),
    [
        (VerifyVia.FORM, True),
        (VerifyVia.LOOKUP, True),
        (VerifyVia.ENDPOINT, False),
        (VerifyVia.SITEVERIFY, False),
    ],
)
def test_one_consumer_gets_the_token(via: VerifyVia, submits: bool) -> None:
    assert via.submits_form is submits


def test_a_challenge_holds_no_more_than_it_was_given() -> None:
    challenge = Challenge(CaptchaType.TURNSTILE, "key", PAGE)

    assert (challenge.action, challenge.cdata, challenge.min_score, dict(challenge.data)) == (None, None, None, {})
