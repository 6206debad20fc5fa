"""What a vendor says of one token when a test has said so beforehand, in place of what it would say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import anyio
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.sandbox.bodies import answered
from pytest_captcha_qa.sandbox.described import DescriptionProblem, build
from pytest_captcha_qa.sandbox.effects import Reset
from pytest_captcha_qa.sandbox.grammars import Grammar

AGAIN, NOTICE = "/again", "/notice"
LONGEST_DELAY = 120.0

_PAGE = "<!DOCTYPE html>\n<html><head><title>Please stand by</title></head><body>Please stand by.</body></html>\n"


class Body(StrEnum):
    """What arrives in place of the vendor's JSON object; only with half of it, `truncated`, the token is used up."""

    JSON = "json"
    HTML = "html"
    EMPTY = "empty"
    LIST = "list"
    NULL = "null"
    TRUNCATED = "truncated"
    RESET = "reset"
    REDIRECT = "redirect"
    REDIRECT_HTML = "redirect_html"


class Certificate(StrEnum):
    """Certificates that no sound client accepts."""

    OTHER_HOST = "other_host"
    EXPIRED = "expired"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scripted answer for one token; what is None stays as the vendor would have it.

    `score`, `action`, `hostname`: in a success; `code`: refused with this error code, empty for a refusal without one;
    `values`: members of the answer by dotted path, after that; `without`: members that are left out; `status`: of HTTP;
    `delay`: seconds; `certificate`: the answer is had, by a redirect, from a server with such a one only.
    """

    score: float | None = None
    action: str | None = None
    hostname: str | None = None
    code: str | None = None
    status: int | None = None
    delay: float = 0.0
    body: Body = Body.JSON
    certificate: Certificate | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @classmethod
    def from_data(cls, data: Any) -> Outcome:
        """Return the outcome a JSON object describes. Raises DescriptionProblem."""
        if not isinstance(data, dict):
            raise DescriptionProblem(f"an outcome is an object with {', '.join(spec.name for spec in fields(cls))}")
        plain = {name: value for name, value in data.items() if name not in ("values", "without")}
        values, without = data.get("values", {}), data.get("without", [])
        if not isinstance(values, dict):
            raise DescriptionProblem("'values' is an object of dotted paths and what stands there")
        if not (isinstance(without, list) and all(isinstance(path, str) for path in without)):
            raise DescriptionProblem("'without' is a list of dotted paths")
        found = build(_Plain, plain)
        told = {spec.name: getattr(found, spec.name) for spec in fields(found)}
        return cls(**told, values=values, without=tuple(without))

    def wrap(self, app: ASGIApp, grammar: Grammar) -> ASGIApp:
        """Return the vendor as it answers for this token."""

        async def scripted(scope: Scope, receive: Receive, send: Send) -> None:
            if self.delay:
                await anyio.sleep(self.delay)
            instead = _INSTEAD.get(self.body)
            if instead is not None:
                await instead(self.status)(scope, receive, send)
                return
            status, headers, body = await answered(app, scope, receive)
            kept = {name: value for name, value in headers.items() if name != "content-length"}
            told = status if self.status is None else self.status
            await Response(self._spoiled(body, grammar), told, kept)(scope, receive, send)

        return scripted

    def _spoiled(self, body: bytes, grammar: Grammar) -> str:
        reply = read_reply(body)
        changed = self._changed(reply, grammar)
        plain = not body.startswith(b"{")
        return _FINISH[self.body](str(changed.get("seccode", "")) if plain else json.dumps(changed))

    def _changed(self, reply: dict[str, Any], grammar: Grammar) -> dict[str, Any]:
        if self.code is not None:
            reply = grammar.refusal(reply, self.code)
        elif grammar.accepted(reply):
            for name, path in grammar.places.items():
                if getattr(self, name) is not None:
                    _put(reply, path, getattr(self, name))
        for path, value in self.values.items():
            _put(reply, path, value)
        for path in self.without:
            _drop(reply, path)
        return reply


@dataclass(frozen=True, slots=True)
class _Plain:
    """The members of an outcome that are one value each."""

    score: float | None = None
    action: str | None = None
    hostname: str | None = None
    code: str | None = None
    status: int | None = None
    delay: float = 0.0
    body: Body = Body.JSON
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        """Refuse what HTTP cannot carry, and waits without end."""
        if self.status is not None and (not 200 <= self.status <= 599 or self.status in (204, 205, 304)):
            raise DescriptionProblem(f"status {self.status} cannot carry an answer")
        if self.delay > LONGEST_DELAY:
            raise DescriptionProblem(f"'delay' is at most {LONGEST_DELAY:.0f} seconds")


def read_reply(body: bytes) -> dict[str, Any]:
    """Return a vendor's answer as an object; as plain text it is GeeTest v3's, which has a single member."""
    try:
        reply = json.loads(body)
    except ValueError:
        reply = None
    return reply if isinstance(reply, dict) else {"seccode": body.decode("utf-8", "replace")}


def _put(reply: MutableMapping[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        inner = reply.get(name)
        reply[name] = reply = inner if isinstance(inner, dict) else {}
    reply[last] = value


def _drop(reply: MutableMapping[str, Any], path: str) -> None:
    *parents, last = path.split(".")
    for name in parents:
        inner = reply.get(name)
        if not isinstance(inner, dict):
            return
        reply = inner
    reply.pop(last, None)


def _reset(status: int | None) -> ASGIApp:
    return Reset().wrap(_nothing)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    pass


_INSTEAD: Mapping[Body, Callable[[int | None], ASGIApp]] = {
    Body.HTML: lambda status: HTMLResponse(_PAGE, status or 200),
    Body.EMPTY: lambda status: Response(b"", status or 200),
    Body.LIST: lambda status: JSONResponse([], status or 200),
    Body.NULL: lambda status: JSONResponse(None, status or 200),
    Body.RESET: _reset,
    Body.REDIRECT: lambda status: RedirectResponse(AGAIN, status or 302),
    Body.REDIRECT_HTML: lambda status: RedirectResponse(NOTICE, status or 302),
}
_FINISH: Mapping[Body, Callable[[str], str]] = {
    Body.JSON: str,
    Body.TRUNCATED: lambda text: text[: len(text) // 2],
}


async def again(request: object) -> Response:
    """Redirect to this very address."""
    return RedirectResponse(AGAIN, 302)


async def notice(request: object) -> Response:
    """Answer with a page, as a gateway's notice is."""
    return HTMLResponse(_PAGE)
