from __future__ import annotations

import json
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from pytest_captcha_qa.engine.ports import PollTimes, Provider
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    KeyRejected,
    ProviderError,
    ProviderNotRunning,
    ProviderUnavailable,
    RequestRejected,
    ScopeDenied,
    TaskUnknown,
    TransportError,
)
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import SANDBOX
from pytest_captcha_qa.provider.standin import StandIn
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource, check, fake_grant
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Payload, Reply

WITHOUT_VENDOR = [kind for kind in CaptchaType if not facts(kind).has_vendor]
BASE = Url.parse("https://standin.shop.example:8443")
PAGE = Url.parse("https://staging.shop.example/signup?mail=hidden")
LOCAL_PAGE = Url.parse("http://127.0.0.1:8000/signup")
KEY = "an-admin-key-of-128-bits"
TURNSTILE = {"id": "0123456789abcdef", "token": "0.c4ptchaqaSANDBOXrest", "parts": {}, "used": False}


class ScriptedClient(HttpClient):
    """Answers each request with the next of its replies and remembers what was asked."""

    def __init__(self, *replies: tuple[int, object] | CaptchaQAError) -> None:
        super().__init__()
        self.sent: list[tuple[str, str, Any, dict[str, str]]] = []
        self._replies = list(replies)

    def request(self, method: str, url: Url, *, payload: Payload = NO_PAYLOAD, **options: Any) -> Reply:
        assert options["grant"] is None
        body = json.loads(payload.body) if payload.body else None
        self.sent.append((method, str(url), body, dict(payload.headers)))
        reply = self._replies.pop(0)
        if isinstance(reply, CaptchaQAError):
            raise reply
        text = reply[1] if isinstance(reply[1], str) else json.dumps(reply[1])
        return Reply(reply[0], url, CaseInsensitiveDict(), text.encode())


def _challenge(kind: CaptchaType = CaptchaType.TURNSTILE, page: Url = PAGE, **more: Any) -> Challenge:
    return Challenge(kind, "site-key", page, **more)


def _grant(page: Url = PAGE, source: TokenSource = TokenSource.STANDIN) -> ScopeGrant:
    pattern = OriginPattern(page.origin)
    rules = ScopeRules("qa", EnvKind.QA, (pattern,), source)
    proof = Evidence(page.origin, 0.0, (pattern,), EnvKind.QA, 1000.0)
    granted = check(page, rules, proof, monotonic=lambda: 0.0, utc=lambda: 0.0)
    assert isinstance(granted, ScopeGrant)
    return granted


def _stand_in(*replies: tuple[int, object] | CaptchaQAError, key: str = "") -> tuple[StandIn, ScriptedClient]:
    client = ScriptedClient(*replies)
    return StandIn(BASE, key=key, client=client, session="run-1"), client


def _deadline() -> Deadline:
    return Deadline(30, what="the test")


def test_a_token_is_made_for_what_the_granted_page_shows_and_no_more() -> None:
    stand_in, client = _stand_in((201, TURNSTILE), (200, TURNSTILE), key=KEY)
    provider: Provider = StandInProvider(stand_in)
    challenge = _challenge(action="login", cdata="c1")

    task_id = provider.submit(challenge, _grant(), _deadline())
    solution = provider.poll(challenge, task_id, _deadline())

    assert solution is not None
    assert (task_id, dict(solution.parts)) == (TURNSTILE["id"], {"token": TURNSTILE["token"]})
    (verb, url, wish, headers), (_, shown, nothing, _) = client.sent
    assert (verb, url) == ("POST", f"{BASE}standin/tokens")
    assert wish == {
        "type": "turnstile", "sitekey": "site-key", "page": "https://staging.shop.example/signup", "session": "run-1",
        "action": "login", "cdata": "c1", "challenge": "", "age": 0.0,
    }  # fmt: skip
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (shown, nothing) == (f"{BASE}standin/tokens/{task_id}", None)


def test_nothing_is_waited_for_paid_or_reported() -> None:
    provider = StandInProvider(_stand_in()[0])
    assert provider.polling(_challenge()) == PollTimes(0.0, 0.05)
    assert (provider.balance(_deadline()), provider.threads(_deadline())) == (None, None)
    assert provider.report("task", good=True, deadline=_deadline()) is False


@pytest.mark.parametrize(
    ("grant", "reason"),
    [
        (_grant(LOCAL_PAGE), "grant_mismatch"),
        (_grant(source=TokenSource.LIVE), "grant_other_source"),
        (_grant(LOCAL_PAGE, TokenSource.SANDBOX), "grant_other_source"),
        (fake_grant(PAGE.origin), "grant_other_source"),
        (None, "no_grant"),
    ],
)
def test_without_a_grant_for_its_own_tokens_nothing_is_sent(grant: Any, reason: str) -> None:
    stand_in, client = _stand_in()
    with pytest.raises(ScopeDenied) as denied:
        StandInProvider(stand_in).submit(_challenge(), grant, _deadline())
    assert (denied.value.reason, client.sent) == (reason, [])


def test_production_gets_no_marked_token_even_if_somebody_granted_it() -> None:
    stand_in, client = _stand_in()
    grant = _grant()
    object.__setattr__(grant, "kind", EnvKind.PRODUCTION)
    with pytest.raises(ScopeDenied, match=r"\(production\) is for standin tokens"):
        stand_in.issue(_challenge(), grant)
    assert client.sent == []


def test_the_vendor_of_a_sandbox_makes_tokens_for_this_machine_only() -> None:
    stand_in, client = _stand_in((201, TURNSTILE))
    issued = stand_in.issue(
        _challenge(page=LOCAL_PAGE), _grant(LOCAL_PAGE, TokenSource.SANDBOX), age=301, outcome={"score": 0.1}
    )
    assert (issued.id, issued.used) == (TURNSTILE["id"], False)
    assert (client.sent[0][2]["age"], client.sent[0][2]["outcome"]) == (301, {"score": 0.1})


@pytest.mark.parametrize("kind", WITHOUT_VENDOR)
def test_a_type_that_the_site_checks_itself_is_refused(kind: CaptchaType) -> None:
    provider = StandInProvider(_stand_in()[0])
    for call in (provider.supports, lambda it: provider.submit(it, _grant(), _deadline())):
        with pytest.raises(ConfigError, match=f"{kind} is checked by your own site"):
            call(_challenge(kind))


def test_the_stand_in_makes_all_other_types() -> None:
    assert {str(kind) for kind in WITHOUT_VENDOR} == {name for name, it in TYPES.items() if not it.has_vendor}
    assert all(SANDBOX.methods[kind] is not None for kind in CaptchaType)


def test_the_parts_of_a_geetest_answer_are_kept_apart() -> None:
    parts = {"challenge": "c", "validate": "5a9db0c4ca7a" + "0" * 20, "seccode": "s|jordan"}
    stand_in, client = _stand_in((201, {"id": "a" * 16, "token": parts["validate"], "parts": parts}))
    issued = stand_in.issue(_challenge(CaptchaType.GEETEST_V3, data={"challenge": "c"}), _grant())
    assert (dict(issued.solution.parts), client.sent[0][2]["challenge"]) == (parts, "c")


@pytest.mark.parametrize(
    ("reply", "error", "told"),
    [
        ((201, {**TURNSTILE, "token": "0.a-real-token"}), ProviderError, "without its mark"),
        ((201, {"id": "x"}), ProviderUnavailable, "without a token"),
        ((200, "<html>"), ProviderUnavailable, "HTTP 200, which is no answer of a stand-in"),
        ((503, {"error": "x"}), ProviderUnavailable, "HTTP 503"),
        ((404, {"error": "x"}), TaskUnknown, "its session has ended"),
        ((404, "nothing here"), ProviderUnavailable, "HTTP 404"),
        ((400, {"error": "no\x1b[31m such\nthing" + "x" * 500}), RequestRejected, "cannot use what it was sent: no"),
        ((401, "no"), KeyRejected, "api_key_env"),
        (TransportError("refused", kind="refused", sent=False), ProviderNotRunning, "captcha-qa standin"),
        (TransportError("broke off", kind="reset", sent=True), ProviderUnavailable, "broke off"),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_its_reason(reply: Any, error: type[CaptchaQAError], told: str) -> None:
    stand_in, _ = _stand_in(reply, key=KEY)
    with pytest.raises(error) as raised:
        stand_in.issue(_challenge(), _grant())
    assert told in raised.value.message
    assert KEY not in raised.value.message
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 400


@pytest.mark.parametrize("task_id", ["3397637370", "../calls", ""])
def test_a_task_of_somebody_else_is_unknown_without_being_asked_for(task_id: str) -> None:
    stand_in, client = _stand_in()
    with pytest.raises(TaskUnknown):
        StandInProvider(stand_in).poll(_challenge(), task_id, _deadline())
    assert client.sent == []


def test_script_log_and_end_are_one_call_each() -> None:
    entry, use = {"order": 3, "mark": ""}, {"calls": 4, "last_call_ago": 0.1, "secrets": {}}
    stand_in, client = _stand_in(
        *[(200, TURNSTILE)] * 2,
        *[(200, {"calls": [entry, 1], "last": 4})] * 2,
        (201, {"order": 4}),
        *[(200, use)] * 2,
    )
    stand_in.script_by_id("a" * 16, {"score": 0})
    stand_in.script("0.c4ptchaqaSANDBOXrest", {"status": 500}, age=2)
    assert stand_in.calls(own=True) == [entry]
    assert (stand_in.calls(after=2), stand_in.mark("row"), stand_in.use(), stand_in.end()) == ([entry], 4, use, use)
    assert [(verb, url.removeprefix(str(BASE)), body) for verb, url, body, _ in client.sent] == [
        ("PATCH", f"standin/tokens/{'a' * 16}", {"age": 0.0, "outcome": {"score": 0}}),
        (
            "PATCH",
            "standin/tokens",
            {"session": "run-1", "token": "0.c4ptchaqaSANDBOXrest", "age": 2, "outcome": {"status": 500}},
        ),
        ("GET", "standin/calls?after=0&session=run-1", None),
        ("GET", "standin/calls?after=2", None),
        ("POST", "standin/marks", {"mark": "row"}),
        ("GET", "standin", None),
        ("DELETE", "standin/sessions/run-1", None),
    ]


def test_plain_http_is_for_this_machine_only() -> None:
    with pytest.raises(ScopeDenied, match="use its https address"):
        StandIn(Url.parse("http://standin.shop.example:8080"), key=KEY)
    assert KEY not in repr(StandInProvider(StandIn(Url.parse("http://127.0.0.1:8080"), key=KEY)))


def test_every_client_is_a_session_of_its_own() -> None:
    assert StandIn(BASE).session != StandIn(BASE).session
