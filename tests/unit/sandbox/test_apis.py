from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import keys

FRIENDLY = "/api/v2/captcha/siteverify"
ASSESSMENTS = "/v1/projects/my-project/assessments"


@pytest.fixture
def friendly(world: Any, vendor: Any) -> Any:
    def ask(token: str, key: str | None = keys.FRIENDLY_V2.secret, **changes: str) -> Any:
        headers = {"content-type": "application/x-www-form-urlencoded"} | ({"x-api-key": key} if key else {})
        body = "&".join(f"{name}={value}" for name, value in {"response": token, **changes}.items())
        reply = vendor.call("POST", FRIENDLY, body=body.encode(), headers=headers)
        return reply.status, reply.json()

    return ask


def test_friendly_answers_as_it_documents(world: Any, friendly: Any) -> None:
    token = world.issue("friendly_v2", keys.FRIENDLY_V2.sitekey)
    late = world.issue("friendly_v2", keys.FRIENDLY_V2.sitekey)
    status, reply = friendly(token, sitekey=keys.FRIENDLY_V2.sitekey)
    assert (status, reply["success"]) == (200, True)
    assert reply["data"]["challenge"]["origin"] == "http://127.0.0.1:8000"
    assert friendly(token)[1]["error"]["error_code"] == "response_duplicate"
    world.clock.advance(61)
    assert friendly(late)[1]["error"]["error_code"] == "response_timeout"


@pytest.mark.parametrize(
    ("token", "key", "status", "code"),
    [
        ("x", None, 401, "auth_required"),
        ("x", keys.RETIRED_SECRET, 401, "auth_invalid"),
        ("", keys.FRIENDLY_V2.secret, 400, "response_missing"),
        ("AQQA.made-up", keys.FRIENDLY_V2.secret, 200, "response_invalid"),
    ],
)
def test_friendly_refuses_by_status_and_code(
    friendly: Any, token: str, key: str | None, status: int, code: str
) -> None:
    found, reply = friendly(token, key)
    assert (found, reply["success"], reply["error"]["error_code"]) == (status, False, code)


def test_friendly_cannot_read_a_broken_body(vendor: Any) -> None:
    headers = {"content-type": "application/json", "x-api-key": keys.FRIENDLY_V2.secret}
    reply = vendor.call("POST", FRIENDLY, body=b"{", headers=headers)
    assert (reply.status, reply.json()["error"]["error_code"]) == (400, "bad_request")


@pytest.fixture
def assess(vendor: Any) -> Any:
    def ask(token: object, sitekey: str = keys.RECAPTCHA_ENTERPRISE.sitekey, path: str = f"{ASSESSMENTS}?key=k") -> Any:
        path, _, query = path.partition("?")
        body = {"event": {"token": token, "siteKey": sitekey, "expectedAction": "transfer"}}
        params = dict(part.split("=") for part in query.split("&")) if query else {}
        return vendor.call(
            "POST",
            path,
            params=params,
            body=json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )

    return ask


def test_an_assessment_names_action_host_and_score_and_judges_a_token_once(world: Any, assess: Any) -> None:
    token = world.issue("recaptcha_enterprise", keys.RECAPTCHA_ENTERPRISE.sitekey, action="transfer")
    reply = assess(token).json()
    assert reply["tokenProperties"] | {"createTime": None} == {
        "valid": True,
        "invalidReason": "INVALID_REASON_UNSPECIFIED",
        "action": "transfer",
        "hostname": "127.0.0.1",
        "createTime": None,
    }
    assert (reply["riskAnalysis"]["score"], reply["event"]["expectedAction"]) == (0.9, "transfer")
    assert assess(token).json()["tokenProperties"] == {"valid": False, "invalidReason": "DUPE"}


@pytest.mark.parametrize(
    ("token", "reason"), [("", "MISSING"), (None, "MISSING"), (["x"], "MISSING"), ("made-up", "MALFORMED")]
)
def test_a_bad_token_is_an_assessment_too(assess: Any, token: object, reason: str) -> None:
    reply = assess(token)
    assert (reply.status, reply.json()["tokenProperties"]) == (200, {"valid": False, "invalidReason": reason})


def test_a_token_of_another_key_and_a_late_one_are_invalid(world: Any, assess: Any) -> None:
    token = world.issue("recaptcha_enterprise", keys.RECAPTCHA_ENTERPRISE.sitekey)
    assert assess(token, "another-sitekey").json()["tokenProperties"]["valid"] is False
    world.clock.advance(121)
    assert assess(token).json()["tokenProperties"]["invalidReason"] == "EXPIRED"


@pytest.mark.parametrize("path", [ASSESSMENTS, f"{ASSESSMENTS}?key={keys.RETIRED_SECRET}"])
def test_an_assessment_needs_a_key(assess: Any, path: str) -> None:
    reply = assess("x", path=path)
    assert (reply.status, reply.json()["error"]["status"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"event": []}', b'{"event": {"siteKey": 1}}'])
def test_an_assessment_of_nothing_is_an_invalid_argument(vendor: Any, body: bytes) -> None:
    headers = {"content-type": "application/json", "x-goog-api-key": "k"}
    reply = vendor.call("POST", ASSESSMENTS, body=body, headers=headers)
    assert (reply.status, reply.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_no_secret_of_a_vendor_stands_in_the_audit(world: Any, friendly: Any) -> None:
    friendly("x")
    assert world.audit.vendor.calls == 1
    assert not [pair for pair in keys.PAIRS if pair.secret in str(world.audit.snapshot())]
