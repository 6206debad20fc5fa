"""Https servers whose certificate no sound client accepts, for answers of the vendor that must not be believed."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from socket import socket
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox.bodies import answered
from pytest_captcha_qa.sandbox.outcomes import Certificate
from pytest_captcha_qa.sandbox.sockets import LOOPBACK, bind

MARK = "a client came to the server whose certificate is bad"
_KEPT = 200
_NONE = (404, "text/plain", b"Not found\n")

Serve = Callable[[ASGIApp, socket, ssl.SSLContext], Coroutine[Any, Any, None]]
"""Serves an application over TLS until it is cancelled."""


@dataclass(slots=True)
class Impostors:
    """One server for each bad certificate, at a free port; it starts when its certificate is asked for first.

    `address`: where they listen; `url_host`: what a redirect calls that; `contexts`: makes what TLS needs;
    `mark`: told of each client that says hello to one, whether it goes on or not.
    """

    contexts: Callable[[], Mapping[Any, ssl.SSLContext]]
    serve: Serve
    mark: Callable[[str], object]
    address: str = LOOPBACK
    url_host: str = LOOPBACK
    _bases: dict[Certificate, str] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _answers: OrderedDict[str, tuple[int, str, bytes]] = field(default_factory=OrderedDict)

    def before(self, app: ASGIApp, certificate: Certificate) -> ASGIApp:
        """Return the vendor whose answer is had from the server with that certificate only, by a redirect.

        The token is used up: who follows and does not look at certificates reads a success.
        """

        async def redirecting(scope: Scope, receive: Receive, send: Send) -> None:
            status, headers, body = await answered(app, scope, receive)
            name = secrets.token_hex(8)
            self._answers[name] = status, headers.get("content-type", ""), body
            if len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
            await RedirectResponse(f"{self._base(certificate)}/{name}", 302)(scope, receive, send)

        return redirecting

    def _base(self, certificate: Certificate) -> str:
        if certificate not in self._bases:
            try:
                (sock,) = bind("the server with a bad certificate", 0, [self.address])
            except ConfigError:  # there is nothing to be had there, which is a vendor in trouble, too
                return f"https://{self.url_host}:9"
            context = self.contexts()[certificate]
            context.sni_callback = partial(self._greeted, certificate)
            self._tasks.append(asyncio.get_running_loop().create_task(self.serve(self._answering(), sock, context)))
            self._bases[certificate] = f"https://{self.url_host}:{sock.getsockname()[1]}"
        return self._bases[certificate]

    def _greeted(self, certificate: Certificate, *_: object) -> None:
        """Note a client before it has seen the certificate; called for those that name no host, too."""
        self.mark(f"{MARK}: {certificate}")

    def _answering(self) -> ASGIApp:
        """Return the application of all of them; uvicorn takes a bound method for one of an older interface."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                status, kind, body = self._answers.get(Request(scope).url.path.lstrip("/"), _NONE)
                await Response(body, status, {"content-type": kind})(scope, receive, send)

        return answer
