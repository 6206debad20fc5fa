"""The requests that reached the site, one by one: for tests that count who was there when, and with what."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.sandbox.web import UnreadableBody, read_fields, replay

_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: its number, when it came (seconds of a clock that never goes back), from whom and how large.

    `claimed`: the address that X-Forwarded-For claims; `run`: the id of the test run; `email`: of the submitted person.
    """

    order: int
    at: float
    method: str
    path: str
    size: int
    claimed: str
    run: str
    email: str


@dataclass(slots=True)
class Arrivals:
    """The last requests that reached one site."""

    clock: Callable[[], float] = time.monotonic
    kept: deque[Arrival] = field(default_factory=lambda: deque(maxlen=_KEPT))
    last: int = 0

    def seen_by(self, app: ASGIApp) -> ASGIApp:
        """Return the application with each request noted before it is answered."""

        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            at = self.clock()
            body = await Request(scope, receive).body()
            await self._note(Request(scope, replay(body, receive)), at, len(body))
            await app(scope, replay(body, receive), send)

        return noted

    def after(self, order: int) -> list[dict[str, Any]]:
        """Return the requests after one of them, as JSON values."""
        return [asdict(arrival) for arrival in self.kept if arrival.order > order]

    async def _note(self, request: Request, at: float, size: int) -> None:
        email = ""
        if size:
            try:
                email = (await read_fields(request)).get("email")
            except UnreadableBody:
                email = ""
        self.last += 1
        headers = request.headers
        claimed, run = headers.get("x-forwarded-for", ""), headers.get("x-captcha-qa-run", "")
        self.kept.append(Arrival(self.last, at, request.method, request.url.path, size, claimed, run, email))
