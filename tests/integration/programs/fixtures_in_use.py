"""Run by test_plugin_fixtures.py in a project of its own: what a team's tests may do with the fixtures."""

from __future__ import annotations

import asyncio

import pytest

from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, ScopeDenied

GARBAGE = "0." + "Zm9yZ2VkLXRva2Vu" * 30


def test_an_unspent_token_is_given_again(captcha_token):
    assert captcha_token("login") is captcha_token("login")


def test_after_a_spent_token_comes_the_next(captcha_token):
    first = captcha_token("login")
    text = first.reveal()
    second = captcha_token("login")
    assert second is not first
    assert second.reveal() != text
    assert (first.spent, second.spent) == (True, True)


def test_tokens_of_two_forms_are_two(captcha_token):
    assert captcha_token("login").form == "login"
    assert captcha_token("signup").form == "signup"


def test_the_form_first_then_the_token_make_one_attempt(captcha_form, captcha_token):
    page = captcha_form("login")
    assert page.submit(token=captcha_token("login"))


def test_the_token_first_then_the_form_make_one_attempt(captcha_form, captcha_token):
    token = captcha_token("login")
    assert captcha_form("login").submit(token=token)


def test_a_submit_without_a_token_takes_one_by_itself(captcha_form):
    assert captcha_form("login").submit()


def test_a_page_may_be_submitted_twice(captcha_form):
    page = captcha_form("login")
    assert page.submit()
    assert page.submit()


def test_a_spent_token_is_refused_when_it_is_replayed(captcha_form, captcha_token):
    token = captcha_token("login")
    assert captcha_form("login").submit(token=token)
    outcome = captcha_form("login").submit(token=token, expect="refuse")
    assert outcome.ok
    assert outcome.verdict.status == "fail"
    assert outcome.http_status == 422


def test_an_unspent_token_cannot_be_replayed(captcha_form, captcha_token):
    token = captcha_token("login")
    with pytest.raises(ConfigError, match="this token is unspent: submit it with expect='accept' first"):
        captcha_form("login").submit(token=token, expect="refuse")
    assert captcha_form("login").submit(token=token)


def test_a_text_is_no_token(captcha_form):
    with pytest.raises(ConfigError, match=r"comes from captcha_token\(...\); a text is for expect='refuse'"):
        captcha_form("login").submit(token=GARBAGE)


def test_an_expectation_is_one_of_two(captcha_form):
    with pytest.raises(ConfigError, match="expect is 'accept' or 'refuse', not 'deny'"):
        captcha_form("login").submit(expect="deny")


def test_an_unknown_field_names_the_nearest(captcha_form):
    with pytest.raises(ConfigError, match="did you mean 'email'"):
        captcha_form("login").submit(emial="qa@example.com")


def test_an_unknown_form_names_the_nearest(captcha_form, captcha_token, captcha_attempt, captcha_solver):
    for factory in (captcha_form, captcha_token, captcha_attempt, captcha_solver.solve):
        with pytest.raises(ConfigError, match=r"unknown form 'logn'.*did you mean 'login'"):
            factory("logn")


def test_the_token_of_another_form_is_not_taken(captcha_form, captcha_token):
    with pytest.raises(ConfigError, match="of form 'signup' and form 'login' cannot be submitted with it"):
        captcha_form("login").submit(token=captcha_token("signup"))


def test_the_whole_sequence_gives_its_outcome(captcha_attempt):
    outcome = captcha_attempt("login")
    assert outcome.ok
    assert outcome.verdict.status == "pass"
    assert {"page", "blocked", "submit"} <= outcome.seconds.keys()
    assert captcha_attempt("login"), "a second attempt of a test has a token of its own"


def test_a_page_tells_what_it_is(captcha_form):
    page = captcha_form("login")
    assert (page.form, page.type) == ("login", "turnstile")
    assert page.sitekey == "0x4AAAAAAASANDBOXlogin01"
    assert page.url.endswith("/turnstile")
    assert repr(page) == f"<FormPage login (turnstile) at {page.url}>"


def test_a_form_verified_by_its_submit_cannot_be_asked_about(captcha_token, captcha_verify):
    with pytest.raises(ConfigError, match=r"form 'login' is verified via form.*captcha_form\(...\)"):
        captcha_verify(captcha_token("login"))


def test_the_vendor_is_asked_about_a_token(captcha_token, captcha_verify):
    token = captcha_token("by_vendor")
    verdict = captcha_verify(token)
    assert verdict, verdict
    assert token.spent
    assert verdict.reason.endswith("accepts the token")


def test_the_backend_is_asked_about_a_token(captcha_token, captcha_verify):
    verdict = captcha_verify(captcha_token("by_endpoint"))
    assert verdict.status == "pass"
    assert verdict.http_status == 200


def test_the_backend_tells_what_it_has_recorded(captcha_attempt):
    outcome = captcha_attempt("by_lookup")
    assert outcome, outcome


def test_a_token_is_asked_about_once(captcha_token, captcha_verify):
    token = captcha_token("by_vendor")
    assert captcha_verify(token)
    assert captcha_token("by_vendor") is not token


def test_callers_with_one_subject_share_a_token(captcha_solver):
    first, second = (captcha_solver.solve("login", subject="registration-1") for _ in range(2))
    assert first.task_id == second.task_id
    text = first.reveal()
    assert second.reveal() != text, "a spent token is made anew, not handed out again"


def test_callers_without_a_subject_have_tokens_of_their_own(captcha_solver):
    assert captcha_solver.solve("login").task_id != captcha_solver.solve("login").task_id


def test_each_form_has_its_own_attempts(captcha_attempt):
    assert captcha_attempt("signup")
    assert captcha_attempt("login")


def test_a_solve_keeps_to_its_timeout(captcha_solver):
    with pytest.raises(CaptchaQAError) as ended:
        captcha_solver.solve("signup", timeout=0.2)
    assert ended.value.exit_code == 12


def test_a_strangers_token_is_not_submitted(captcha_form, captcha_solver):
    token = captcha_solver.solve("login")
    with pytest.raises(ConfigError, match="this token was not obtained by this test"):
        captcha_form("login").submit(token=token)


def test_the_environment_tells_what_it_is(captcha_env):
    assert (captcha_env.name, captcha_env.kind, captcha_env.key_mode) == ("staging", "staging", "standin")
    assert captcha_env.origin.startswith("http://127.0.0.1:")
    assert captcha_env.release == "2.0"
    assert captcha_env.run_id == "r1"
    assert captcha_env.forms["login"].type == "turnstile"


def test_http_reads_and_posts_on_the_site(captcha_http):
    page = captcha_http.get("/version")
    assert (page.status, page.json_value("version")) == (200, "1.0.0")
    posted = captcha_http.post("/newsletter", data={"email": "qa@example.com"})
    assert "This site sends no newsletter" in posted.text
    redirected = captcha_http.get("/redirect?to=/welcome")
    assert (redirected.status, redirected.location.path) == (302, "/welcome")


def test_http_leaves_the_site_for_nobody(captcha_http):
    with pytest.raises(ScopeDenied):
        captcha_http.get("http://127.0.0.1:1/")
    with pytest.raises(ConfigError, match="cannot ask for this address"):
        captcha_http.get("http://user:word@127.0.0.1/")


def test_http_and_forms_share_their_cookies(captcha_http, captcha_form):
    assert captcha_form("login").submit()
    assert "We have received: Log in" in captcha_http.get("/welcome").text


def test_threads_may_use_the_factories_at_once(captcha_attempt, captcha_token):
    async def both():
        return await asyncio.gather(
            asyncio.to_thread(captcha_attempt, "login"), asyncio.to_thread(captcha_token, "signup")
        )

    outcome, token = asyncio.run(both())
    assert outcome
    assert not token.spent


def test_a_fixture_asked_for_while_the_test_runs_works(request):
    assert request.getfixturevalue("captcha_attempt")("login")


@pytest.mark.captcha
class TestInAClass:
    def test_a_method_has_the_fixtures(self, captcha_attempt):
        assert captcha_attempt("login")
