"""Connections that know the call they serve: deadline, where the peer must be, whether a byte left."""

from __future__ import annotations

import http.client
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import urllib3.connection as u3c
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, Retry
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.transport.threads import started
from pytest_captcha_qa.transport.watchdog import WATCHDOG, Watch

_POOLS = 32
_CONNECTIONS = 128
# Servers close idle connections after 2 s (gunicorn) or 5 s (uvicorn, Node). A form posted into a closing
# connection is a reset that nobody may repeat, so only connections that were in use just now are used again.
_REUSE_SECONDS = 1.0
_SWITCHING, _FIRST_FINAL = 101, 200
_END_OF_HEAD = (b"\r\n", b"\n")
_FLAGS = frozenset({"secure", "httponly", "partitioned"})
_Address = tuple[int, tuple[Any, ...]]


class Call:
    """One request under way.

    `sent`: whether its first byte may have left; `late`: the kind of failure if its time runs out now.
    """

    def __init__(self, seconds: float, *, loopback: bool, watch: Watch) -> None:
        """Start the clock; `loopback`: the peer must have a loopback address (R0.3)."""
        self._until = time.monotonic() + seconds
        self._loopback = loopback
        self._watch = watch
        self.sent = False
        self.late = "timeout"

    @property
    def remaining(self) -> float:
        """Seconds left; zero or less when the time is over."""
        return self._until - time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the time ran out."""
        return self._watch.fired or self.remaining <= 0

    def take(self, sock: socket.socket) -> None:
        """Put a connected socket under the deadline, after a look at who is at its other end.

        Raises:
            ScopeDenied: it should be this machine and is not.
        """
        if self._loopback and not _is_loopback(str(sock.getpeername()[0])):
            raise ScopeDenied(
                "the host is named as this machine but leads to another one; nothing was sent",
                reason="not_loopback",
            )
        self._watch.hold(sock)


_CALL: ContextVar[Call] = ContextVar("captcha_qa_call")


@contextmanager
def calling(seconds: float, *, loopback: bool) -> Iterator[Call]:
    """Give the call that all connections used in the block serve."""
    with WATCHDOG.watch(seconds) as watch:
        call = Call(seconds, loopback=loopback, watch=watch)
        token = _CALL.set(call)
        try:
            yield call
        finally:
            _CALL.reset(token)


class _Lines:
    """Reads the lines of a head and keeps the last one."""

    def __init__(self, file: Any) -> None:
        self.last = b""
        self.readline = lambda limit=-1: self._kept(file.readline(limit))
        self.close = file.close

    def _kept(self, line: bytes) -> bytes:
        self.last = line
        return line


class _Final(http.client.HTTPResponse):
    """The answer with its whole head, after all that only announces it (102, 103).

    The library would take an announcement for the answer, and a head that breaks off for a short one.
    """

    def begin(self) -> None:
        """Read status and headers of the answer itself; the call's deadline ends a peer that announces for ever."""
        self._begin()
        while _SWITCHING < self.status < _FIRST_FINAL:
            self.headers = None  # type: ignore[assignment]
            self._begin()

    def _begin(self) -> None:
        file, lines = self.fp, _Lines(self.fp)
        self.fp = lines  # type: ignore[assignment]
        try:
            super().begin()
        finally:
            if not self.isclosed():
                self.fp = file
        if lines.last not in _END_OF_HEAD:
            raise http.client.IncompleteRead(lines.last)


class _Served(u3c.HTTPConnection):
    """The part that plain and TLS connections share."""

    response_class = _Final
    _used = 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the connection may be used again; an idle one is replaced."""
        return super().is_connected and time.monotonic() - self._used < _REUSE_SECONDS

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Connect if needed, then note that bytes leave from here on."""
        call = _CALL.get()
        if self.sock is None:
            self.connect()
        elif self._used:
            call.take(self.sock)
        self._used = time.monotonic()
        call.sent = True
        super().request(*args, **kwargs)

    def _new_conn(self) -> socket.socket:
        call = _CALL.get()
        sock = self._connected(call)
        try:
            call.take(sock)
        except BaseException:  # Ctrl-C too must not leave the socket open
            sock.close()
            raise
        self._used = 0.0
        call.late = "timeout"
        return sock

    def _connected(self, call: Call) -> socket.socket:
        call.late = "dns"
        addresses = self._resolved(call)
        call.late = "connect_timeout"
        failure: OSError = OSError("the host has no address")
        for family, address in addresses:
            try:
                return _connect(family, address, seconds=call.remaining, options=self.socket_options)
            except OSError as error:
                failure = error
        if call.is_late:
            raise ConnectTimeoutError(self, "no connection in time")
        raise NewConnectionError(self, "no connection") from failure

    def _resolved(self, call: Call) -> list[_Address]:
        """Return the host's addresses, from a thread of its own: a resolver takes no time-out."""
        host, port = self._dns_host.strip("[]"), self.port or self.default_port
        found: list[_Address] = []
        failures: list[OSError | UnicodeError] = []

        def resolve() -> None:
            try:
                found.extend((it[0], it[4]) for it in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                failures.append(error)

        thread = started(resolve, name="captcha-qa-resolver")
        thread.join(max(0.0, call.remaining))
        if thread.is_alive() or failures:
            raise NameResolutionError(host, self, socket.gaierror(socket.EAI_NONAME, "no address"))
        return found


class _PlainConnection(_Served):
    pass


class _TlsConnection(_Served, u3c.HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class Adapter(HTTPAdapter):
    """Pools of such connections for one process; sends once and retries nothing."""

    _POOL_CLASSES: ClassVar[Mapping[str, type[HTTPConnectionPool]]] = {"http": _PlainPool, "https": _TlsPool}

    def __init__(self) -> None:
        """Make empty pools."""
        self.pid = os.getpid()
        super().__init__(pool_connections=_POOLS, pool_maxsize=_CONNECTIONS, max_retries=Retry(total=False))

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = dict(self._POOL_CLASSES)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> PoolManager:
        """Return the pools of connections through a proxy."""
        manager: PoolManager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = dict(self._POOL_CLASSES)
        return manager

    def build_response(self, req: PreparedRequest, resp: Any) -> Response:
        """Return the answer; what its cookies say is first put into a form that the library's jar can read."""
        original = getattr(resp, "_original_response", None)
        if original is not None:
            lines = original.msg.get_all("Set-Cookie", [])
            del original.msg["Set-Cookie"], original.msg["Set-Cookie2"]
            for line in lines:
                original.msg["Set-Cookie"] = readable_cookie(line)
        return super().build_response(req, resp)


def readable_cookie(line: str) -> str:
    """Return a Set-Cookie header without attributes that lack their value, as browsers take it.

    The library's jar fails over a bare `Max-Age`, tells so by a warning, and keeps no cookie of the answer. It also
    fails over Set-Cookie2, which nobody uses any more.
    """
    cookie, *attributes = line.split(";")
    kept = [it for it in attributes if "=" in it or it.strip().lower() in _FLAGS]
    return ";".join([cookie, *kept])


class QueryFilter(logging.Filter):
    """Takes queries and foreign text out of what urllib3 logs about our calls, and only about ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the arguments of the record."""
        if _CALL.get(None) is not None:
            record.exc_info = None
            if isinstance(record.args, tuple):
                record.args = tuple(_without_query(value) for value in record.args)
        return True


_FILTER = QueryFilter()


def hide_queries() -> None:
    """Install the filter on the loggers of urllib3 that name URLs; once is enough, more does no harm."""
    for name in ("connectionpool", "connection", "response", "util.retry"):
        logging.getLogger(f"urllib3.{name}").addFilter(_FILTER)


def _without_query(value: object) -> object:
    if isinstance(value, str):
        return value.partition("?")[0]
    return value if isinstance(value, (int, float)) or value is None else type(value).__name__


def _connect(family: int, address: tuple[Any, ...], *, seconds: float, options: Any) -> socket.socket:
    if seconds <= 0:
        raise TimeoutError
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options or ():
            sock.setsockopt(*option)
        sock.settimeout(seconds)
        sock.connect(address)
    except BaseException:  # Ctrl-C too must not leave the socket open
        sock.close()
        raise
    return sock


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
