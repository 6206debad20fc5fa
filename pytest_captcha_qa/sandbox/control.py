"""The audit server: what was counted, and the switches for faults, accounts and ownership proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.arrivals import Arrivals
from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.described import DescriptionProblem
from pytest_captcha_qa.sandbox.faults import Faults
from pytest_captcha_qa.sandbox.web import UnreadableBody, read_json

_SWITCHES = ("faults", "keys", "proofs")


@dataclass(frozen=True, slots=True)
class Control:
    """Shows the counts and sets the switches."""

    audit: Audit
    faults: Faults
    keys: dict[str, KeyState]
    proofs: dict[str, str]
    arrivals: Arrivals = field(default_factory=Arrivals)

    async def requests(self, request: Request) -> Response:
        """Answer with the requests that reached the site, after the one whose number is given."""
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdecimal() and len(after) < 10):
            return JSONResponse({"error": "'after' is the number of a request"}, 400)
        return JSONResponse({"requests": self.arrivals.after(int(after)), "last": self.arrivals.last})

    async def show(self, request: Request) -> Response:
        """Answer with all counts."""
        return JSONResponse(self.audit.snapshot())

    async def set(self, request: Request) -> Response:
        """Apply a control message as a whole, or answer 400 with the reason and change nothing."""
        try:
            self._apply(await read_json(request))
        except (UnreadableBody, DescriptionProblem) as problem:
            return JSONResponse({"error": str(problem)}, 400)
        return JSONResponse({"ok": True})

    async def reset(self, request: Request) -> Response:
        """Set counts, faults and accounts back to how they were at the start; proofs stay."""
        self.audit.reset()
        self.faults.clear()
        self.keys.clear()
        return JSONResponse({"ok": True})

    def _apply(self, message: Any) -> None:
        if not isinstance(message, dict) or not message.keys() <= set(_SWITCHES):
            raise DescriptionProblem(f"a control message is an object with the keys {', '.join(_SWITCHES)}")
        accounts = _object(message, "keys")
        keys = {key: KeyState.from_data(_object(accounts, key)) for key in accounts}
        proofs = _object(message, "proofs")
        if not all(isinstance(text, str) for text in proofs.values()):
            raise DescriptionProblem("a proof is a text")
        self.faults.load(_object(message, "faults"))
        self.keys.update(keys)
        self.proofs.update(proofs)


def _object(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name, {})
    if not isinstance(value, dict):
        raise DescriptionProblem(f"{name!r} is an object")
    return value


@dataclass(frozen=True, slots=True)
class NoBrowser:
    """Refuses calls that a page in a browser made: no other site may turn the switches."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403."""
        if "origin" in Headers(scope=scope):
            await PlainTextResponse("No page may call this server.\n", 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def build_app(control: Control) -> ASGIApp:
    """Return the audit server as an ASGI application."""
    routes = [
        Route("/", control.show, methods=["GET"]),
        Route("/requests", control.requests, methods=["GET"]),
        Route("/control", control.set, methods=["POST"]),
        Route("/reset", control.reset, methods=["POST"]),
    ]
    return NoBrowser(Starlette(routes=routes))
