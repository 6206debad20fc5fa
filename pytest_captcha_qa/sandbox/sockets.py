"""The sockets that servers listen on."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from pytest_captcha_qa.errors import ConfigError

LOOPBACK = "127.0.0.1"
_HIGHEST_PORT = 65535


def bind(what: str, port: int, hosts: Sequence[str]) -> list[socket.socket]:
    """Return a socket bound to each of the addresses: free ports for 0, else `port` and those after it.

    Raises ConfigError, which names `what` was to be served.
    """
    count = len(hosts)
    if not (port == 0 or 1 <= port <= _HIGHEST_PORT + 1 - count):
        raise ConfigError(f"{what} cannot use port {port}: give 0 for free ones, or 1 to {_HIGHEST_PORT + 1 - count}")
    sockets: list[socket.socket] = []
    for host, number in zip(hosts, range(port, port + count) if port else (0,) * count, strict=True):
        try:
            sockets.append(_prompt(_listening(host, number)))
        except OSError as exc:
            for sock in sockets:
                sock.close()
            reason = os.strerror(exc.errno) if exc.errno and exc.errno > 0 else "there is no such address here"
            raise ConfigError(f"{what} cannot use port {number} on {host}: {reason}") from exc
    return sockets


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def _prompt(server: socket.socket) -> socket.socket:
    """Return the socket with all it accepts sending at once: head and body of an answer are two small packets, and the
    second would wait for the client's delayed acknowledgement, 40 ms.
    """
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server
