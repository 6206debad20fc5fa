"""A proxy that cuts the connection at each command in turn, before or after the server acted: nothing may be lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from pytest_captcha_qa.engine.store import AlreadyMine, Done, Granted, Lost, Won
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink

KEY, FORM = "5e" * 32, Fingerprint("signup")
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
TOKEN = Solution({"token": "03AGdBq24" * 20})


class CuttingProxy:
    """Passes commands on, and cuts the connection once, at the command of a number."""

    def __init__(self, server: str, *, at: int, acted: bool) -> None:
        self._server, self._at, self._acted, self.commands = server, at, acted, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            while command := client.recv(65_536):
                self.commands += 1
                cut = self.commands == self._at
                if cut and not self._acted:
                    return
                server.sendall(command)
                answer = server.recv(65_536)
                if cut:
                    return
                client.sendall(answer)


@pytest.fixture
def through(redis_server: Any) -> Iterator[Callable[..., tuple[RedisStore, CuttingProxy]]]:
    redis_server.empty()
    opened: list[RedisStore | CuttingProxy] = []

    def through(at: int, *, acted: bool) -> tuple[RedisStore, CuttingProxy]:
        proxy = CuttingProxy(str(redis_server.socket), at=at, acted=acted)
        store = RedisStore(RedisLink(StoreAddress.parse(f"redis://127.0.0.1:{proxy.port}")))
        opened.extend((store, proxy))
        return store, proxy

    yield through
    for each in opened:
        each.close()


@pytest.mark.parametrize("acted", [False, True], ids=["before", "after"])
def test_a_cut_connection_neither_loses_nor_doubles_anything(
    through: Callable[..., tuple[RedisStore, CuttingProxy]], redis_server: Any, acted: bool
) -> None:
    at = 0
    while True:
        at += 1
        redis_server.empty()
        store, proxy = through(at, acted=acted)
        granted = store.claim(KEY, FORM, "a", times=TIMES)
        assert isinstance(granted, Granted)
        assert (granted.lease.generation, granted.event, granted.replaced) == (1, None, None)
        store.intend(granted.lease)
        store.submitted(granted.lease, "t-1")
        store.renew(granted.lease, last_not_ready=0)
        offer = store.solved(granted.lease, TOKEN, age_bound=0)
        won = store.spend(offer, "c")
        assert isinstance(won, Won | AlreadyMine)
        assert store.spend(offer, "d") == Lost()
        store.verified(KEY, 1, "pass")
        store.done(won.lease, "ok", session="cookies")
        assert store.claim(KEY, FORM, "b", times=TIMES) == Done("ok", "cookies")
        if proxy.commands < at:
            break
    assert at > 11  # each call was cut once, and so was the greeting of a connection
