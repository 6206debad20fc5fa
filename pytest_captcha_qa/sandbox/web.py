"""What the sandbox's HTTP servers share: parameters in any encoding, and the guards in front of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 1024 * 1024

_PATIENCE = 16
"""How many times the limit is read before a body that is too large is cut off."""


class UnreadableBody(Exception):
    """The request body is not what its content type says."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a multipart body."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Fields:
    """The parameters of one request, whatever encoding they came in; the first of a repeated name counts."""

    pairs: tuple[tuple[str, str], ...]
    files: Mapping[str, Upload] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a parameter."""
        return next((value for key, value in self.pairs if key == name), default)

    def __contains__(self, name: str) -> bool:
        """Tell whether a parameter was sent, be it empty."""
        return any(key == name for key, _ in self.pairs)

    def has_repeated_names(self) -> bool:
        """Tell whether any parameter was sent more than once."""
        return any(count > 1 for count in Counter(key for key, _ in self.pairs).values())


async def read_fields(request: Request) -> Fields:
    """Return the parameters of query and body, and its files: form-urlencoded, multipart or a JSON object.

    Raises UnreadableBody.
    """
    pairs, files = await _read_body(request)
    return Fields(_clean([*request.query_params.multi_items(), *pairs]), files)


async def read_json(request: Request) -> Any:
    """Return the JSON body of a request. Raises UnreadableBody."""
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError) as exc:
        raise UnreadableBody("the body is not JSON") from exc


def query_fields(request: Request) -> Fields:
    """Return the parameters of the query alone."""
    return Fields(_clean(request.query_params.multi_items()))


async def _read_body(request: Request) -> tuple[list[tuple[str, str]], dict[str, Upload]]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
        return _json_pairs(await read_json(request)), {}
    try:
        form = await request.form()
    except (HTTPException, MultiPartException) as exc:
        raise UnreadableBody("the body is not the form it claims to be") from exc
    items = form.multi_items()
    files = {name: Upload(it.filename or "", await it.read()) for name, it in items if not isinstance(it, str)}
    await form.close()
    return [(name, value) for name, value in items if isinstance(value, str)], files


def _json_pairs(body: Any) -> list[tuple[str, str]]:
    """Return a JSON object as parameters; null means not sent."""
    if not isinstance(body, dict):
        raise UnreadableBody("the body is not a JSON object")
    return [(name, _json_text(value)) for name, value in body.items() if value is not None]


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    return json.dumps(value)


def _clean(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((_encodable(name), _encodable(value)) for name, value in pairs)


def _encodable(text: str) -> str:
    """Return `text` without lone surrogates, which JSON may carry and no answer can."""
    return text.encode("utf-8", "replace").decode()


def is_loopback(host: str) -> bool:
    """Tell whether a host is a literal loopback address or `localhost`; names are never resolved."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """Return the host in a `Host` header, without port and brackets; empty when it cannot be read."""
    try:
        parts = urlsplit(f"//{authority}")
        well_formed = parts.netloc == authority and "@" not in authority and parts.port != 0
    except ValueError:
        return ""
    return parts.hostname or "" if well_formed else ""


@dataclass(frozen=True, slots=True)
class KnownHost:
    """Refuses requests addressed to any name but loopback and these, so that no web page gets in by its DNS."""

    app: ASGIApp
    names: frozenset[str] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421."""
        hosts = [host_of(host) for host in Headers(scope=scope).getlist("host")]
        if len(hosts) == 1 and (is_loopback(hosts[0]) or hosts[0] in self.names):
            await self.app(scope, receive, send)
        else:
            known = " and the names it was started with" if self.names else " only"
            refusal = PlainTextResponse(f"This server answers to loopback names{known}.\n", 421)
            await refusal(scope, receive, send)


@dataclass(frozen=True, slots=True)
class LimitedBody:
    """Reads the whole body, at most `limit` bytes, before the request goes on."""

    app: ASGIApp
    limit: int = BODY_LIMIT

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body in one piece, or answer 413."""
        body, size = await self._read(receive)
        if body is not None:
            await self.app(scope, replay(body, receive), send)
        elif size > self.limit:
            refusal = PlainTextResponse("The body is too large.\n", 413, headers={"connection": "close"})
            await refusal(scope, receive, send)

    async def _read(self, receive: Receive) -> tuple[bytes | None, int]:
        """Return the body, None if it is too large or its sender left, and how much was read.

        What is too large is read on for a while: a client that is cut off while sending misses the answer.
        """
        body, size, more = bytearray(), 0, True
        while more and size <= self.limit * _PATIENCE:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None, 0
            chunk = message.get("body", b"")
            size += len(chunk)
            body += chunk if size <= self.limit else b""
            more = message.get("more_body", False)
        return (bytes(body) if size <= self.limit else None), size


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that delivers `body` once, then whatever `receive` does."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again
