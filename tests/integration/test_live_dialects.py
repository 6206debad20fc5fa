"""Our dialects of the three services against the sandbox's, which were written apart from them from the same facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults.puzzles import PUZZLES, is_marked
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import RequestRejected, TaskSilent, TaskUnknown
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import CAPSKIP, CAPTCHAAI, TWOCAPTCHA, Dialect
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource, check
from pytest_captcha_qa.transport import HttpClient

EVERY_DIALECT = pytest.mark.parametrize("dialect", [CAPTCHAAI, CAPSKIP, TWOCAPTCHA], ids=lambda dialect: dialect.name)
NewProvider = Callable[[Dialect], HttpProvider]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as process:
        yield process.start(time_scale=0.01, seed=5)


@pytest.fixture
def provider(sandbox: SandboxAddresses) -> Iterator[NewProvider]:
    """Make a client of a service that the sandbox plays: the beginning of the key says which."""
    client = HttpClient()

    def make(dialect: Dialect) -> HttpProvider:
        key = f"{dialect.name}-our-dialect".ljust(32, "0")
        return HttpProvider(dialect, key=key, client=client, base_url=Url.parse(sandbox.provider), time_scale=0.01)

    yield make
    client.close()


def _deadline() -> Deadline:
    return Deadline(20, what="the test")


def _grant(page: Url) -> ScopeGrant:
    pattern = OriginPattern(page.origin)
    rules = ScopeRules("qa", EnvKind.QA, (pattern,), TokenSource.LIVE)
    proof = Evidence(page.origin, 0.0, (pattern,), EnvKind.QA, 1000.0)
    granted = check(page, rules, proof, monotonic=lambda: 0.0, utc=lambda: 0.0)
    assert isinstance(granted, ScopeGrant)
    return granted


def _challenge(sandbox: SandboxAddresses, kind: CaptchaType) -> Challenge:
    shown = {name: it if isinstance(it, str) else json.dumps(it) for name, it in PUZZLES[kind]().items()}
    sitekey = shown.pop("sitekey", "")
    return Challenge(kind, sitekey, Url.parse(f"{sandbox.site}/{kind}"), action="signup", data=shown)


def _solve(provider: HttpProvider, challenge: Challenge) -> tuple[str, Solution]:
    deadline, stop = _deadline(), Stop()
    task_id = provider.submit(challenge, _grant(challenge.page), deadline)
    while True:
        stop.wait(deadline.cap(0.05))
        try:
            solution = provider.poll(challenge, task_id, deadline)
        except TaskSilent:
            continue
        if solution is not None:
            return task_id, solution


@EVERY_DIALECT
def test_every_type_of_a_dialect_is_solved(dialect: Dialect, sandbox: SandboxAddresses, provider: NewProvider) -> None:
    here = provider(dialect)

    with ThreadPoolExecutor(len(dialect.types)) as pool:
        solved = list(pool.map(lambda kind: _solve(here, _challenge(sandbox, kind))[1], dialect.types))

    for kind, solution in zip(dialect.types, solved, strict=True):
        method = dialect.methods[kind]
        assert method is not None
        assert set(solution.parts) == set(method.parts), kind
        assert is_marked(list(solution.parts.values())), kind


def test_what_a_solver_tells_of_its_browser_comes_with_the_solution(
    sandbox: SandboxAddresses, provider: NewProvider
) -> None:
    told = {
        (dialect.name, kind): _solve(provider(dialect), _challenge(sandbox, kind))[1].user_agent is not None
        for dialect, kind in (
            (CAPSKIP, CaptchaType.TURNSTILE),
            (TWOCAPTCHA, CaptchaType.TURNSTILE),
            (CAPTCHAAI, CaptchaType.RECAPTCHA_ENTERPRISE),
        )
    }
    assert set(told.values()) == {True}


@EVERY_DIALECT
def test_a_task_that_is_not_known_is_told_as_each_service_does(
    dialect: Dialect, sandbox: SandboxAddresses, provider: NewProvider
) -> None:
    with pytest.raises(TaskSilent if dialect is CAPSKIP else TaskUnknown):
        provider(dialect).poll(_challenge(sandbox, CaptchaType.TURNSTILE), "1", _deadline())


def test_a_token_of_capskip_is_read_once(sandbox: SandboxAddresses, provider: NewProvider) -> None:
    challenge = _challenge(sandbox, CaptchaType.TURNSTILE)
    task_id, _ = _solve(provider(CAPSKIP), challenge)

    with pytest.raises(TaskSilent):
        provider(CAPSKIP).poll(challenge, task_id, _deadline())


@EVERY_DIALECT
def test_balance_threads_and_reports_are_as_each_service_has_them(
    dialect: Dialect, sandbox: SandboxAddresses, provider: NewProvider
) -> None:
    here = provider(dialect)
    task_id, _ = _solve(here, _challenge(sandbox, CaptchaType.TURNSTILE))

    assert (here.balance(_deadline()) is not None) == dialect.has_balance
    assert (here.threads(_deadline()) is not None) == dialect.has_threads
    if dialect is TWOCAPTCHA:
        assert here.report(task_id, good=True, deadline=_deadline())
        with pytest.raises(RequestRejected, match="ERROR_DUPLICATE_REPORT"):
            here.report(task_id, good=True, deadline=_deadline())
