"""How the team's own environment is reached, and what may be set for that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_captcha_qa.errors import ConfigError

_NOTHING: Mapping[str, str] = MappingProxyType({})

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")  # a token of RFC 9110
_VALUE = re.compile(r"(?![ \t])[\t\x20-\x7e\xa0-\xff]*(?<![ \t])\Z")
_COOKIE_VALUE = re.compile(r"[\x20-\x3a\x3c-\x7e]*\Z")

_OF_EVERY_REQUEST = "is written anew for every request"
_OF_ONE_CONNECTION = "is about a single connection"
_RESERVED: Mapping[str, str] = MappingProxyType(
    {
        "user-agent": "is how a site knows these tests, and always the same",
        "host": "follows from the address",
        "cookie": "is made of the cookies, which `cookie_env` or `cookie_file` names",
        "proxy-authorization": "is made of the address of the proxy, which `proxy_env` names",
        "accept-encoding": _OF_EVERY_REQUEST,
        "content-encoding": _OF_EVERY_REQUEST,
        "content-length": _OF_EVERY_REQUEST,
        "content-type": _OF_EVERY_REQUEST,
        "expect": _OF_EVERY_REQUEST,
        "connection": _OF_ONE_CONNECTION,
        "keep-alive": _OF_ONE_CONNECTION,
        "proxy-connection": _OF_ONE_CONNECTION,
        "te": _OF_ONE_CONNECTION,
        "trailer": _OF_ONE_CONNECTION,
        "transfer-encoding": _OF_ONE_CONNECTION,
        "upgrade": _OF_ONE_CONNECTION,
    }
)
"""Headers nobody may set, in lower case, each with why."""


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """How the team's own environment is reached (`[env.X.http]`); none of it ever goes elsewhere.

    `client_cert_file`: PEM with certificate and key; `ca_file`: PEM of the authorities to trust instead of the public
    ones; `proxy`: URL of an HTTP proxy, user info included. Loopback is never reached through it. `where`: the table of
    the configuration all this stands in.
    """

    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    cookies: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    basic_auth: tuple[str, str] | None = field(default=None, repr=False)
    client_cert_file: str | None = None
    ca_file: str | None = None
    proxy: str | None = field(default=None, repr=False)
    where: str = "http"

    def check(self, marks: Iterable[str]) -> None:
        """Return quietly if all of it can go along with a request; `marks` are names of headers the run sets itself.

        Raises:
            ConfigError: it cannot; the message names the setting and shows no value.
        """
        reserved = {**_RESERVED, **{mark.lower(): "names the run" for mark in marks}}
        problem = next(self._problems(reserved), None)
        if problem is not None:
            raise ConfigError(f"{self.where}.{problem}")

    def _problems(self, reserved: Mapping[str, str]) -> Iterator[str]:
        for name, path in (("ca_file", self.ca_file), ("client_cert_file", self.client_cert_file)):
            if path is not None and not Path(path).is_file():
                yield f"{name} names {path}, which is no file"
        for name, value in self.headers.items():
            yield from _header_problems(name, value, reserved)
        for name, value in self.cookies.items():
            yield from _cookie_problems(name, value)
        if self.basic_auth is not None and not _is_text(":".join(self.basic_auth)):
            yield "basic_auth holds a line break, a control character or bytes that are no text"
        if self.proxy is not None and not _is_proxy(self.proxy):
            yield "proxy is not the address of an HTTP proxy: write it as http://host:port"


def _header_problems(name: str, value: str, reserved: Mapping[str, str]) -> Iterator[str]:
    if not _NAME.match(name):
        yield "headers holds a name that no header can have"  # not shown, for it may be a value at the wrong place
    elif (reason := reserved.get(name.lower())) is not None:
        yield f"headers sets {name}, which {reason}; leave it out"
    elif not _VALUE.match(value):
        yield (
            f"headers has a value for {name} that cannot be sent: it begins or ends with a blank, or holds a line "
            "break, a control character or a letter beyond Latin-1"
        )


def _cookie_problems(name: str, value: str) -> Iterator[str]:
    if not _NAME.match(name):
        yield "cookie holds a name that no cookie can have"
    elif not _COOKIE_VALUE.match(value):
        yield (
            f"cookie has a value for {name} that cannot be sent: it holds a semicolon, a line break, a control "
            "character or a letter beyond ASCII"
        )


def _is_text(text: str) -> bool:
    return not any(ord(char) < 0x20 or ord(char) == 0x7F or "\ud800" <= char <= "\udfff" for char in text)


def _is_proxy(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return _is_text(url) and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or a broken IPv6 address
        return False
