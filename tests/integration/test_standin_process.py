"""The stand-in as it is used: a process of its own, over http and https, asked by a backend and by a project."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from cryptography import x509

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.standin import StandIn
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.sandbox import alone, hosting
from pytest_captcha_qa.sandbox.alone import StandInAddresses, StandInProcess
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource, check
from pytest_captcha_qa.transport import HttpClient

PAGE = Url.parse("http://127.0.0.1:8000/signup")
ALONE = [sys.executable, "-m", "pytest_captcha_qa.sandbox.alone", "--json"]
PATH = "/turnstile/v0/siteverify"
WAIT = 10.0
CARELESS = """
import ssl, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())
"""


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
        ({"certificate": "other_host"}, requests.exceptions.SSLError),
        ({"certificate": "expired"}, requests.exceptions.SSLError),
        ({"certificate": "untrusted"}, requests.exceptions.SSLError),
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


def test_who_looks_at_no_certificate_reads_a_success_behind_a_bad_one(
    running: StandInAddresses, stand_in: StandIn, verify: Callable[..., Any]
) -> None:
    before = stand_in.mark("nobody has come yet")
    text = stand_in.issue(_challenge(), _grant(), outcome={"certificate": "other_host"}).solution.text
    call = {"secret": "s", "response": text}
    told = requests.post(running.vendor + PATH, data=call, timeout=WAIT, allow_redirects=False)
    careless = subprocess.run(
        [sys.executable, "-c", CARELESS, told.headers["location"]], capture_output=True, text=True, timeout=WAIT
    )
    assert json.loads(careless.stdout)["success"] is True, careless.stderr
    with pytest.raises(requests.exceptions.SSLError, match="match"):
        requests.get(told.headers["location"], timeout=WAIT, verify=running.ca_file)
    marks = [it["mark"] for it in stand_in.calls(before) if it["mark"]]
    assert marks == ["a client came to the server whose certificate is bad: other_host"] * 2  # who goes away again, too


def test_its_certificate_holds_for_a_day(running: StandInAddresses) -> None:
    parts = urlsplit(running.vendor_https)
    pem = ssl.get_server_certificate((str(parts.hostname), int(str(parts.port))), timeout=WAIT)
    served, ca = x509.load_pem_x509_certificate(pem.encode()), Path(running.ca_file).read_bytes()
    for certificate in (served, x509.load_pem_x509_certificate(ca)):
        assert 0 < certificate.not_valid_after_utc.timestamp() - time.time() <= 24 * 3600
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc <= timedelta(hours=24)
    assert b"PRIVATE" not in ca
    assert [file.name for file in Path(running.ca_file).parent.iterdir()] == ["ca.pem"]
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(running.vendor_https, timeout=WAIT)


KILLED = """
import os, pathlib, signal

def test_scripted(captcha_form, captcha_standin):
    token = captcha_standin.token(captcha_form("login"), code="internal-error")
    pathlib.Path("token.txt").write_text(token)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_has_scripted_ends_with_its_lease(
    staging: Callable[..., Any], prove: Callable[..., dict[str, str]]
) -> None:
    project = staging({"test_killed.py": KILLED})
    path = project.folder / "captcha-qa.toml"
    path.write_text(path.read_text().replace('"sandbox"', '"standin"').replace("time_scale = 0.02\n", ""))
    with StandInProcess() as process:
        at = StandInAddresses(**json.loads(process.launch("it", [*ALONE, "--lease", "1"])))
        killed = project.run("--captcha-env=staging", env={"PROVIDER_URL": at.vendor, **prove()})
        assert killed.code == -signal.SIGKILL
        call = {"secret": "s", "response": (project.folder / "token.txt").read_text()}
        assert requests.post(at.vendor + PATH, data=call, timeout=WAIT).json()["error-codes"] == ["internal-error"]
        assert len(requests.get(f"{at.vendor}/standin", timeout=WAIT).json()["sessions"]) == 1
        within, stop = Deadline(WAIT, what="the lease"), Stop()
        while requests.get(f"{at.vendor}/standin", timeout=WAIT).json()["sessions"]:
            stop.wait(within.cap(0.2))
        told = requests.post(at.vendor + PATH, data=call, timeout=WAIT).json()
        assert told["error-codes"] == ["invalid-input-response"]


def test_others_reach_it_by_tls_under_its_names_and_with_the_key_only() -> None:
    address, key = _own_address(), "0123456789abcdef" * 2
    command = [sys.executable, "-m", "pytest_captcha_qa.cli.main", "standin", "--json"]
    environ = {**os.environ, "CAPTCHA_QA_STANDIN_KEY": key}
    with StandInProcess() as process:
        listening = ["--listen", address, "--host", "standin.example"]
        at = StandInAddresses(**json.loads(process.launch("it", [*command, *listening], env=environ)))
        https, plain = urlsplit(at.vendor_https), urlsplit(at.vendor)
        assert (https.hostname, plain.hostname, at.key_needed) == ("standin.example", "127.0.0.1", True)
        with pytest.raises(ConnectionRefusedError), socket.create_connection((address, int(str(plain.port))), WAIT):
            raise AssertionError("plain http is for this machine only")
        with requests.Session() as client:
            client.verify, client.trust_env = at.ca_file, False
            own = f"https://{address}:{https.port}/standin"
            answers = [
                client.get(own, headers=headers, timeout=WAIT).status_code
                for headers in ({}, {"Authorization": "Bearer " + "f" * 32}, {"Authorization": f"Bearer {key}"})
            ]
            assert answers == [401, 401, 200]
            assert client.get(own, headers={"Host": "evil.example"}, timeout=WAIT).status_code == 421
            named = {"Host": "standin.example", "Authorization": f"Bearer {key}"}
            assert client.get(own, headers=named, timeout=WAIT).status_code == 200


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent; it only chooses a route
        except OSError:
            pytest.skip("this machine has no address besides loopback")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has no address besides loopback")
    return address


def test_it_serves_for_eight_hours_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    async def served(places: list[hosting.Place], announce: Callable[[], None], *, lasts: float) -> None:
        told.append(lasts)
        for _, bound, _ in places:
            bound.close()

    monkeypatch.setattr(hosting, "serve_all", served)
    for lasts in (alone.LONGEST, 1e9, 60):
        alone.serve(lasts=lasts)
    assert told == [8 * 3600, 8 * 3600, 60]


def test_it_ends_by_itself_and_warns_of_a_backend_that_asked() -> None:
    command = [*ALONE, "--lasts", "1"]
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
