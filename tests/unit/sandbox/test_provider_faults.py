"""Faults of the solving service: which calls they strike, and what becomes of tasks."""

from __future__ import annotations

import email.utils
import time
from functools import partial
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.faults import Faulty
from pytest_captcha_qa.sandbox.provider_api import build_app, describe

SITEKEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
OTHER_KEY = "b" * 32


@pytest.fixture
def service(world: Any, make_client: Any) -> Any:
    """The service behind its faults, as it is served."""
    return make_client(Faulty(build_app(world.provider), world.faults.provider, partial(describe, world.provider)))


@pytest.fixture
def submit(service: Any, key: str, page: str) -> Any:
    def submit(**changes: str) -> Any:
        fields = {"key": key, "pageurl": page, "json": "1", "method": "turnstile", "sitekey": SITEKEY, **changes}
        return service.post("/in.php", fields)

    return submit


@pytest.fixture
def poll(service: Any, key: str) -> Any:
    def poll(task_id: str, **changes: str) -> Any:
        return service.get("/res.php", {"key": key, "action": "get", "id": task_id, "json": "1", **changes})

    return poll


@pytest.fixture
def fault(world: Any) -> Any:
    def fault(kind: str, **data: Any) -> None:
        world.faults.load({"provider": [{"kind": kind, **data}]})

    return fault


def test_a_fault_of_one_key_does_not_strike_another(fault: Any, submit: Any, key: str) -> None:
    fault("status", status=502, key=OTHER_KEY)
    assert (submit().status, submit(key=OTHER_KEY).status) == (200, 502)


def test_a_fault_of_one_task_does_not_strike_another(fault: Any, submit: Any, poll: Any) -> None:
    first, second = (submit().json()["request"] for _ in range(2))
    fault("empty", task=second)
    assert [bool(poll(task_id).body) for task_id in (first, second)] == [True, False]


def test_a_fault_of_one_type_strikes_its_submits_and_polls(fault: Any, submit: Any, poll: Any) -> None:
    task_id = submit().json()["request"]
    fault("html200", type="turnstile")
    assert [b"<html>" in reply.body for reply in (submit(), poll(task_id))] == [True, True]
    assert submit(method="userrecaptcha", googlekey=SITEKEY).json()["status"] == 1


def test_a_fault_of_one_form_strikes_the_transport_too(fault: Any, submit: Any) -> None:
    fault("empty", form="login")
    assert [bool(submit(pageurl=f"http://127.0.0.1/{form}").body) for form in ("login", "signup")] == [False, True]


def test_an_unreadable_body_is_struck_like_any_other(fault: Any, service: Any) -> None:
    fault("status", status=503)
    assert service.call("POST", "/in.php", body=b"{", headers={"content-type": "application/json"}).status == 503


def test_a_fault_of_one_action_leaves_the_others_alone(fault: Any, poll: Any) -> None:
    fault("status", status=502, action="get")
    assert (poll("1").status, poll("1", action="threadsinfo").status) == (502, 200)


def test_a_fault_has_its_period(world: Any, fault: Any, submit: Any) -> None:
    fault("status", status=502, after=10, lasts=5)
    seen = []
    for _ in range(4):
        seen.append(submit().status)
        world.clock.advance(7)
    assert seen == [200, 200, 502, 200]


def test_a_fault_can_spare_the_first_calls(fault: Any, submit: Any) -> None:
    fault("status", status=502, skip=1, count=1)
    assert [submit().status for _ in range(3)] == [200, 502, 200]


def test_429_asks_for_a_pause_in_seconds_or_until_a_date_or_not_at_all(fault: Any, submit: Any) -> None:
    fault("status", status=429, retry_after=7)
    assert submit().header("retry-after") == "7"
    fault("status", status=429, retry_after=7, as_date=True)
    moment = email.utils.parsedate_to_datetime(submit().header("retry-after"))
    assert abs(moment.timestamp() - time.time() - 7) < 3
    fault("status", status=429)
    assert submit().header("retry-after") is None


@pytest.mark.parametrize("as_text", [True, False])
def test_a_code_can_come_as_text_though_json_was_asked_for(fault: Any, submit: Any, as_text: bool) -> None:
    fault("error", code="ERROR_UPLOAD", as_text=as_text)
    assert submit().body.startswith(b"{") is not as_text


def test_a_lost_id_belongs_to_no_task(world: Any, fault: Any, submit: Any, poll: Any) -> None:
    fault("lost_id", count=1)
    answer = submit().json()
    assert answer["status"] == 1
    assert poll(answer["request"]).json()["request"] == "ERROR_WRONG_CAPTCHA_ID"
    assert world.audit.provider.total.submits == 0


def test_a_duplicate_gets_the_token_of_the_task_before(world: Any, fault: Any, submit: Any, poll: Any) -> None:
    fault("duplicate")
    first, second = (submit().json()["request"] for _ in range(2))
    world.clock.advance(1000)
    assert poll(first).json() == poll(second).json()


def test_the_token_of_another_task_is_bound_to_another_site(
    world: Any, fault: Any, submit: Any, poll: Any, page: str
) -> None:
    fault("other_task")
    task_id = submit().json()["request"]
    world.clock.advance(1000)
    binding = world.registry.find(poll(task_id).json()["request"]).binding
    assert (binding.type, binding.sitekey != SITEKEY, binding.page != page) == ("turnstile", True, True)


def test_a_token_can_end_with_any_text_and_is_good_all_the_same(world: Any, fault: Any, submit: Any, poll: Any) -> None:
    fault("ending", text="|ERROR")
    task_id = submit().json()["request"]
    world.clock.advance(60)
    token = poll(task_id).json()["request"]
    assert token.endswith("|ERROR")
    assert world.registry.redeem(token, types=("turnstile",)).text == token


def test_a_late_reset_comes_after_the_task_was_taken(world: Any, key: str, page: str, make_client: Any) -> None:
    class Transport:
        aborted = False

        def get_extra_info(self, name: str) -> Any:
            return self

        def setsockopt(self, *option: Any) -> None:
            pass

        def abort(self) -> None:
            self.aborted = True

    transport = Transport()
    faulty = Faulty(build_app(world.provider), world.faults.provider, partial(describe, world.provider))

    async def with_transport(scope: Any, receive: Any, send: Any) -> None:
        await faulty({**scope, "state": {"transport": transport}}, receive, send)

    world.faults.load({"provider": [{"kind": "reset", "late": True}]})
    fields = {"key": key, "pageurl": page, "method": "turnstile", "sitekey": SITEKEY}
    assert make_client(with_transport).post("/in.php", fields).status == 0
    assert transport.aborted
    assert world.audit.provider.total.submits == 1
