"""The connections to one Redis or Valkey: bounded in time, its faults as sentences, its run id known at every call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.state.packed import Packed, command
from pytest_captcha_qa.state.redis_faults import explained, is_passing
from pytest_captcha_qa.state.scripts import Script

if TYPE_CHECKING:
    from redis.connection import ConnectionPool

Arguments = Sequence[str | int | float | bytes]

_CONNECT = 1.5  # seconds
_ANSWER = 2.0
# A reply that was lost is asked for again: every script gives the same answer to the same caller.
_TRIES = 2
_LOOK_FOR_REPLICAS = 10.0
_IDLE = 0.5  # seconds; looking at a connection takes a tenth of a call, so it is done where that matters
_REPLICATED_WITHIN = 200  # milliseconds; what no replica has by then goes on all the same (W4)


@dataclass(slots=True)
class _Peer:
    """What one connection knows of the server at its other end."""

    epoch: str
    replicas: int
    looked_at: float
    used_at: float


class RedisLink:
    """A pool of connections to the primary at an address; safe between threads and after a fork."""

    def __init__(self, address: StoreAddress, *, answer_within: float = _ANSWER) -> None:
        """Connect to nothing yet; `answer_within`: seconds a call waits for the server.

        Raises:
            ConfigError: redis-py is not installed.
        """
        self.address = address
        self._peers: WeakKeyDictionary[Any, _Peer] = WeakKeyDictionary()
        self._pool = _pool(address, self._greet, answer_within)
        self._idle: dict[int, list[Any]] = {}
        from redis.exceptions import NoScriptError, RedisError

        self._faults, self._no_script = (RedisError, OSError), NoScriptError

    def run(
        self, script: Script, head: Packed, arguments: Callable[[str], Arguments], *, replicated: bool = False
    ) -> Any:
        """Run a script and return its reply; `arguments` is given the server's run id.

        `head`: the number of keys, the keys and the first arguments.
        `replicated`: its reply begins with "1" where it wrote, and then a replica is waited for, if there are any.

        Raises:
            StoreUnavailable: it cannot be reached or refuses; `sent` tells whether it may have run.
            ConfigError: it refuses the login or the right to do this.
        """

        def evaluate(connection: Any) -> Any:
            peer = self._peer(connection)
            reply = self._evaluated(connection, script, head, Packed.of(*arguments(peer.epoch)))
            if replicated and peer.replicas and isinstance(reply, list) and reply[0] == "1":
                _answer(connection, Packed.of("WAIT", 1, _REPLICATED_WITHIN))
            return reply

        return self._tried(evaluate)

    def ask(self, *words: str | int) -> Any:
        """Send one plain command that changes nothing, and return its answer; raises as `run` does."""
        return self._tried(lambda connection: _answer(connection, Packed.of(*words)))

    def _tried(self, exchange: Callable[[Any], Any]) -> Any:
        sent = False
        for left in reversed(range(_TRIES)):
            connection = self._taken()
            try:
                self._connect(connection)
                sent = True
                answer = exchange(connection)
                self._peers[connection].used_at = time.monotonic()
                return answer
            except self._faults as error:
                if not left or not is_passing(error):
                    raise explained(error, self.address, sent=sent) from None
                self.close()  # what cut this connection has perhaps cut all others
            finally:
                self._idle[os.getpid()].append(connection)
        raise AssertionError("every way out of the loop returns or raises")

    def _taken(self) -> Any:
        """Return a connection that nobody uses; the library's own way to one takes a quarter of a call."""
        try:
            return self._idle[os.getpid()].pop()
        except (KeyError, IndexError):
            self._idle.setdefault(os.getpid(), [])  # what a fork inherits is its parent's
            return self._pool.make_connection()

    def _connect(self, connection: Any) -> None:
        """Connect, also where the server has closed an idle connection: of a command sent there nothing is known."""
        peer = self._peers.get(connection)
        if peer is not None and time.monotonic() - peer.used_at > _IDLE:
            try:
                closed = connection.can_read()
            except self._faults:
                closed = True
            if closed:
                connection.disconnect()
        connection.connect()

    def close(self) -> None:
        """Close the connections that nobody uses now; the next use opens them again."""
        for connection in list(self._idle.get(os.getpid(), ())):
            connection.disconnect()

    def __repr__(self) -> str:
        return f"<RedisLink {self.address}>"

    def _greet(self, connection: Any) -> None:
        """Log in, and learn which life of which server this is; one who is interrupted in this has not connected."""
        try:
            connection.on_connect()
            self._peers[connection] = self._met(connection)
        except BaseException:  # Ctrl-C too: a connection that was not greeted knows no server
            connection.disconnect()
            raise

    def _met(self, connection: Any) -> _Peer:
        run_id = _info(connection, "server").get("run_id")
        if not run_id:
            raise ConfigError(
                f"the shared store {self.address} does not tell its run id (INFO server), so a restart could not be "
                "noticed and used tokens might come back; name a server that does"
            )
        return _Peer(run_id, _replicas(connection), looked_at=time.monotonic(), used_at=time.monotonic())

    def _peer(self, connection: Any) -> _Peer:
        peer = self._peers[connection]
        if time.monotonic() - peer.looked_at >= _LOOK_FOR_REPLICAS:
            peer.replicas, peer.looked_at = _replicas(connection), time.monotonic()
        return peer

    def _evaluated(self, connection: Any, script: Script, head: Packed, rest: Packed) -> Any:
        """Run a script by its name, or by its text on a server that was restarted or told to forget it."""
        try:
            return _answer(connection, script.by_name, head, rest)
        except self._no_script:
            return _answer(connection, script.by_text, head, rest)


def _answer(connection: Any, *parts: Packed) -> Any:
    """Send a command and return its answer; a connection that is left in between is not used again."""
    try:
        connection.send_packed_command([command(parts)], check_health=False)
    except BaseException:  # Ctrl-C too: half a command must not be read as the start of the next
        connection.disconnect()
        raise
    return connection.read_response()  # this one disconnects by itself


def _replicas(connection: Any) -> int:
    return int(_info(connection, "replication").get("connected_slaves", 0))


def _info(connection: Any, section: str) -> dict[str, str]:
    lines = _answer(connection, Packed.of("INFO", section)).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _pool(address: StoreAddress, greet: Callable[[Any], None], answer_within: float) -> ConnectionPool:
    try:
        from redis.backoff import NoBackoff
        from redis.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
        from redis.retry import Retry
    except ImportError:
        raise ConfigError(
            f"the shared store {address} needs the extra `redis`: pip install 'pytest-captcha-qa[redis]'"
        ) from None
    timed: dict[str, Any] = {
        "socket_timeout": answer_within,
        "socket_connect_timeout": _CONNECT,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "encoding_errors": "surrogatepass",
        "decode_responses": True,
    }
    tls = {f"ssl_{name}": value for name, value in _tls(address).items()}
    ours = timed | _login(address.login) | {"db": address.db, "redis_connect_func": greet}
    if address.service is not None:
        return _sentinel_pool(address, timed | tls, ours | tls)
    if address.path is not None:
        return ConnectionPool(connection_class=UnixDomainSocketConnection, path=address.path, **ours)
    host, port = address.hosts[0]
    secured: dict[str, Any] = {"connection_class": SSLConnection, **tls} if address.tls else {}
    return ConnectionPool(host=host, port=port, **ours, **secured)


def _sentinel_pool(address: StoreAddress, timed: dict[str, Any], ours: dict[str, Any]) -> ConnectionPool:
    from redis.sentinel import Sentinel, SentinelConnectionPool

    secured = {"ssl": True} if address.tls else {}
    asked = timed | secured | _login(address.sentinel_login)
    sentinel = Sentinel(address.hosts, sentinel_kwargs=asked)
    assert address.service is not None
    return SentinelConnectionPool(address.service, sentinel, **ours, **secured)


def _login(login: Any) -> dict[str, str]:
    given = {"username": login.username, "password": login.password}
    return {name: value for name, value in given.items() if value is not None}


def _tls(address: StoreAddress) -> dict[str, Any]:
    if not address.tls:
        return {}
    files = {"ca_certs": address.ca, "certfile": address.cert, "keyfile": address.key}
    return {"cert_reqs": "required", "check_hostname": True} | {name: file for name, file in files.items() if file}
