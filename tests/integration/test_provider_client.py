"""The provider client against the sandbox's own service, which shares no code with it."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator

import pytest
import requests

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import ProviderNotRunning, ProviderUnavailable, RequestRejected, TaskUnknown
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import CAPSKIP, SANDBOX
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from pytest_captcha_qa.scope import OriginPattern, ScopeGrant, ScopeRules, TokenSource, check
from pytest_captcha_qa.transport import HttpClient

KEY = "a" * 32
SCALE = 0.01


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as process:
        yield process.start(time_scale=SCALE, seed=1)


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient()
    yield client
    client.close()


@pytest.fixture
def provider(sandbox: SandboxAddresses, client: HttpClient) -> HttpProvider:
    return HttpProvider(
        SANDBOX, key=KEY, client=client, base_url=Url.parse(sandbox.provider), time_scale=sandbox.time_scale
    )


def _deadline() -> Deadline:
    return Deadline(10, what="the test")


def _grant(page: Url) -> ScopeGrant:
    rules = ScopeRules("demo", EnvKind.DEMO, (OriginPattern(page.origin),), TokenSource.SANDBOX)
    granted = check(page, rules, None)
    assert isinstance(granted, ScopeGrant)
    return granted


def _challenge(sandbox: SandboxAddresses, kind: CaptchaType, path: str, client: HttpClient) -> Challenge:
    page = Url.parse(sandbox.site + path)
    html = client.request("GET", page, deadline=_deadline(), grant=_grant(page)).text
    key = re.search(r'data-sitekey="([^"]+)|render=([^"&]+)|data-gt="([^"]+)', html)
    assert key is not None
    once = re.search(r'challenge: "([^"]+)', html)
    data = {"challenge": once[1]} if once else {}
    return Challenge(kind, next(filter(None, key.groups())), page, action="contact", data=data)


def _solve(provider: HttpProvider, challenge: Challenge) -> Solution:
    deadline, stop = _deadline(), Stop()
    task_id = provider.submit(challenge, _grant(challenge.page), deadline)
    while (solution := provider.poll(challenge, task_id, deadline)) is None:
        stop.wait(deadline.cap(provider.polling(challenge).interval))
    return solution


@pytest.mark.parametrize(
    ("kind", "path", "parts"),
    [
        (CaptchaType.RECAPTCHA_V2, "/recaptcha-v2", {"token"}),
        (CaptchaType.RECAPTCHA_V2_INVISIBLE, "/recaptcha-v2", {"token"}),
        (CaptchaType.RECAPTCHA_V3, "/recaptcha-v3", {"token"}),
        (CaptchaType.TURNSTILE, "/turnstile", {"token"}),
        (CaptchaType.GEETEST_V3, "/geetest-v3", {"challenge", "validate", "seccode"}),
    ],
)
def test_every_type_of_the_sandbox_is_solved(
    sandbox: SandboxAddresses,
    provider: HttpProvider,
    client: HttpClient,
    kind: CaptchaType,
    path: str,
    parts: set[str],
) -> None:
    solution = _solve(provider, _challenge(sandbox, kind, path, client))

    assert set(solution.parts) == parts
    assert all(solution.parts.values())


def test_balance_and_threads_of_an_account_are_told(provider: HttpProvider) -> None:
    threads = provider.threads(_deadline())

    assert provider.balance(_deadline()) == 10.0
    assert threads is not None
    assert threads.threads == 100


def test_an_unknown_task_is_told_from_one_that_is_not_ready(sandbox: SandboxAddresses, provider: HttpProvider) -> None:
    challenge = Challenge(CaptchaType.RECAPTCHA_V2, "site-key-of-nothing", Url.parse(sandbox.site + "/recaptcha-v2"))

    with pytest.raises(TaskUnknown):
        provider.poll(challenge, "1", _deadline())


def test_a_malformed_sitekey_is_rejected_for_good(sandbox: SandboxAddresses, provider: HttpProvider) -> None:
    challenge = Challenge(CaptchaType.RECAPTCHA_V2, "bad", Url.parse(sandbox.site + "/recaptcha-v2"))

    with pytest.raises(RequestRejected, match="ERROR_GOOGLEKEY"):
        provider.submit(challenge, _grant(challenge.page), _deadline())


def test_a_service_that_is_not_running_took_nothing(client: HttpClient) -> None:
    page = Url.parse("http://127.0.0.1:1/signup")
    provider = HttpProvider(SANDBOX, key=KEY, client=client, base_url=Url.parse("http://127.0.0.1:1"))

    with pytest.raises(ProviderUnavailable, match="refused") as caught:
        provider.submit(Challenge(CaptchaType.RECAPTCHA_V2, "key", page), _grant(page), _deadline())

    assert not caught.value.sent
    assert caught.value.__context__ is None


def test_a_capskip_that_does_not_run_is_told_without_its_key_also_by_the_libraries_below(
    client: HttpClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Its results are asked for with the key in the URL, which is in the message of every error of `requests`."""
    key = "any-key-of-capskip-is-a-secret"
    provider = HttpProvider(CAPSKIP, key=key, client=client, base_url=Url.parse("http://127.0.0.1:1"))
    challenge = Challenge(CaptchaType.RECAPTCHA_V2, "key", Url.parse("http://127.0.0.1:1/signup"))

    with caplog.at_level(logging.DEBUG), pytest.raises(ProviderNotRunning) as caught:
        provider.poll(challenge, "77", _deadline())

    shown = "".join(traceback.format_exception(caught.value, chain=True)) + caplog.text + repr(caught.value)
    assert "capskip is not running at http://127.0.0.1:1" in shown
    assert key not in shown


@pytest.mark.parametrize("kind", [requests.ConnectionError, requests.Timeout, requests.exceptions.InvalidURL])
def test_no_error_of_the_library_below_shows_the_key(
    client: HttpClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[requests.RequestException],
) -> None:
    key = "any-key-of-capskip-is-a-secret"

    def fails(adapter: object, request: requests.PreparedRequest, **kwargs: object) -> None:
        assert key in str(request.url)
        logging.getLogger("urllib3.connectionpool").debug("starting %s", request.url)
        raise kind(f"Max retries exceeded with url: {request.url}", request=request)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", fails)
    provider = HttpProvider(CAPSKIP, key=key, client=client, base_url=Url.parse("http://127.0.0.1:1"))
    challenge = Challenge(CaptchaType.RECAPTCHA_V2, "key", Url.parse("http://127.0.0.1:1/signup"))

    with caplog.at_level(logging.DEBUG), pytest.raises(ProviderUnavailable) as caught:
        provider.poll(challenge, "77", _deadline())

    assert key not in "".join(traceback.format_exception(caught.value, chain=True)) + caplog.text
    assert caught.value.__cause__ is caught.value.__context__ is None
