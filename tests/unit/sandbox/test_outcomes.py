"""The stand-in's own endpoints, and what a scripted token gets at each vendor."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import standin
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.desk import KeyRing
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.issuing import with_admin
from pytest_captcha_qa.sandbox.outcomes import AGAIN, NOTICE
from pytest_captcha_qa.sandbox.scripted import LEASE, Book
from pytest_captcha_qa.sandbox.standin import StandIn
from pytest_captcha_qa.sandbox.types import ISSUED

SECRET = "the team's own secret"
PAGE = "https://staging.shop.example/signup"
GOOGLE, CLOUDFLARE, HCAPTCHA = "/recaptcha/api/siteverify", "/turnstile/v0/siteverify", "/siteverify"
ASSESSMENTS = "/v1/projects/shop/assessments"
JSON = {"content-type": "application/json"}
Issue = Callable[..., dict[str, Any]]


@pytest.fixture
def book(world: Any) -> Book:
    return Book(world.registry, world.clock)


@pytest.fixture
def product(world: Any, book: Book, make_client: Any, impostors: Impostors) -> Any:
    """A stand-in as `captcha-qa standin` serves it, in memory."""
    ring = KeyRing(learns=True, plays_test_secrets=False)
    vendors = standin.build_app(StandIn(world.registry, world.audit, world.faults.vendor, ring))
    return make_client(with_admin(vendors, book, impostors))


@pytest.fixture
def issue(product: Any) -> Issue:
    def issue(type_: str = "turnstile", **wish: Any) -> dict[str, Any]:
        wanted = {"type": type_, "sitekey": f"{type_}-key", "session": "run-1", "page": PAGE, **wish}
        reply = product.post_json("/standin/tokens", wanted)
        assert reply.status == 201, reply.text
        told: dict[str, Any] = reply.json()
        return told

    return issue


def ask(product: Any, path: str, token: dict[str, Any], secret: str = SECRET) -> Any:
    """Ask the vendor at `path` about a token, as a backend does."""
    return _ASKED.get(path, _siteverify)(product, path, token, secret)


def _siteverify(product: Any, path: str, token: dict[str, Any], secret: str) -> Any:
    return product.post(path, {"secret": secret, "response": token["token"]})


def _assess(product: Any, path: str, token: dict[str, Any], secret: str) -> Any:
    event = {"token": token["token"], "siteKey": "recaptcha_enterprise-key"}
    return product.call("POST", path, params={"key": secret}, body=json.dumps({"event": event}).encode(), headers=JSON)


def _friendly(product: Any, path: str, token: dict[str, Any], secret: str) -> Any:
    body = json.dumps({"response": token["token"]}).encode()
    return product.call("POST", path, body=body, headers={**JSON, "x-api-key": secret})


def _geetest_v3(product: Any, path: str, token: dict[str, Any], secret: str) -> Any:
    parts = token["parts"]
    call = {"seccode": parts["seccode"], "challenge": parts["challenge"], "captchaid": "geetest_v3-key"}
    return product.post(path, {**call, "json_format": "1"})


def _validate(product: Any, path: str, token: dict[str, Any], secret: str) -> Any:
    if not token["parts"]:
        return product.post(path, {"secret": secret, "token": token["token"], "ip": "192.0.2.7"})
    return product.post(path, {**token["parts"], "sign_token": "0" * 64})


_ASKED = {
    ASSESSMENTS: _assess,
    "/api/v2/captcha/siteverify": _friendly,
    "/validate.php": _geetest_v3,
    "/validate": _validate,
}
VENDORS = [
    (GOOGLE, "recaptcha_v2"),
    (GOOGLE, "recaptcha_v2_invisible"),
    (GOOGLE, "recaptcha_v3"),
    (ASSESSMENTS, "recaptcha_enterprise"),
    (CLOUDFLARE, "turnstile"),
    (HCAPTCHA, "hcaptcha"),
    ("/api/v2/captcha/siteverify", "friendly_v2"),
    ("/validate.php", "geetest_v3"),
    ("/validate", "geetest_v4"),
    ("/validate", "yandex"),
]


def calls(product: Any, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = product.get("/standin/calls", params).json()["calls"]
    return found


class TestEveryVendor:
    @pytest.mark.parametrize(("path", "type_"), VENDORS)
    def test_takes_an_issued_token_once(self, product: Any, issue: Issue, path: str, type_: str) -> None:
        token = issue(type_, challenge="a-challenge")
        ask(product, path, token)
        ask(product, path, token)
        assert [(call["accepted"], call["token"], call["issued"]) for call in calls(product)] == [
            (True, token["id"], True),
            (False, token["id"], True),
        ]

    @pytest.mark.parametrize(("path", "type_"), VENDORS)
    def test_refuses_a_token_that_is_too_old(self, product: Any, issue: Issue, path: str, type_: str) -> None:
        ask(product, path, issue(type_, challenge="a-challenge", age=ISSUED[type_].lifetime + 1))
        assert [call["accepted"] for call in calls(product)] == [False]

    @pytest.mark.parametrize(("path", "type_"), VENDORS)
    def test_refuses_what_a_script_says(self, product: Any, issue: Issue, path: str, type_: str) -> None:
        ask(product, path, issue(type_, challenge="a-challenge", outcome={"code": "made-up-code"}))
        assert [(call["accepted"], call["scripted"]) for call in calls(product)] == [(False, True)]

    @pytest.mark.parametrize(("path", "type_"), VENDORS)
    def test_refuses_what_was_not_issued(self, product: Any, issue: Issue, path: str, type_: str) -> None:
        token = issue(type_, challenge="a-challenge")
        strange = token["token"][::-1]
        parts = {name: value.replace(token["token"], strange) for name, value in token["parts"].items()}
        ask(product, path, {"token": strange, "parts": parts})
        assert [(call["accepted"], call["issued"]) for call in calls(product)] == [(False, False)]


class TestOutcomes:
    @pytest.mark.parametrize(
        ("outcome", "expected"),
        [
            ({"score": 0.1}, {"success": True, "score": 0.1, "action": "signup"}),
            ({"action": "login"}, {"action": "login", "score": 0.9}),
            ({"hostname": "evil.example"}, {"success": True, "hostname": "evil.example"}),
            ({"code": "browser-error"}, {"success": False, "error-codes": ["browser-error"]}),
            ({"values": {"success": "false"}}, {"success": "false"}),
            ({"values": {"score": None, "deep.er": 1}}, {"score": None, "deep": {"er": 1}}),
        ],
    )
    def test_members_are_changed(
        self, product: Any, issue: Issue, outcome: dict[str, Any], expected: dict[str, Any]
    ) -> None:
        reply = ask(product, GOOGLE, issue("recaptcha_v3", action="signup", outcome=outcome))
        assert (reply.status, expected.items() <= reply.json().items()) == (200, True)

    def test_members_are_left_out(self, product: Any, issue: Issue) -> None:
        token = issue("recaptcha_v3", outcome={"code": "", "without": ["success", "no.such"]})
        assert ask(product, GOOGLE, token).json() == {}

    def test_score_and_action_of_an_assessment_stand_deeper(self, product: Any, issue: Issue) -> None:
        token = issue("recaptcha_enterprise", outcome={"score": 0.2, "action": "x", "hostname": "h.example"})
        reply = ask(product, ASSESSMENTS, token).json()
        assert reply["riskAnalysis"]["score"] == 0.2
        assert (reply["tokenProperties"]["action"], reply["tokenProperties"]["hostname"]) == ("x", "h.example")

    @pytest.mark.parametrize(
        ("body", "status", "text"),
        [("html", 503, "stand by"), ("empty", 200, ""), ("null", 200, "null"), ("list", 200, "[]")],
    )
    def test_something_else_than_an_object_arrives(
        self, product: Any, issue: Issue, body: str, status: int, text: str
    ) -> None:
        reply = ask(product, CLOUDFLARE, issue(outcome={"body": body, "status": status}))
        assert (reply.status, text in reply.text) == (status, True)

    def test_half_an_answer_is_no_json(self, product: Any, issue: Issue) -> None:
        with pytest.raises(ValueError, match=r"delimiter|Expecting|Unterminated"):
            ask(product, CLOUDFLARE, issue(outcome={"body": "truncated"})).json()

    def test_a_server_error_may_carry_a_success(self, product: Any, issue: Issue) -> None:
        reply = ask(product, CLOUDFLARE, issue(outcome={"status": 500}))
        assert (reply.status, reply.json()["success"]) == (500, True)

    def test_a_redirect_leads_to_itself_or_to_a_page(self, product: Any, issue: Issue) -> None:
        replies = [ask(product, CLOUDFLARE, issue(outcome={"body": body})) for body in ("redirect", "redirect_html")]
        assert [(reply.status, reply.header("location")) for reply in replies] == [(302, AGAIN), (302, NOTICE)]
        assert product.get(AGAIN).header("location") == AGAIN
        assert "stand by" in product.get(NOTICE).text

    def test_an_answer_that_is_no_json_uses_no_token_up(self, product: Any, issue: Issue) -> None:
        token = issue(outcome={"body": "html"})
        ask(product, CLOUDFLARE, token)
        assert product.call("PATCH", f"/standin/tokens/{token['id']}", body=b'{"outcome": {}}').json()["used"] is False
        assert ask(product, CLOUDFLARE, token).json()["success"] is True

    @pytest.mark.parametrize(
        ("outcome", "reason"),
        [
            ([], "an outcome is an object"),
            ({"colour": "red"}, "there is no 'colour' here"),
            ({"status": 204}, "status 204 cannot carry an answer"),
            ({"delay": 121}, "'delay' is at most 120 seconds"),
            ({"body": "xml"}, "'body' is one of"),
            ({"values": []}, "'values' is an object"),
            ({"without": "success"}, "'without' is a list"),
        ],
    )
    def test_a_wrong_script_is_refused_and_makes_no_token(
        self, product: Any, book: Book, outcome: Any, reason: str
    ) -> None:
        wish = {"type": "turnstile", "sitekey": "k", "session": "s", "outcome": outcome}
        reply = product.post_json("/standin/tokens", wish)
        assert (reply.status, reason in reply.json()["error"], book.sessions) == (400, True, {})


class TestTokens:
    @pytest.mark.parametrize(
        ("wish", "reason"),
        [
            ({"type": "image"}, "'type' is one of"),
            ({"sitekey": ""}, "'sitekey' and 'session' are needed"),
            ({"session": ""}, "'sitekey' and 'session' are needed"),
            ({"cdata": "x" * 3000}, "no text is over 2048 characters"),
            ({"page": f"{PAGE}?mail=a@example.com"}, "without its query"),
            ({"lease": 601}, "'lease' is at most 600 seconds"),
            ({"age": -1}, "'age' cannot be -1"),
        ],
    )
    def test_a_wish_no_vendor_fulfils_is_refused(self, product: Any, wish: dict[str, Any], reason: str) -> None:
        reply = product.post_json("/standin/tokens", {"type": "turnstile", "sitekey": "k", "session": "s", **wish})
        assert (reply.status, reason in reply.json()["error"]) == (400, True)

    def test_a_token_is_shown_by_its_id_until_its_session_ends(self, product: Any, issue: Issue) -> None:
        token = issue("geetest_v4")
        shown = product.get(f"/standin/tokens/{token['id']}").json()
        assert (shown["token"], shown["parts"], token["id"]) == (
            token["token"], token["parts"], fingerprint(token["token"]),
        )  # fmt: skip
        assert product.call("DELETE", "/standin/sessions/run-1").status == 200
        assert product.get(f"/standin/tokens/{token['id']}").status == 404

    def test_a_token_can_be_made_older(self, product: Any, issue: Issue) -> None:
        token = issue()
        body = json.dumps({"age": 301}).encode()
        assert product.call("PATCH", f"/standin/tokens/{token['id']}", body=body).json()["expires_in"] == -1
        assert ask(product, CLOUDFLARE, token).json()["error-codes"] == ["timeout-or-duplicate"]

    def test_a_token_that_the_sandbox_has_solved_can_be_scripted_by_its_text(self, world: Any, product: Any) -> None:
        text = world.issue("turnstile", "turnstile-key")
        change = {"session": "run-1", "token": text, "outcome": {"code": "internal-error"}}
        assert product.call("PATCH", "/standin/tokens", body=json.dumps(change).encode()).status == 200
        assert ask(product, CLOUDFLARE, {"token": text}).json()["error-codes"] == ["internal-error"]

    @pytest.mark.parametrize("change", [{"session": "s", "token": "03A-of-somebody-else"}, {"session": "s"}])
    def test_no_other_token_can_be_scripted(self, product: Any, change: dict[str, str]) -> None:
        assert product.call("PATCH", "/standin/tokens", body=json.dumps(change).encode()).status in (400, 404)

    def test_a_retry_with_the_same_idempotency_key_succeeds_again(self, product: Any, issue: Issue) -> None:
        call = {"secret": SECRET, "response": issue()["token"], "idempotency_key": "a"}
        answers = [product.post(CLOUDFLARE, {**call, "idempotency_key": key}).json() for key in "aab"]
        assert [answer["success"] for answer in answers] == [True, True, False]


class TestSessions:
    def test_a_run_that_was_killed_leaves_no_script_and_no_token(
        self, product: Any, issue: Issue, world: Any, book: Book
    ) -> None:
        token = issue(outcome={"status": 500})
        world.clock.advance(LEASE)
        assert ask(product, CLOUDFLARE, token).json()["error-codes"] == ["invalid-input-response"]
        assert book.sessions == {}

    def test_a_session_that_is_heard_of_stays(self, product: Any, issue: Issue, world: Any) -> None:
        token = issue(outcome={"score": 0.1})
        for _ in range(3):
            world.clock.advance(LEASE - 1)
            assert product.get("/standin/calls", {"session": "run-1"}).status == 200
        assert product.get(f"/standin/tokens/{token['id']}").status == 200

    def test_the_end_of_one_leaves_the_other(self, product: Any, issue: Issue) -> None:
        other = issue(session="run-2")
        issue()
        product.call("DELETE", "/standin/sessions/run-1")
        assert ask(product, CLOUDFLARE, other).json()["success"] is True

    def test_the_end_says_who_still_asks(self, product: Any, issue: Issue, world: Any) -> None:
        ask(product, CLOUDFLARE, issue())
        world.clock.advance(5)
        told = product.call("DELETE", "/standin/sessions/run-1").json()
        assert told == {"calls": 1, "last_call_ago": 5, "secrets": {fingerprint(SECRET): 1}}


class TestKeys:
    def test_a_secret_verifies_the_sitekey_it_has_verified_first(self, product: Any, issue: Issue) -> None:
        own, other = issue(), issue(sitekey="another-key")
        assert ask(product, CLOUDFLARE, own).json()["success"] is True
        assert ask(product, CLOUDFLARE, other).json()["error-codes"] == ["invalid-input-response"]
        assert ask(product, CLOUDFLARE, other, "another secret").json()["success"] is True

    def test_a_secret_of_hcaptcha_is_of_an_account(self, product: Any, issue: Issue) -> None:
        tokens = [issue("hcaptcha", sitekey=sitekey) for sitekey in ("one", "two")]
        assert [ask(product, HCAPTCHA, token).json()["success"] for token in tokens] == [True, True]

    def test_an_official_test_secret_is_a_secret_like_any_other(self, product: Any) -> None:
        secret = "1x0000000000000000000000000000000AA"
        reply = product.post(CLOUDFLARE, {"secret": secret, "response": "XXXX.DUMMY.TOKEN.XXXX"})
        assert reply.json()["error-codes"] == ["invalid-input-response"]


class TestLog:
    def test_it_tells_a_call_without_token_secret_or_address(self, product: Any, issue: Issue) -> None:
        token = issue()
        call = {"secret": SECRET, "response": token["token"], "remoteip": "203.0.113.9", "canary": "1"}
        product.post(CLOUDFLARE, call)
        (entry,) = calls(product)
        assert (entry["vendor"], entry["encoding"], entry["method"]) == ("turnstile", "form", "POST")
        assert (entry["names"], entry["unknown"], entry["repeated"]) == ([*call], ["canary"], False)
        assert (entry["secret"], entry["remote_ip"], entry["status"]) == (fingerprint(SECRET), "other", 200)
        assert not any(text in json.dumps(entry) for text in (SECRET, token["token"], "203.0.113.9"))

    def test_a_documentation_address_is_told(self, product: Any, issue: Issue) -> None:
        ask(product, "/validate", issue("yandex"))
        assert [call["remote_ip"] for call in calls(product)] == ["192.0.2.7"]

    def test_marks_and_calls_stand_in_their_order(self, product: Any, issue: Issue) -> None:
        first, second = issue(), issue(session="run-2")
        ask(product, CLOUDFLARE, first)
        assert product.post_json("/standin/marks", {"mark": "row written"}).json() == {"order": 2}
        ask(product, CLOUDFLARE, second)
        assert [(it["order"], it["mark"]) for it in calls(product)] == [(1, ""), (2, "row written"), (3, "")]
        assert [it["order"] for it in calls(product, after=2)] == [3]
        assert [it["order"] for it in calls(product, session="run-1")] == [1, 2]

    def test_a_repeated_name_is_told_and_google_refuses_it(self, product: Any, issue: Issue) -> None:
        text = issue("recaptcha_v2")["token"]
        product.post(GOOGLE, [("secret", SECRET), ("response", text), ("response", "x")])
        (entry,) = calls(product)
        assert (entry["repeated"], entry["names"], entry["accepted"]) == (
            True,
            ["secret", "response", "response"],
            False,
        )

    @pytest.mark.parametrize("body", [b"{", b"[1]", b'{"event": 1}', b"\xff"])
    def test_a_call_that_cannot_be_read_is_logged(self, product: Any, body: bytes) -> None:
        for path, _ in VENDORS:
            product.call("POST", path, body=body, headers=JSON)
        assert [call["accepted"] for call in calls(product)] == [False] * len(VENDORS)


class TestGuards:
    def test_no_page_in_a_browser_turns_its_switches(self, product: Any) -> None:
        assert product.call("GET", "/standin", headers={"origin": "https://evil.example"}).status == 403

    @pytest.mark.parametrize("path", ["/standin", "/standin/calls", "/standin/tokens/x", "/standin/nothing"])
    def test_with_an_admin_key_nothing_is_told_without_it(
        self, world: Any, book: Book, make_client: Any, impostors: Impostors, path: str
    ) -> None:
        vendors = standin.build_app(world.standin)
        client = make_client(with_admin(vendors, book, impostors, key="k" * 32))
        assert client.get(path).status == 401
        assert client.call("GET", path, headers={"authorization": "Bearer " + "x" * 32}).status == 401
        assert client.call("GET", path, headers={"authorization": "Bearer " + "k" * 32}).status in (200, 404)

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/standin/tokens", b"{"),
            ("POST", "/standin/tokens", b"[]"),
            ("POST", "/standin/marks", b"{}"),
            ("PATCH", "/standin/tokens/x", b'{"colour": 1}'),
            ("GET", "/standin/calls?", b""),
        ],
    )
    def test_a_message_it_cannot_use_is_a_400_with_a_reason(
        self, product: Any, method: str, path: str, body: bytes
    ) -> None:
        reply = product.call(method, path.rstrip("?"), body=body, params={"after": "x"} if method == "GET" else None)
        assert (reply.status, bool(reply.json()["error"])) == (400, True)
