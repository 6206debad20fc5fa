from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from pytest_captcha_qa.sandbox.web import Fields, KnownHost, LimitedBody, is_loopback


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await PlainTextResponse(message["body"])(scope, receive, send)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8000", "127.1.2.3"]
)
def test_a_loopback_host_is_let_in(make_client: Any, host: str) -> None:
    assert make_client(KnownHost(PlainTextResponse("in")), host=host).get("/").text == "in"


@pytest.mark.parametrize(
    "host",
    [
        "",
        "shop.example",
        "localhost.shop.example",
        "127.0.0.1.shop.example",
        "user@127.0.0.1",
        "127.0.0.1:80, shop.example",
        "127.0.0.1:x",
        "127.0.0.1/x",
        "[::1",
        "2130706433",
        "10.0.0.1",
        "[::ffff:10.0.0.1]",
    ],
)
def test_any_other_host_is_refused(make_client: Any, host: str) -> None:
    assert make_client(KnownHost(PlainTextResponse("in")), host=host).get("/").status == 421


@pytest.mark.parametrize("hosts", [[], [b"localhost", b"shop.example"]])
def test_exactly_one_host_header_is_needed(hosts: list[bytes]) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"host", host) for host in hosts]}
    asyncio.run(KnownHost(PlainTextResponse("in"))(scope, None, send))
    assert sent[0]["status"] == 421


def test_a_body_up_to_the_limit_goes_on_in_one_piece() -> None:
    assert _deliver(LimitedBody(echo, limit=6), b"abc", b"def") == (200, b"abcdef")


def test_a_larger_body_is_refused() -> None:
    assert _deliver(LimitedBody(echo, limit=6), b"abc", b"defg")[0] == 413


def test_a_body_without_end_is_cut_off() -> None:
    endless = [b"abcdef"] * 1000
    assert _deliver(LimitedBody(echo, limit=6), *endless)[0] == 413


def test_a_caller_that_leaves_gets_no_answer() -> None:
    assert _deliver(LimitedBody(echo, limit=6), b"abc", complete=False) == (0, b"")


def _deliver(app: LimitedBody, *chunks: bytes, complete: bool = True) -> tuple[int, bytes]:
    incoming: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if complete:
        incoming[-1]["more_body"] = False
    incoming.append({"type": "http.disconnect"})
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http"}, receive, send))
    return (sent[0]["status"], sent[1]["body"]) if sent else (0, b"")


def test_the_first_of_a_repeated_name_counts() -> None:
    fields = Fields((("a", "1"), ("b", ""), ("a", "2")))
    assert (fields.get("a"), fields.get("c"), fields.get("c", "x")) == ("1", "", "x")
    assert "b" in fields
    assert "c" not in fields
    assert fields.has_repeated_names()
    assert not Fields((("a", "1"), ("b", "1"))).has_repeated_names()


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("localhost", True),
        ("::1", True),
        ("127.0.0.2", True),
        ("", False),
        ("localhost.", False),
        ("0.0.0.0", False),
    ],
)
def test_only_literal_loopback_is_loopback(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
