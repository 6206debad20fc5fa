"""A shop on FastAPI: pydantic models, a double-submit CSRF cookie, verification in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NEWSLETTER = """\
[forms.newsletter]
path = "/newsletter"
type = "turnstile"
fields = { email = "{identity.email}" }
success = { status = 202 }
verify = { via = "lookup", url = "/qa/captcha?email={identity.email}", success = { json = { passed = true } } }
"""
ATTEMPT = """\
def test_it(captcha_attempt):
    outcome = captcha_attempt("newsletter")
    assert outcome, outcome

def test_what_it_must_refuse(captcha_form):
    outcome = captcha_form("newsletter").submit(token="made up", expect="refuse")
    assert outcome, outcome
"""


def test_a_form_that_answers_before_it_verifies_is_judged_by_what_it_recorded(
    check: Callable[..., Any], fastapi_shop: str
) -> None:
    checked = check(fastapi_shop, NEWSLETTER, "test_newsletter.py", files={"test_newsletter.py": ATTEMPT})
    assert checked.run.code == 0, checked.run.output
    found = [(attempt["http_status"], attempt["verify_status"]) for attempt in checked.run.attempts]
    assert found == [(200, "pass"), (200, "fail")]
    assert list(checked.done["subscribed"]) == [True, False]


ASKED = """\
[forms.newsletter]
path = "/newsletter"
type = "turnstile"
success = { status = 202 }
verify = { via = "endpoint", url = "/qa/verify?action=news" }
"""
ASKED_TWICE = """\
def test_it(captcha_token, captcha_verify):
    token = captcha_token("newsletter")
    verdict = captcha_verify(token)
    assert verdict, verdict
    assert not captcha_verify(token, expect="refuse")
"""


def test_an_endpoint_of_the_shop_says_what_a_token_is_worth(check: Callable[..., Any], fastapi_shop: str) -> None:
    checked = check(fastapi_shop, ASKED, "test_verify.py", files={"test_verify.py": ASKED_TWICE})
    assert checked.run.code == 0, checked.run.output
    found = [(a["expect"], a["outcome"], a["verify_status"]) for a in checked.run.attempts]
    assert found == [("accept", "ok", "pass"), ("refuse", "ok", "fail")]
    assert not any(checked.done.values())


SIGNUP = """\
[forms.signup]
path = "/signup"
type = "turnstile"
success = { status = 201, json = { ok = true } }
refused = { status = 422, json = { "detail.code" = "captcha" } }
[forms.signup.submit]
url = "/api/signup"
body = { email = "{identity.email}", name = "{identity.name}", campaign = "{env} {run_id}", terms = true }
token_at = "captchaToken"
"""
CSRF = 'csrf = { cookie = "XSRF-TOKEN", header = "X-XSRF-TOKEN" }\n'


def test_a_single_page_application_is_tested_with_json_and_its_csrf_header(
    check: Callable[..., Any], fastapi_shop: str
) -> None:
    checked = check(fastapi_shop, SIGNUP + CSRF)
    assert checked.is_sound("signup")
    assert len(set(checked.done["users"])) == 2
    assert all(campaign.startswith("staging ") for campaign in checked.done["campaigns"])


def test_a_submit_that_the_csrf_check_stops_is_no_refused_captcha(check: Callable[..., Any], fastapi_shop: str) -> None:
    checked = check(fastapi_shop, SIGNUP, "--pyargs", "pytest_captcha_qa.suites", "-k", "missing or valid")
    assert checked.run.code == 12, checked.run.output
    assert "neither a success (it lacks the status 201 (was 403)" in checked.run.output
    assert [a["outcome"] for a in checked.run.attempts] == ["indeterminate"] * 2
    assert not any(checked.done.values())


CREATED = """\
[forms.signup.confirm]
url = "/api/users/{identity.email}"
status = 200
"""
TWO_SIGNUPS = """\
import pytest

@pytest.mark.parametrize("form", ["signup", "lost"])
def test_it(captcha_attempt, form):
    outcome = captcha_attempt(form)
    assert outcome, outcome
"""


def test_an_accepted_submit_has_to_have_its_effect(check: Callable[..., Any], fastapi_shop: str) -> None:
    """The account shows a moment later; that of the second form is asked for where none will ever be."""
    kept = SIGNUP + CSRF + CREATED
    lost = kept.replace("forms.signup", "forms.lost").replace("/api/users/", "/api/users/of-old/") + "within = 1.5\n"
    checked = check(fastapi_shop, kept + lost, "test_effect.py", files={"test_effect.py": TWO_SIGNUPS})
    assert checked.run.code == 1, checked.run.output
    verdicts = {slug: form["verdict"] for slug, form in checked.run.verdict["forms"].items()}
    assert verdicts == {"signup": "ok", "lost": "failed"}
    assert "accepted, but the effect never showed" in checked.run.output
    assert len(set(checked.done["users"])) == 2
