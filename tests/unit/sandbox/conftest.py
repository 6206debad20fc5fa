from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp, Message

from pytest_captcha_qa.sandbox import provider_api, standin
from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.faults import Faults
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.provider_api import Provider
from pytest_captcha_qa.sandbox.standin import StandIn
from pytest_captcha_qa.sandbox.tokens import TokenRegistry
from pytest_captcha_qa.sandbox.work import Work

KEY = "a" * 32
PAGE = "http://127.0.0.1:8000/recaptcha-v2"


@dataclass
class Reply:
    """What an ASGI application answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass
class Client:
    """Calls an ASGI application in memory and keeps its cookies."""

    app: ASGIApp
    cookie: str = ""
    host: str = "127.0.0.1:8000"

    def get(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Reply:
        return self.call("GET", path, params=params, **options)

    def post(self, path: str, data: Mapping[str, Any] | Sequence[tuple[str, str]] = (), **options: Any) -> Reply:
        form = {"content-type": "application/x-www-form-urlencoded"}
        return self.call("POST", path, body=urlencode(data).encode(), headers=form, **options)

    def post_json(self, path: str, value: Any) -> Reply:
        return self.call("POST", path, body=json.dumps(value).encode(), headers={"content-type": "application/json"})

    def call(self, method: str, path: str, **options: Any) -> Reply:
        reply = asyncio.run(self.acall(method, path, **options))
        cookie = reply.header("set-cookie")
        if cookie:
            self.cookie = cookie.partition(";")[0]
        return reply

    async def acall(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        sent = {"host": self.host, **(headers or {})}
        if self.cookie:
            sent["cookie"] = self.cookie
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": urlencode(params or {}).encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
        }
        return await _call(self.app, scope, body)


async def _call(app: ASGIApp, scope: dict[str, Any], body: bytes) -> Reply:
    incoming: list[Message] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": body, "more_body": False},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0] if sent else {"status": 0, "headers": []}
    headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
    return Reply(start["status"], headers, b"".join(message.get("body", b"") for message in sent))


@dataclass
class ManualClock:
    """A monotonic clock that stands still until a test moves it."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class World:
    """Everything the servers share, on a manual clock."""

    clock: ManualClock = field(default_factory=ManualClock)
    audit: Audit = field(default_factory=Audit)
    faults: Faults = field(init=False)

    def __post_init__(self) -> None:
        self.faults = Faults.none(Random(1), self.clock)
        self.registry = TokenRegistry(self.clock, Random(1))
        self.work = Work(self.registry, self.audit, Random(1), self.clock)
        self.provider = Provider(self.work, self.audit, self.faults.provider)
        self.standin = StandIn(self.registry, self.audit, self.faults.vendor)

    def issue(self, type_: str, sitekey: str, **binding: str) -> str:
        """Return the text of a fresh token."""
        return self.registry.issue(Binding(type_, sitekey, **{"page": PAGE, **binding})).text


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def provider(world: World) -> Client:
    return Client(provider_api.build_app(world.provider))


@pytest.fixture
def vendor(world: World) -> Client:
    return Client(standin.build_app(world.standin))


@pytest.fixture
def make_client() -> type[Client]:
    return Client


@pytest.fixture
def impostors() -> Impostors:
    """Servers with bad certificates, of which none is ever started."""

    async def none(*_: object) -> None:
        raise AssertionError("no unit test asks for a certificate")

    return Impostors(dict, none, str)


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def page() -> str:
    return PAGE
