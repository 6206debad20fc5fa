"""The provider client against the sandbox's own service, which shares no code with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import ProviderUnavailable, RequestRejected, TaskUnknown
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import SANDBOX
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
