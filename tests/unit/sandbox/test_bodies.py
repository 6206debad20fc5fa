from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse

from pytest_captcha_qa.sandbox.bodies import GzipBomb, JsonList, NoStatus, Truncated, Twice
from pytest_captcha_qa.sandbox.described import DescriptionProblem

JSON = JSONResponse({"status": 1, "request": "abc"})
TEXT = PlainTextResponse("OK|abc")


@pytest.mark.parametrize(
    ("effect", "app", "body"),
    [
        (Truncated(), JSON, b'{"status":1,"r'),
        (Truncated(), TEXT, b"OK|"),
        (Twice(), TEXT, b"OK|abcOK|abc"),
        (JsonList(), JSON, b'[{"status": 1, "request": "abc"}]'),
        (JsonList(), TEXT, b'["OK|abc"]'),
        (NoStatus(), JSON, b'{"request": "abc"}'),
        (NoStatus(), TEXT, b'{"request": "OK|abc"}'),
    ],
)
def test_a_body_is_spoiled_and_its_length_is_told_right(make_client: Any, effect: Any, app: Any, body: bytes) -> None:
    reply = make_client(effect.wrap(app)).get("/")
    assert (reply.status, reply.body, reply.header("content-length")) == (200, body, str(len(body)))


def test_a_bomb_is_small_and_unpacks_to_json_of_its_size(make_client: Any) -> None:
    reply = make_client(GzipBomb(3).wrap(TEXT)).get("/")
    assert reply.header("content-encoding") == "gzip"
    assert len(reply.body) < 100_000
    assert len(json.loads(gzip.decompress(reply.body))["request"]) == 3 * 1024 * 1024


def test_a_bomb_for_the_sandbox_itself_is_refused() -> None:
    with pytest.raises(DescriptionProblem, match="at most"):
        GzipBomb(2000)
