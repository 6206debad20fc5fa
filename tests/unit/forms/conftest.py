"""Fixture pages, and a site that answers as it is told without any socket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ScopeDenied, TransportError
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.scope import ScopeGrant, fake_grant
from pytest_captcha_qa.transport import NO_PAYLOAD, Payload, Reply

PAGES = Path(__file__).parents[3] / "fixtures" / "pages"


@dataclass(frozen=True)
class Asked:
    """One request that reached the site."""

    method: str
    url: str
    payload: Payload

    @property
    def body(self) -> str:
        return (self.payload.body or b"").decode("utf-8")


@dataclass
class ScriptedSite:
    """Stands in for HttpClient: answers by method and URL and remembers what it was asked."""

    answers: dict[str, Reply | TransportError] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    jar: dict[str, str] = field(default_factory=dict)

    def cookies(self, origin: Origin) -> dict[str, str]:
        return self.jar if origin == Origin.parse("https://shop.example") else {}

    def page(
        self,
        url: str,
        body: str | bytes,
        *,
        status: int = 200,
        content_type: str = "text/html",
        **headers: str,
    ) -> None:
        data = body if isinstance(body, bytes) else body.encode()
        told = {"Content-Type": content_type, **{name.title(): value for name, value in headers.items()}}
        self.answers[f"GET {url}"] = Reply(status, Url.parse(url), told, data)

    def redirect(self, url: str, location: str, *, status: int = 302, method: str = "GET") -> None:
        self.answers[f"{method} {url}"] = Reply(status, Url.parse(url), {"Location": location})

    def takes(self, url: str, text: str = "", *, status: int = 200) -> None:
        self.answers[f"POST {url}"] = Reply(status, Url.parse(url), {"Content-Type": "text/html"}, text.encode())

    def fails(self, what: str, *, kind: str = "refused", sent: bool = False) -> None:
        self.answers[what] = TransportError(f"{what}: no answer", kind=kind, sent=sent)

    def request(
        self,
        method: str,
        url: Url,
        *,
        deadline: Deadline,
        grant: ScopeGrant,
        limit: int = 0,
        payload: Payload = NO_PAYLOAD,
    ) -> Reply:
        assert grant.covers(url)
        self.asked.append(Asked(method, str(url), payload))
        answer = self.answers[f"{method} {url}"]
        if isinstance(answer, TransportError):
            raise answer
        return answer


@dataclass
class GrantsFor:
    """Grants these origins only, and remembers what was asked for."""

    origins: frozenset[Origin]
    asked: list[str] = field(default_factory=list)

    def grant(self, url: Url) -> ScopeGrant:
        self.asked.append(str(url))
        if url.origin not in self.origins:
            raise ScopeDenied(f"{url.origin} is not among the origins", reason="origin_not_listed")
        return fake_grant(url.origin)


@pytest.fixture
def html() -> Callable[[str], str]:
    """Return the text of a fixture page."""
    return lambda name: (PAGES / f"{name}.html").read_text("utf-8")


@pytest.fixture
def raw() -> Callable[[str], bytes]:
    """Return the bytes of a fixture page."""
    return lambda name: (PAGES / f"{name}.html").read_bytes()


@pytest.fixture
def spec() -> Callable[..., FormSpec]:
    """Return a form's configuration."""

    def make(kind: CaptchaType = CaptchaType.TURNSTILE, **more: object) -> FormSpec:
        values = {"success": Rule(status=(303,)), **more}
        return FormSpec(slug="signup", path="/signup", type=kind, **values)  # type: ignore[arg-type]

    return make


@pytest.fixture
def site() -> ScriptedSite:
    return ScriptedSite()


@pytest.fixture
def grants() -> GrantsFor:
    return GrantsFor(frozenset({Origin.parse("https://shop.example")}))


@pytest.fixture
def deadline() -> Deadline:
    return Deadline(30, what="the test")
