"""The team's steps before a page and its look at an effect, with a site that only remembers what it was asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from pytest_captcha_qa.engine.ports import EffectQuestion
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import ConfirmSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import FakeGrants, form
from pytest_captcha_qa.transport import NO_PAYLOAD, Payload, Reply
from pytest_captcha_qa.wiring.flows import Effects, PreparingDriver
from pytest_captcha_qa.wiring.site import CaptchaEnv, HttpSession, Site

SITE = "http://127.0.0.1:9"
PAGE = b"""<form method="post"><div class="cf-turnstile" data-sitekey="0x4AAAAAAATESTKEY"></div></form>"""
ME = Identity.make("run")


@dataclass
class OnePage:
    """Stands in for HttpClient: answers everything with a page that has a form."""

    asked: list[str] = field(default_factory=list)
    sent: list[Payload] = field(default_factory=list)

    def request(self, method: str, url: Url, *, payload: Payload = NO_PAYLOAD, **_: Any) -> Reply:
        self.asked.append(f"{method} {url.target}")
        self.sent.append(payload)
        return Reply(200, url, {"Content-Type": "text/html"}, PAGE)


@pytest.fixture
def site(environment) -> Site:
    return Site(environment(), FakeGrants(), "run-1", "7.1")


@pytest.fixture
def team(monkeypatch):
    """`team(function)` makes it what `flows_of_the_team:step` names."""

    def name(function):
        module = ModuleType("flows_of_the_team")
        module.step = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "flows_of_the_team", module)

    return name


@pytest.fixture
def opened(site, team):
    """`opened(function)` opens a form with that `prepare` and returns its page and what the site was asked."""

    def open_it(function):
        team(function)
        client = OnePage()
        spec = form("login", CaptchaType.TURNSTILE, prepare="flows_of_the_team:step")
        driver = PreparingDriver(site, lambda: client)  # type: ignore[arg-type]
        page = driver.open(spec, Url.parse(f"{SITE}/login"), site.grants, Deadline(9, what="it"), ME).page
        return page.target, client.asked

    return open_it


@pytest.mark.parametrize(
    ("returned", "page"),
    [
        (None, "/login"),
        ("/checkout?step=2", "/checkout?step=2"),
        (f"{SITE}/pay", "/pay"),
        (Answer(200, Url.parse(f"{SITE}/cart")), "/cart"),
        (Answer(302, Url.parse(f"{SITE}/cart"), Url.parse(f"{SITE}/login2")), "/login2"),
    ],
    ids=["nothing", "path", "URL", "answer", "redirect"],
)
def test_the_page_is_the_one_that_the_steps_lead_to(opened, returned, page):
    assert opened(lambda http, env, identity: returned) == (page, [f"GET {page}"])


def test_the_steps_and_the_page_are_asked_in_one_session(opened):
    def steps(http: HttpSession, env: CaptchaEnv, identity: Identity) -> None:
        assert (env.name, env.run_id, env.release, identity) == ("staging", "run-1", "7.1", ME)
        assert repr(http) == "<HttpSession of staging>"
        http.post("/cart", json={"email": identity.email})

    assert opened(steps) == ("/login", ["POST /cart", "GET /login"])


@pytest.fixture
def session(site) -> HttpSession:
    return HttpSession(site, OnePage())  # type: ignore[arg-type]


def test_a_session_changes_things_as_a_page_of_the_site_does(session):
    session.post("/first", data={"a": "b"})
    session.get("/login?next=/", headers={"Accept-Language": "ru"})
    session.put("/it", json={"a": 1}, headers={"X-XSRF-TOKEN": "t", "Authorization": "Bearer t"})
    session.patch("/it", data={"a": "b"})
    session.delete("/it")

    assert session.client.asked == ["POST /first", "GET /login?next=/", "PUT /it", "PATCH /it", "DELETE /it"]
    first, page, put, patch, delete = session.client.sent
    assert (first.body, first.headers["Referer"], first.headers["Origin"]) == (b"a=b", f"{SITE}/", SITE)
    assert page.headers == {"Accept-Language": "ru"}
    assert (put.body, put.headers["X-XSRF-TOKEN"], put.headers["Authorization"]) == (b'{"a": 1}', "t", "Bearer t")
    assert [one.headers["Referer"] for one in (put, patch, delete)] == [f"{SITE}/login?next=/"] * 3
    assert (patch.body, delete.body) == (b"a=b", None)


@pytest.mark.parametrize("name", ["User-Agent", "cookie", "X-Captcha-QA-Run", "Host", "two words"])
def test_a_session_sends_no_header_that_is_the_clients(session, name):
    with pytest.raises(ConfigError, match=rf"cannot send the header '{name}': it (cannot|must) be"):
        session.get("/", headers={name: "x"})
    assert session.client.asked == []


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (7, "returned int; it returns the page's path or URL"),
        ("//user@elsewhere.example/", "cannot ask for this address"),
    ],
)
def test_steps_that_lead_nowhere_are_told(opened, returned, words):
    with pytest.raises(ConfigError, match=words):
        opened(lambda *_: returned)


@pytest.mark.parametrize(("shows", "lacking"), [(True, None), (0, "flows_of_the_team:step does not see it")])
def test_a_function_says_whether_the_effect_is_there(site, team, shows, lacking):
    team(lambda http, env, identity: shows)
    spec = form("login", confirm=ConfirmSpec(function="flows_of_the_team:step"))
    question = EffectQuestion(spec, Url.parse(f"{SITE}/login"), ME, {})
    effects = Effects(site, OnePage)  # type: ignore[arg-type]

    assert effects.lacking(question, Deadline(9, what="it")) == lacking


def test_an_answer_is_no_effect(site, team):
    team(lambda http, env, identity: Answer(500, Url.parse(f"{SITE}/mail")))
    spec = form("login", confirm=ConfirmSpec(function="flows_of_the_team:step"))
    question = EffectQuestion(spec, Url.parse(f"{SITE}/login"), ME, {})

    with pytest.raises(ConfigError, match="returned an answer of the site, which says nothing about the effect"):
        Effects(site, OnePage).lacking(question, Deadline(9, what="it"))  # type: ignore[arg-type]


def test_without_a_function_the_address_is_asked(site):
    client = OnePage()
    spec = form("login", confirm=ConfirmSpec(url="/mail", success=Rule(text="cf-turnstile")))
    question = EffectQuestion(spec, Url.parse(f"{SITE}/login"), ME, {})

    assert Effects(site, lambda: client).lacking(question, Deadline(9, what="it")) is None  # type: ignore[arg-type]
    assert client.asked == ["GET /mail"]
