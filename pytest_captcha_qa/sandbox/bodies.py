"""Faults that spoil the body of an answer."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_captcha_qa.sandbox.described import DescriptionProblem


@dataclass(frozen=True, slots=True)
class GzipBomb:
    """A small compressed body that unpacks to so many mebibytes of JSON."""

    mebibytes: int = 64
    final: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what would be one for the sandbox, too."""
        if self.mebibytes > 1024:
            raise DescriptionProblem("'mebibytes' is at most 1024")

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Answer instead of the server."""
        headers = {"Content-Encoding": "gzip"}
        return Response(_bomb(self.mebibytes), headers=headers, media_type="application/json")


@lru_cache(maxsize=4)
def _bomb(mebibytes: int) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        file.write(b'{"status":1,"request":"')
        for _ in range(mebibytes):
            file.write(b"A" * 1024 * 1024)
        file.write(b'"}')
    return packed.getvalue()


@dataclass(frozen=True, slots=True)
class _ChangedBody:
    """The server answers, and its body is changed on the way."""

    final: ClassVar[bool] = False

    def changed(self, body: bytes) -> bytes:
        """Return what arrives instead."""
        raise NotImplementedError

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Let the server answer, then send the changed body."""

        async def change(scope: Scope, receive: Receive, send: Send) -> None:
            status, headers, body = await answered(app, scope, receive)
            kept = {name: value for name, value in headers.items() if name != "content-length"}
            await Response(self.changed(body), status, kept)(scope, receive, send)

        return change


async def answered(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
    """Return what a server answers to a call: status, headers and the whole body."""
    status, headers, body = 200, Headers(), bytearray()

    async def keep(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], Headers(raw=message["headers"])
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, keep)
    return status, headers, bytes(body)


@dataclass(frozen=True, slots=True)
class Truncated(_ChangedBody):
    """The answer ends in its middle, as if that were all."""

    def changed(self, body: bytes) -> bytes:
        """Return the first half."""
        return body[: len(body) // 2]


@dataclass(frozen=True, slots=True)
class Twice(_ChangedBody):
    """The same answer comes twice in one body."""

    def changed(self, body: bytes) -> bytes:
        """Return it two times."""
        return body + body


@dataclass(frozen=True, slots=True)
class JsonList(_ChangedBody):
    """The answer is JSON, but a list."""

    def changed(self, body: bytes) -> bytes:
        """Return a list that holds the answer."""
        return json.dumps([_parsed(body)]).encode()


@dataclass(frozen=True, slots=True)
class NoStatus(_ChangedBody):
    """The answer is a JSON object without its `status`."""

    def changed(self, body: bytes) -> bytes:
        """Return the object without it."""
        found = _parsed(body)
        rest = {name: value for name, value in found.items() if name != "status"} if isinstance(found, dict) else {}
        return json.dumps(rest or {"request": found}).encode()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
