"""How one environment is reached: what is read from outside the file for that, and in which shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_captcha_qa.config.variables import Reference
from pytest_captcha_qa.errors import ConfigError


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """How the environment is reached; the methods read secrets, so call them where they are used."""

    basic_auth_ref: Reference | None = None
    headers_ref: Reference | None = None
    cookie_ref: Reference | None = None
    proxy_ref: Reference | None = None
    client_cert: Path | None = None
    ca: Path | None = None

    def basic_auth(self) -> tuple[str, str] | None:
        """Return user and password, written `user:password`.

        Raises:
            MissingSecret: there is nothing where it should stand.
            ConfigError: it has no colon.
        """
        if self.basic_auth_ref is None:
            return None
        user, colon, password = self.basic_auth_ref.text().partition(":")
        if not colon:
            raise ConfigError(f"{self.basic_auth_ref.named} must be written user:password")
        return user, password

    def headers(self) -> dict[str, str]:
        """Return the extra headers, written as a JSON object or as lines `Name: value`.

        Raises:
            MissingSecret: there is nothing where they should stand.
            ConfigError: they are written in another way.
        """
        return _pairs(self.headers_ref, "\n", ":", "a JSON object or as lines `Name: value`")

    def cookies(self) -> dict[str, str]:
        """Return the cookies, written as a JSON object or `name=value; name=value`.

        Raises:
            MissingSecret: there is nothing where they should stand.
            ConfigError: they are written in another way.
        """
        return _pairs(self.cookie_ref, ";", "=", "a JSON object or as `name=value; name=value`")

    def proxy(self) -> str | None:
        """Return the URL of the proxy, user info included.

        Raises:
            MissingSecret: there is nothing where it should stand.
        """
        return self.proxy_ref.text() if self.proxy_ref else None

    def references(self) -> Iterator[Reference]:
        """Yield all that is read from outside the file."""
        named = (self.basic_auth_ref, self.headers_ref, self.cookie_ref, self.proxy_ref)
        yield from (reference for reference in named if reference is not None)

    def readers(self) -> tuple[Callable[[], object], ...]:
        """Return what reads a value that must have a certain shape."""
        return self.basic_auth, self.headers, self.cookies

    def absent_files(self) -> Iterator[tuple[str, Path]]:
        """Yield the keys that name a file for TLS which is not there, and that file."""
        for key, path in (("client_cert_file", self.client_cert), ("ca_file", self.ca)):
            if path is not None and not path.is_file():
                yield key, path


def _pairs(reference: Reference | None, between: str, within: str, written: str) -> dict[str, str]:
    if reference is None:
        return {}
    text = reference.text()
    if text.lstrip().startswith("{"):
        found = _json_object(text)
    else:
        lines = [line.partition(within) for line in text.split(between) if line.strip()]
        found = {name.strip(): value.strip() for name, mark, value in lines if mark}
        found = found if len(found) == len(lines) else {}
    if not found:
        raise ConfigError(f"{reference.key}: {reference.named} must be written as {written}")
    return found


def _json_object(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if all(isinstance(inner, str) for inner in value.values()) else {}
