"""The stand-in as it is used: a process of its own, over http and https, asked by a backend and by a project."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from cryptography import x509

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.standin import StandIn
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.sandbox.alone import StandInAddresses, StandInProcess
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource, check
from pytest_captcha_qa.transport import HttpClient

PAGE = Url.parse("http://127.0.0.1:8000/signup")
PATH = "/turnstile/v0/siteverify"
WAIT = 10.0


@pytest.fixture(scope="module")
def running() -> Iterator[StandInAddresses]:
    with StandInProcess() as process:
        yield process.start()


@pytest.fixture
def stand_in(running: StandInAddresses) -> StandIn:
    """A client that speaks https and trusts the stand-in's authority."""
    return StandIn(Url.parse(running.vendor_https), client=HttpClient(foreign_ca_file=running.ca_file))


@pytest.fixture
def verify(running: StandInAddresses) -> Callable[..., Any]:
    """`verify(token)` asks as a backend does that gives the vendor half a second."""

    def ask(token: str) -> Any:
        call = {"secret": "a secret of the team", "response": token}
        return requests.post(running.vendor_https + PATH, data=call, timeout=0.5, verify=running.ca_file)

    return ask


def _grant() -> ScopeGrant:
    pattern = OriginPattern(PAGE.origin)
    proof = Evidence(PAGE.origin, time.monotonic(), (pattern,), EnvKind.QA, time.time() + 1000)
    granted = check(PAGE, ScopeRules("qa", EnvKind.QA, (pattern,), TokenSource.STANDIN), proof)
    assert isinstance(granted, ScopeGrant)
    return granted


def _challenge() -> Challenge:
    return Challenge(CaptchaType.TURNSTILE, "site-key", PAGE, action="login")


def test_what_it_makes_it_accepts_once_and_tells_in_order(stand_in: StandIn, verify: Callable[..., Any]) -> None:
    provider, challenge, deadline = StandInProvider(stand_in), _challenge(), Deadline(WAIT, what="the test")
    before = len(stand_in.calls())
    token = provider.poll(challenge, provider.submit(challenge, _grant(), deadline), deadline).text
    first = verify(token).json()
    number = stand_in.mark("row written")
    second = verify(token).json()
    assert (first["success"], first["action"], second["error-codes"]) == (True, "login", ["timeout-or-duplicate"])
    told = [(it["accepted"], it["mark"], it["session"]) for it in stand_in.calls()[before:]]
    assert told == [(True, "", stand_in.session), (None, "row written", ""), (False, "", stand_in.session)]
    assert [it["order"] for it in stand_in.calls(number)] == [number + 1]


@pytest.mark.parametrize(
    ("outcome", "trouble"),
    [
        ({"delay": 5}, requests.Timeout),
        ({"body": "reset"}, requests.ConnectionError),
        ({"body": "redirect"}, requests.TooManyRedirects),
        ({"body": "truncated"}, requests.JSONDecodeError),
    ],
)
def test_a_backend_meets_the_trouble_that_is_scripted(
    stand_in: StandIn, verify: Callable[..., Any], outcome: dict[str, Any], trouble: type[Exception]
) -> None:
    issued = stand_in.issue(_challenge(), _grant(), outcome=outcome)
    with pytest.raises(trouble):
        verify(issued.solution.text).json()
    told = stand_in.end()
    assert told["calls"] >= 1
    assert verify(issued.solution.text).json()["error-codes"] == ["invalid-input-response"]


def test_its_certificate_holds_for_a_day(running: StandInAddresses) -> None:
    parts = urlsplit(running.vendor_https)
    pem = ssl.get_server_certificate((str(parts.hostname), int(str(parts.port))), timeout=WAIT)
    leaf = x509.load_pem_x509_certificate(pem.encode())
    assert 0 < leaf.not_valid_after_utc.timestamp() - time.time() <= 24 * 3600
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(running.vendor_https, timeout=WAIT)


def test_it_ends_by_itself_and_warns_of_a_backend_that_asked() -> None:
    command = [sys.executable, "-m", "pytest_captcha_qa.sandbox.alone", "--json", "--lasts", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            at = StandInAddresses(**json.loads(process.stdout.readline()))
            requests.post(at.vendor + PATH, data={"secret": "s", "response": "x"}, timeout=WAIT)
            _, said = process.communicate(timeout=WAIT)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "WARNING: a backend asks this stand-in: 1 calls" in said
    assert "Point it back at its vendor" in said
