"""The address of a shared store, parsed once; what it shows holds no password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

STORE_FORMS = (
    "redis://[user:password@]host[:port][/db], rediss://... for TLS, unix:///path/of/socket[?db=N], or "
    "redis+sentinel://[user:password@]host[:port],host[:port],.../service[/db] (rediss+sentinel://... for TLS)"
)
_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z+]+)://(?:(?P<login>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?\Z"
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?\Z")
_PORT, _SENTINEL_PORT = 6379, 26379
_TLS_OPTIONS = frozenset({"ca", "cert", "key"})
_SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})


class StoreAddressRefused(ValueError):
    """The text is no address of a store; the message says why and shows nothing of it."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in; both are None where nobody has to."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a Redis or Valkey stands.

    `hosts`: the server, or the Sentinels that know the primary called `service`; `path`: a Unix socket in place of
    hosts; `ca`, `cert`, `key`: PEM files for TLS.
    """

    hosts: tuple[tuple[str, int], ...] = ()
    path: str | None = None
    service: str | None = None
    db: int = 0
    login: Login = Login()
    sentinel_login: Login = Login()
    tls: bool = False
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """Return the address that a text says.

        Raises:
            StoreAddressRefused: it is none of the known forms.
        """
        found = _ADDRESS.match(text.strip())
        if found is None or found["scheme"] not in _SCHEMES:
            raise StoreAddressRefused(f"it is no address of a shared store; write {STORE_FORMS}")
        tls, sentinel = found["scheme"].startswith("rediss"), found["scheme"].endswith("sentinel")
        options = _options(found["query"] or "", _allowed(found["scheme"]))
        login = _login(found["login"])
        path = unquote(found["path"] or "")
        if found["scheme"] == "unix":
            return cls(path=_socket(path, found["hosts"]), db=_db(options.get("db", "")), login=login)
        service, _, db = path.strip("/").partition("/") if sentinel else ("", "", path.strip("/"))
        if sentinel and not service:
            raise StoreAddressRefused(
                "it names no service: the Sentinels' name of the primary, after the hosts and a /"
            )
        return cls(
            hosts=tuple(_hosts(found["hosts"], _SENTINEL_PORT if sentinel else _PORT, several=sentinel)),
            service=service or None,
            db=_db(options.get("db", db)),
            login=login,
            sentinel_login=Login(options.get("sentinel_username"), options.get("sentinel_password")),
            tls=tls,
            **{name: options[name] for name in _TLS_OPTIONS & options.keys()},
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The passwords in it, for whoever removes them from texts."""
        return tuple(each.password for each in (self.login, self.sentinel_login) if each.password)

    def __str__(self) -> str:
        """Where it is, without any login and option."""
        scheme = "rediss" if self.tls else "redis"
        if self.path is not None:
            return f"unix://{self.path}"
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{scheme}+sentinel://{hosts}/{self.service}" if self.service else f"{scheme}://{hosts}/{self.db}"


def _allowed(scheme: str) -> frozenset[str]:
    options = frozenset({"db"})
    if scheme.startswith("rediss"):
        options |= _TLS_OPTIONS
    return options | _SENTINEL_OPTIONS if scheme.endswith("sentinel") else options


def _options(query: str, allowed: frozenset[str]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not options.keys() <= allowed:
        raise StoreAddressRefused(f"it has an option that is not known there; known are: {', '.join(sorted(allowed))}")
    return options


def _login(text: str | None) -> Login:
    username, _, password = (text or "").partition(":")
    return Login(unquote(username) or None, unquote(password) or None)


def _socket(path: str, host: str) -> str:
    if host or path in ("", "/"):
        raise StoreAddressRefused("a Unix socket is written unix:///path/of/socket, with three slashes")
    return path


def _hosts(text: str, port: int, *, several: bool) -> Iterator[tuple[str, int]]:
    parts = text.split(",")
    if len(parts) > 1 and not several:
        raise StoreAddressRefused("it names several hosts; only redis+sentinel:// takes more than one")
    for part in parts:
        found = _HOST.match(part)
        if found is None or not 1 <= int(found["port"] or port) <= 65535:
            raise StoreAddressRefused(f"one of its hosts is none; write {STORE_FORMS}")
        yield found["host"].strip("[]"), int(found["port"] or port)


def _db(text: str) -> int:
    if text and not (text.isascii() and text.isdigit()):
        raise StoreAddressRefused("its database is not a number, such as the 0 in redis://localhost:6379/0")
    return int(text or 0)
