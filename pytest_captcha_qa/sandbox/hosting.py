"""Runs the sandbox's servers on one event loop until something asks them to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import ssl
import stat
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_captcha_qa.sandbox import control, provider_api, site, standin
from pytest_captcha_qa.sandbox.arrivals import Arrivals
from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.backend import vendor_at
from pytest_captcha_qa.sandbox.faults import Describe, FaultPlan, Faults, Faulty
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.issuing import with_admin
from pytest_captcha_qa.sandbox.lab.page import lab_routes
from pytest_captcha_qa.sandbox.outcomes import Certificate
from pytest_captcha_qa.sandbox.scripted import Book
from pytest_captcha_qa.sandbox.tokens import TokenRegistry
from pytest_captcha_qa.sandbox.web import KnownHost, LimitedBody
from pytest_captcha_qa.sandbox.work import Work

_LAB_TIMEOUT = 1.0
"""Seconds the lab's forms wait for the vendor: a run through all of them has to wait for some of those."""

_KEEP_ALIVE = 75
"""Seconds an idle connection stays open: longer than clients that pool connections expect."""


@dataclass(frozen=True, slots=True)
class Apps:
    """The applications, in the order of their ports; the provider's is served over https, too, if that is wanted."""

    provider: ASGIApp
    vendor: ASGIApp
    site: ASGIApp
    audit: ASGIApp

    @classmethod
    def build(cls, vendor_url: str, *, time_scale: float, seed: int | None, release: str) -> Apps:
        """Return the applications of one sandbox, which share its tokens, counts and faults."""
        audit, registry, faults = Audit(), TokenRegistry(), Faults.none(Random(seed))
        work = Work(registry, audit, Random(seed), time_scale=time_scale)
        provider = provider_api.Provider(work, audit, faults.provider)
        vendors = standin.build_app(standin.StandIn(registry, audit, faults.vendor))
        book = Book(registry)
        vendor = with_admin(vendors, book, Impostors(_bad_contexts, serve_one, book.log.mark))
        proofs: dict[str, str] = {}
        site_app = site.build_app(
            audit,
            vendor_at(vendor_url),
            release=release,
            proofs=proofs,
            faults=faults.site,
            more=partial(lab_routes, audit, vendor_at(vendor_url, _LAB_TIMEOUT)),
        )
        arrivals = Arrivals()
        return cls(
            provider=guarded(
                provider_api.build_app(provider), faults.provider, partial(provider_api.describe, provider)
            ),
            vendor=guarded(vendor, faults.vendor),
            site=guarded(arrivals.seen_by(site_app), faults.site),
            audit=guarded(control.build_app(control.Control(audit, faults, provider.keys, proofs, arrivals))),
        )


def guarded(
    app: ASGIApp,
    plan: FaultPlan | None = None,
    describe: Describe | None = None,
    names: frozenset[str] = frozenset(),
) -> ASGIApp:
    """Return `app` behind the guards every server has, and its faults; it answers to loopback and these names."""
    return KnownHost(LimitedBody(Faulty(app, plan, describe) if plan else app), names)


Place = tuple[ASGIApp, socket, ssl.SSLContext | None]
"""What serves an application: a socket, with TLS or without."""


async def run(
    apps: Apps, sockets: list[socket], announce: Callable[[], None], tls: ssl.SSLContext | None = None
) -> None:
    """Serve each application on its socket, announce once all of them answer, and end when asked to.

    With `tls` there is a fifth socket, for the provider over https.
    """
    served = [apps.provider, apps.vendor, apps.site, apps.audit, *([apps.provider] if tls is not None else [])]
    tlss = [None, None, None, None, *([tls] if tls is not None else [])]
    await serve_all(list(zip(served, sockets, tlss, strict=True)), announce)


async def serve_all(places: list[Place], announce: Callable[[], None], *, lasts: float | None = None) -> None:
    """Serve at all places, announce once all of them answer, and end when asked to or after so many seconds."""
    stop = asyncio.Event()
    _stop_on_signals(stop)
    servers = [(_Server(app, tls), sock) for app, sock, tls in places]
    async with asyncio.TaskGroup() as group:
        for server, sock in servers:
            group.create_task(server.serve([sock]))
        for server, _ in servers:
            await server.ready.wait()
        announce()
        _stop_at_end_of_stdin(stop)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), lasts)
        # Calls that are still open are cancelled; that is how a sandbox ends, and no news.
        logging.getLogger("uvicorn.error").disabled = True
        for server, _ in servers:
            server.should_exit = True


async def serve_one(app: ASGIApp, sock: socket, tls: ssl.SSLContext) -> None:
    """Serve until this is cancelled, or the loop ends."""
    await _Server(app, tls).serve([sock])


def _bad_contexts() -> Mapping[Certificate, ssl.SSLContext]:
    from pytest_captcha_qa.sandbox.authority import bad_contexts  # its libraries are slow to load, and seldom needed

    return bad_contexts()


class _Server(uvicorn.Server):
    """One uvicorn server that leaves signals to `run` and tells when it answers."""

    def __init__(self, app: ASGIApp, tls: ssl.SSLContext | None = None) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=0,
        )
        config.load()
        config.ssl = tls  # a setting of its own would want the key in a file
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Protocol(H11Protocol):
    """HTTP/1.1 that puts its transport into the scope, where the `reset` fault looks for it."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))


def _stop_at_end_of_stdin(stop: asyncio.Event) -> None:
    """Watch stdin if it is a pipe: it ends when the parent does, however that died."""
    try:
        fd = sys.stdin.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
    except (AttributeError, OSError, ValueError):
        return
    if is_pipe:
        watch = (fd, asyncio.get_running_loop(), stop)
        threading.Thread(target=_read_to_end, args=watch, daemon=True).start()


def _read_to_end(fd: int, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(fd, 4096):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has ended already
        loop.call_soon_threadsafe(stop.set)
