"""A client that answers as it is told, without any socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import ScopeDenied, TransportError
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, FormSpec, VerifySpec
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import ScopeGrant, fake_grant
from pytest_captcha_qa.transport import NO_PAYLOAD, Payload, Reply

PAGE = Url.parse("https://shop.example/signup")


@dataclass
class ScriptedClient:
    """Stands in for HttpClient: gives its answers one after the other, the last one for ever."""

    answers: list[tuple[int, str] | TransportError] = field(default_factory=list)
    asked: list[tuple[str, str, ScopeGrant | None, Payload]] = field(default_factory=list)

    def will(self, *answers: object, status: int = 200) -> None:
        for answer in answers:
            text = answer if isinstance(answer, str) else json.dumps(answer)
            self.answers.append((status, text))

    def request(
        self,
        method: str,
        url: Url,
        *,
        deadline: Deadline,
        grant: ScopeGrant | None,
        limit: int = 0,
        payload: Payload = NO_PAYLOAD,
    ) -> Reply:
        self.asked.append((method, str(url), grant, payload))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, TransportError):
            raise answer
        return Reply(answer[0], url, {"Content-Type": "application/json"}, answer[1].encode())

    @property
    def body(self) -> str:
        return (self.asked[-1][3].body or b"").decode()


class ShopGrants:
    """Grants the shop's origin only, and remembers for which addresses it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def grant(self, url: Url) -> ScopeGrant:
        self.asked.append(str(url))
        if url.origin != PAGE.origin:
            raise ScopeDenied(f"{url.origin} is not among the origins", reason="origin_not_listed")
        return fake_grant(url.origin)


class CountingStop(Stop):
    """Counts waits in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.check()


@pytest.fixture
def client() -> ScriptedClient:
    return ScriptedClient()


@pytest.fixture
def stop() -> CountingStop:
    return CountingStop()


@pytest.fixture
def grants() -> ShopGrants:
    return ShopGrants()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline(30, what="the test")


@pytest.fixture
def spec() -> Callable[..., FormSpec]:
    """Return a form's configuration; `verify` takes the keywords of VerifySpec."""

    def make(
        kind: CaptchaType = CaptchaType.TURNSTILE, verify: dict[str, object] | None = None, **more: object
    ) -> FormSpec:
        how = VerifySpec(**(verify or {}))  # type: ignore[arg-type]
        return FormSpec("signup", "/signup", kind, Rule(status=(303,)), verify=how, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def challenge() -> Callable[..., Challenge]:
    """Return what a page showed."""

    def make(kind: CaptchaType = CaptchaType.TURNSTILE, **more: object) -> Challenge:
        return Challenge(kind, "site-key-1", PAGE, **more)  # type: ignore[arg-type]

    return make
