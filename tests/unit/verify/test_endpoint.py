"""What the team's endpoint is asked, and how its answer is judged."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

from pytest_captcha_qa.errors import ConfigError, ScopeDenied, TransportError, VerifierError
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.attempt import VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.verify.endpoint import EndpointVerifier
from pytest_captcha_qa.verify.fields import FIELDS

TOKEN = Solution({"token": "the-token"}, user_agent="Solver/1")


@pytest.fixture
def verify(client, spec, challenge, grants, deadline):
    """Verify a token; keywords go to the form's `verify`."""

    def verify_it(kind=CaptchaType.TURNSTILE, solution=TOKEN, **verify):
        form = spec(kind, verify={"url": "/api/verify", **verify})
        return EndpointVerifier(client).verify(form, challenge(kind), solution, {}, grants, deadline)

    return verify_it


@pytest.mark.parametrize(
    ("kind", "parts", "fields"),
    [
        (CaptchaType.RECAPTCHA_V2, {"token": "t"}, {"g-recaptcha-response": "t"}),
        (CaptchaType.TURNSTILE, {"token": "t"}, {"cf-turnstile-response": "t"}),
        (CaptchaType.HCAPTCHA, {"token": "t"}, {"h-captcha-response": "t", "g-recaptcha-response": "t"}),
        (
            CaptchaType.GEETEST_V3,
            {"challenge": "c", "validate": "v", "seccode": "s"},
            {"geetest_challenge": "c", "geetest_validate": "v", "geetest_seccode": "s"},
        ),
    ],
)
def test_the_token_is_posted_under_the_names_of_the_form(client, grants, verify, kind, parts, fields):
    client.will({"success": True})

    assert verify(kind, Solution(parts)).status is VerifyStatus.PASS
    method, url, grant, _ = client.asked[0]
    assert (method, url) == ("POST", "https://shop.example/api/verify")
    assert grant is not None
    assert grants.asked == [url]
    assert dict(parse_qsl(client.body)) == fields


def test_a_token_field_of_the_form_takes_the_place_of_the_types_own(client, spec, challenge, grants, deadline):
    client.will({"success": True})
    form = replace(spec(CaptchaType.HCAPTCHA, verify={"url": "/v"}), token_field="captchaToken")
    EndpointVerifier(client).verify(form, challenge(CaptchaType.HCAPTCHA), TOKEN, {}, grants, deadline)

    assert dict(parse_qsl(client.body)) == {"captchaToken": "the-token"}


def test_the_solutions_user_agent_goes_along(client, verify):
    client.will({"success": True})
    verify()

    assert client.asked[0][3].user_agent == "Solver/1"


def test_without_a_solution_no_token_field_is_sent(client, verify):
    client.will({"success": False})

    assert verify(solution=None).status is VerifyStatus.FAIL
    assert client.body == ""


@pytest.mark.parametrize(
    ("answer", "status", "rules", "verdict"),
    [
        ({"success": True}, 200, {}, VerifyStatus.PASS),
        ({"success": False}, 200, {}, VerifyStatus.FAIL),
        ({"success": "true"}, 200, {}, VerifyStatus.FAIL),
        ({"success": False}, 422, {}, VerifyStatus.FAIL),
        ({"error": "x"}, 200, {}, VerifyStatus.ERROR),
        ("<html>", 200, {}, VerifyStatus.ERROR),
        ({"success": False}, 500, {}, VerifyStatus.ERROR),
        ({"success": False}, 401, {}, VerifyStatus.ERROR),
        ("", 404, {"success": Rule(status=(204,))}, VerifyStatus.ERROR),
        ("", 204, {"success": Rule(status=(204,))}, VerifyStatus.PASS),
        ("", 422, {"success": Rule(status=(204,))}, VerifyStatus.FAIL),
        ({"code": "captcha"}, 403, {"refused": Rule(status=(403,))}, VerifyStatus.FAIL),
        ({"success": False}, 200, {"refused": Rule(status=(403,))}, VerifyStatus.ERROR),
    ],
)
def test_the_rules_judge_and_neither_is_an_error(client, verify, answer, status, rules, verdict):
    client.will(answer, status=status)

    assert verify(**rules).status is verdict


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://elsewhere.example/verify", ScopeDenied),
        ("https://user@shop.example/verify", ConfigError),
        ("", ConfigError),
        (None, ConfigError),
    ],
)
def test_an_address_that_must_not_be_asked_is_not(client, verify, url, error):
    with pytest.raises(error):
        verify(url=url)
    assert client.asked == []


@pytest.mark.parametrize("kind", [kind for kind, fields in FIELDS.items() if fields])
def test_every_type_is_sent_in_the_fields_of_its_form(client, verify, kind):
    client.will({"success": True})

    assert verify(kind, solution=Solution.of_text("x")).status is VerifyStatus.PASS
    assert dict(parse_qsl(client.body)) == dict.fromkeys(FIELDS[kind], "x")


def test_an_image_needs_the_name_of_its_field(client, verify):
    with pytest.raises(ConfigError, match=r"takes the answer to the image; name it with forms\.signup\.token_field"):
        verify(CaptchaType.IMAGE)
    assert client.asked == []


def test_no_answer_is_a_verifier_error(client, verify):
    client.answers.append(TransportError("POST: reset", kind="reset"))

    with pytest.raises(VerifierError, match="the endpoint of form 'signup' does not answer"):
        verify()


@pytest.mark.parametrize(
    ("score", "min_score", "codes"),
    [(0.1, None, ("low-score",)), (0.6, None, ()), (0.6, 0.7, ("low-score",)), (True, None, ()), ("0.1", None, ())],
)
def test_a_refusal_that_comes_with_a_low_score_says_so(
    client, spec, challenge, grants, deadline, score, min_score, codes
):
    client.will({"success": False, "score": score})
    form = spec(CaptchaType.RECAPTCHA_V3, verify={"url": "/api/verify"}, min_score=min_score)

    verdict = EndpointVerifier(client).verify(form, challenge(CaptchaType.RECAPTCHA_V3), TOKEN, {}, grants, deadline)

    assert (verdict.status, verdict.codes) == (VerifyStatus.FAIL, codes)
