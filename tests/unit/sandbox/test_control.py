from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from pytest_captcha_qa.sandbox import control
from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.arrivals import Arrivals
from pytest_captcha_qa.sandbox.control import Control


@pytest.fixture
def proofs() -> dict[str, str]:
    return {}


@pytest.fixture
def operator(world: Any, make_client: Any, proofs: dict[str, str]) -> Any:
    return make_client(control.build_app(Control(world.audit, world.faults, world.provider.keys, proofs)))


def test_a_fresh_sandbox_has_counted_nothing(operator: Any) -> None:
    counts = operator.get("/").json()
    assert counts["provider"] == {
        "submits": 0,
        "polls": 0,
        "reads": 0,
        "reports_good": 0,
        "reports_bad": 0,
        "by_key": {},
        "tasks": {},
        "codes": {},
    }
    assert counts["vendor"]["calls"] == 0
    assert counts["site"]["posts_by_token"] == {}


def test_the_requests_that_reached_the_site_are_told_one_by_one(make_client: Any, world: Any) -> None:
    arrivals = Arrivals(clock=lambda: 7.0)
    site = make_client(arrivals.seen_by(PlainTextResponse("seen")))
    site.get("/lab/m01")
    site.post_json("/lab/m01", {"email": "ann@example.com"})
    told = make_client(control.build_app(Control(world.audit, world.faults, {}, {}, arrivals)))
    (first, second) = told.get("/requests").json()["requests"]
    assert (first["order"], first["method"], first["path"], first["size"]) == (1, "GET", "/lab/m01", 0)
    assert (second["at"], second["email"], second["size"] > 0) == (7.0, "ann@example.com", True)
    assert told.get("/requests", {"after": "1"}).json() == {"requests": [second], "last": 2}
    assert told.get("/requests", {"after": "x"}).status == 400


def test_one_message_sets_faults_accounts_and_proofs(
    world: Any, operator: Any, proofs: dict[str, str], key: str
) -> None:
    message = {
        "faults": {
            "provider": [{"kind": "error", "code": "MAX_USER_TURN"}],
            "site": [{"kind": "delay", "seconds": 1}],
        },
        "keys": {key: {"balance": 0, "threads": 5}},
        "proofs": {"team": "text"},
    }
    assert operator.post_json("/control", message).status == 200
    assert (len(world.faults.provider.faults), len(world.faults.site.faults)) == (1, 1)
    assert world.provider.keys == {key: KeyState(balance=0, threads=5)}
    assert proofs == {"team": "text"}


@pytest.mark.parametrize(
    "message",
    [
        [],
        {"fault": {}},
        {"keys": []},
        {"keys": {"k": []}},
        {"keys": {"k": {"balance": "1"}}},
        {"keys": {"k": {"threads": 1.5}}},
        {"keys": {"k": {"money": 1}}},
        {"proofs": {"p": 1}},
        {"proofs": {"p": "x"}, "faults": {"site": [{"kind": "nonsense"}]}},
    ],
)
def test_a_wrong_message_is_refused_with_its_reason_and_changes_nothing(
    world: Any, operator: Any, proofs: dict[str, str], message: Any
) -> None:
    reply = operator.post_json("/control", message)
    assert reply.status == 400
    assert reply.json()["error"]
    assert (world.provider.keys, proofs) == ({}, {})


def test_a_body_that_is_no_json_is_refused(operator: Any) -> None:
    assert operator.post("/control", {"a": "b"}).status == 400


def test_reset_clears_counts_faults_and_accounts_but_not_proofs(
    world: Any, operator: Any, proofs: dict[str, str], provider: Any, key: str
) -> None:
    message = {"faults": {"site": [{"kind": "empty"}]}, "keys": {key: {"balance": 0}}, "proofs": {"p": "x"}}
    operator.post_json("/control", message)
    provider.get("/in.php", {"key": key})
    assert operator.get("/").json()["provider"]["codes"] == {"ERROR_BAD_PARAMETERS": 1}
    assert operator.post("/reset").status == 200
    assert operator.get("/").json()["provider"]["codes"] == {}
    assert not world.faults.site.faults
    assert (world.provider.keys, proofs) == ({}, {"p": "x"})


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/control"), ("POST", "/reset")])
def test_no_page_in_a_browser_may_call(operator: Any, method: str, path: str) -> None:
    assert operator.call(method, path, headers={"origin": "https://evil.example"}).status == 403
