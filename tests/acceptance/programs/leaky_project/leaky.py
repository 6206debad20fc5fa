"""Tests of a team that print, log, compare and hold all they can get, and fail."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from base64 import b64encode

import pytest

from pytest_captcha_qa.transport import HttpClient

log = logging.getLogger("team")


def test_a_token_is_revealed_into_locals(captcha_token):
    token = captcha_token("login")
    text = token.reveal()
    plain = "".join(text)
    parts = token.reveal_parts()
    quoted, listed, packed = f"token={plain}", [plain], plain.encode()
    raise AssertionError(quoted, listed, packed, parts)


def test_a_token_is_compared(captcha_token):
    text = captcha_token("login").reveal()
    assert text == text[:40] + "x" + text[41:]


def test_a_token_is_looked_for(captcha_token):
    text = captcha_token("login").reveal()
    assert {"token": str(text), "words": text.split("-")} == {"token": "another", "words": []}


def test_a_token_is_logged_and_printed(captcha_token):
    text = captcha_token("login").reveal()
    log.info("the token is %s", text)
    log.error(f"the token was {text}")
    print(f"the token is {text}")
    print(json.dumps({"token": text}))
    raise ValueError(text)


def test_a_token_is_warned_of(captcha_token):
    warnings.warn(f"the token is {captcha_token('login').reveal()}", stacklevel=1)


def test_a_token_is_a_property(captcha_token, record_property):
    record_property("token", captcha_token("login").reveal())


def test_a_thread_dies_with_a_token(captcha_token):
    text = captcha_token("login").reveal()

    def die():
        raise RuntimeError(f"cannot use {text}")

    thread = threading.Thread(target=die)
    thread.start()
    thread.join()


def test_a_part_of_a_test_holds_a_token(captcha_token, request):
    if not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    text = "".join(captcha_token("login").reveal())
    with request.getfixturevalue("subtests").test(msg="part", token=text):
        print(text)
        assert text == ""


def test_a_skip_names_a_token(captcha_token):
    pytest.skip(f"the token is {captcha_token('login').reveal()}")


def test_an_expected_failure_names_a_token(captcha_token):
    pytest.xfail(f"the token is {captcha_token('login').reveal()}")


@pytest.mark.xfail(reason="known")
def test_an_expected_failure_holds_a_token(captcha_token):
    plain = "".join(captcha_token("login").reveal())
    assert plain is None


def test_everything_is_held(
    captcha_form, captcha_token, captcha_attempt, captcha_http, captcha_env, captcha_identity, captcha_solver
):
    form = captcha_form("login")
    token = captcha_token("login")
    outcome = form.submit(token=token, name="")
    again = form.submit(token=token, expect="refuse")
    whole = captcha_attempt("signup")
    answer = captcha_http.get("/turnstile")
    other = captcha_solver.solve("login")
    held = vars(form), vars(token), vars(other), vars(captcha_http), vars(captcha_env)
    assert whole is None, (form, token, outcome, again, answer, held, captcha_identity)


def test_the_session_cookie_is_held(captcha_form, captcha_http, captcha_identity):
    form = captcha_form("login")
    cookies = captcha_http.client.cookies(next(iter(captcha_http.client._jars)))
    print(cookies, captcha_identity.password)
    form.submit(expect="refuse", token="made up")
    assert cookies == {}


def test_the_environment_is_held(captcha_env, pytestconfig, secrets_of_the_team):
    user_and_password = secrets_of_the_team["SITE_LOGIN"]
    header = "Basic " + b64encode(user_and_password.encode()).decode()
    log.warning("sent %s", header)
    assert dict(secrets_of_the_team, header=header) == {}


@pytest.mark.parametrize("kind", ["reset", "status", "html200", "empty"])
def test_the_site_fails(kind, captcha_form, captcha_token, fault):
    form = captcha_form("signup")
    token = captcha_token("signup")
    fault(site=[{"kind": kind, "path": "/recaptcha-v2"} | ({"status": 500} if kind == "status" else {})])
    assert form.submit(token=token)


@pytest.fixture
def broken_transport(monkeypatch):
    real = HttpClient._send

    def broken(self, request, url, *args, **kwargs):
        if request.method == "POST" and url.path == "/turnstile":
            raise RuntimeError(f"cannot send {request.body} with {dict(request.headers)}")
        return real(self, request, url, *args, **kwargs)

    monkeypatch.setattr(HttpClient, "_send", broken)


def test_code_of_the_harness_raises(captcha_form, captcha_token, broken_transport):
    form, token = captcha_form("login"), captcha_token("login")
    form.submit(token=token)


def test_code_of_the_harness_raises_in_the_whole_sequence(captcha_attempt, broken_transport):
    captcha_attempt("login")


def test_code_of_the_harness_raises_where_the_key_is_sent(captcha_token, monkeypatch):
    def broken(self, request, *args, **kwargs):
        raise RuntimeError(f"cannot send {request.url} with {request.body}")

    monkeypatch.setattr("pytest_captcha_qa.transport.connections.Adapter.send", broken)
    captcha_token("login")


@pytest.fixture
def fixture_with_token(captcha_token):
    text = captcha_token("login").reveal()
    yield text
    raise RuntimeError(f"cannot put {text} back")


def test_a_fixture_fails_at_its_end(fixture_with_token):
    log.info("holds %r and %s", fixture_with_token, fixture_with_token)


@pytest.fixture
def fixture_that_fails(captcha_token):
    text = captcha_token("login").reveal()
    raise RuntimeError(f"cannot use {text}")


def test_a_fixture_fails(fixture_that_fails):
    pass
