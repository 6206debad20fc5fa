from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from pytest_captcha_qa.sandbox.described import DescriptionProblem
from pytest_captcha_qa.sandbox.effects import KINDS, Delay, Drip, ErrorAnswer, NotReadyForever, ProviderAnswer, Status
from pytest_captcha_qa.sandbox.faults import Call, Fault, FaultPlan, Faults, Faulty

CALL = Call("/res.php", "GET", form="login")


def plan(*data: dict[str, Any]) -> FaultPlan:
    faults = FaultPlan(Random(1), answers=ProviderAnswer, of_a_call=("form", "key", "action", "task", "type"))
    faults.faults = faults.parse(list(data))
    return faults


@pytest.mark.parametrize(
    ("limit", "strikes"),
    [
        ({}, True),
        ({"path": "/res.php"}, True),
        ({"path": "/in.php"}, False),
        ({"method": "GET"}, True),
        ({"method": "POST"}, False),
        ({"form": "login"}, True),
        ({"form": "login", "path": "/in.php"}, False),
        ({"share": 0}, False),
        ({"share": 1}, True),
        ({"count": 0}, False),
    ],
)
def test_a_fault_strikes_the_calls_it_is_limited_to(limit: dict[str, Any], strikes: bool) -> None:
    assert bool(plan({"kind": "empty", **limit}).effects_on(CALL)) is strikes


def test_a_count_runs_out() -> None:
    faults = plan({"kind": "empty", "count": 2})
    assert [bool(faults.effects_on(CALL)) for _ in range(3)] == [True, True, False]


def test_a_call_that_is_not_meant_does_not_use_the_count_up() -> None:
    faults = plan({"kind": "empty", "count": 1, "path": "/res.php"})
    assert not faults.effects_on(Call("/in.php", "GET"))
    assert faults.effects_on(CALL)


def test_a_share_strikes_about_that_part() -> None:
    faults = plan({"kind": "empty", "share": 0.25})
    struck = sum(bool(faults.effects_on(CALL)) for _ in range(2000))
    assert 400 < struck < 600


def test_faults_apply_in_order_up_to_the_first_that_ends_the_call() -> None:
    faults = plan(
        {"kind": "delay", "seconds": 1},
        {"kind": "status", "status": 502, "count": 1},
        {"kind": "drip", "seconds": 0.5},
        {"kind": "status", "status": 503, "count": 1},
    )
    assert faults.effects_on(CALL) == [Delay(1), Status(502)]
    assert faults.effects_on(CALL) == [Delay(1), Drip(0.5), Status(503)]
    assert faults.effects_on(CALL) == [Delay(1), Drip(0.5)]


def test_transport_faults_and_answers_are_drawn_apart() -> None:
    faults = plan({"kind": "error", "code": "ERROR_X"}, {"kind": "not_ready_forever"}, {"kind": "empty"})
    assert faults.error_for(CALL) == ErrorAnswer("ERROR_X")
    assert faults.fate_of(CALL) == NotReadyForever()
    assert len(faults.effects_on(CALL)) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("empty", "a kind"),
        ({}, "a kind"),
        ({"kind": "earthquake"}, "a kind"),
        ({"kind": ["empty"]}, "a kind"),
        ({"kind": "delay"}, "'seconds' is needed"),
        ({"kind": "delay", "seconds": -1}, "'seconds' cannot be"),
        ({"kind": "delay", "seconds": True}, "'seconds' cannot be"),
        ({"kind": "delay", "seconds": float("inf")}, "'seconds' cannot be"),
        ({"kind": "delay", "seconds": float("nan")}, "'seconds' cannot be"),
        ({"kind": "delay", "seconds": 1e9}, "'seconds' is at most"),
        ({"kind": "status", "status": 204}, "cannot carry a page"),
        ({"kind": "status", "status": 42}, "cannot carry a page"),
        ({"kind": "status", "status": "502"}, "'status' cannot be"),
        ({"kind": "empty", "colour": "red"}, "no 'colour'"),
        ({"kind": "empty", "count": 1.5}, "'count' cannot be"),
        ({"kind": "empty", "path": 1}, "'path' cannot be"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(data: Any, reason: str) -> None:
    with pytest.raises(DescriptionProblem, match=reason):
        Fault.from_data(data)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"moon": []},
        {"site": {}},
        {"site": [{"kind": "unsolvable"}]},
        {"vendor": [{"kind": "error", "code": "X"}]},
        {"provider": [{"kind": "refuse"}]},
        {"vendor": [{"kind": "sitekey", "sitekey": "other"}]},
        {"site": [{"kind": "score", "score": 0.1}]},
        {"site": [{"kind": "slow", "factor": 3}]},
        {"vendor": [{"kind": "empty", "form": "login"}]},
        {"site": [{"kind": "empty", "key": "k"}]},
    ],
)
def test_a_fault_must_fit_its_server(data: Any) -> None:
    with pytest.raises(DescriptionProblem):
        Faults.none(Random(1)).load(data)


def test_a_message_with_one_bad_fault_changes_nothing() -> None:
    faults = Faults.none(Random(1))
    faults.load({"site": [{"kind": "empty"}]})
    with pytest.raises(DescriptionProblem):
        faults.load({"site": [], "vendor": [{"kind": "x"}]})
    assert len(faults.site.faults) == 1


def test_loading_replaces_the_faults_of_the_servers_that_are_named() -> None:
    faults = Faults.none(Random(1))
    faults.load({"site": [{"kind": "empty"}], "vendor": [{"kind": "empty"}]})
    faults.load({"site": []})
    assert (len(faults.site.faults), len(faults.vendor.faults)) == (0, 1)
    faults.clear()
    assert not faults.vendor.faults


@pytest.fixture
def struck(make_client: Any) -> Any:
    def struck(*data: dict[str, Any]) -> Any:
        return make_client(Faulty(PlainTextResponse("fine"), plan(*data))).get("/turnstile")

    return struck


def test_without_a_fault_the_server_answers(struck: Any) -> None:
    assert struck({"kind": "empty", "form": "other"}).text == "fine"


@pytest.mark.parametrize("status", [200, 302, 404, 429, 500, 502, 599])
def test_status_answers_with_a_page(struck: Any, status: int) -> None:
    reply = struck({"kind": "status", "status": status})
    assert reply.status == status
    assert "<html>" in reply.text


def test_html200_answers_with_a_page_and_empty_with_nothing(struck: Any) -> None:
    page, empty = struck({"kind": "html200"}), struck({"kind": "empty"})
    assert (page.status, "<html>" in page.text) == (200, True)
    assert (empty.status, empty.body) == (200, b"")


def test_never_ends_when_the_caller_leaves(struck: Any) -> None:
    assert struck({"kind": "never"}).status == 0


def test_delay_lets_the_server_answer_afterwards(struck: Any) -> None:
    assert struck({"kind": "delay", "seconds": 0}).text == "fine"


def test_drip_sends_the_same_body_byte_by_byte() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    app = Faulty(PlainTextResponse("fine"), plan({"kind": "drip", "seconds": 0}))
    asyncio.run(app({"type": "http", "path": "/", "method": "GET"}, None, send))
    assert [message["body"] for message in sent[1:]] == [b"f", b"i", b"n", b"e"]
    assert [message["more_body"] for message in sent[1:]] == [True, True, True, False]


def test_reset_aborts_the_connection_without_an_answer(make_client: Any) -> None:
    class Transport:
        aborted = False

        def get_extra_info(self, name: str) -> Any:
            return self

        def setsockopt(self, *option: Any) -> None:
            pass

        def abort(self) -> None:
            self.aborted = True

    transport = Transport()
    app = Faulty(PlainTextResponse("fine"), plan({"kind": "reset"}))

    async def with_transport(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {"transport": transport}}, receive, send)

    assert make_client(with_transport).get("/").status == 0
    assert transport.aborted


def test_every_kind_is_described_in_the_table() -> None:
    assert all(kind.__doc__ for kind in KINDS.values())
