"""The proxy that a team lets the solving service solve through."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pytest_captcha_qa.errors import ConfigError

_SHAPE = "write it as http://user:password@host:port (or https, socks4, socks5, socks5h)"


@dataclass(frozen=True, slots=True)
class SolverProxy:
    """`kind` is its scheme in capitals, as the services name it; `address` is `user:password@host:port`, a secret."""

    kind: str
    address: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> SolverProxy:
        """Return the proxy that a URL names.

        Raises:
            ConfigError: it names none; the message does not repeat it.
        """
        if not text.isprintable() or " " in text or not text.isascii():
            raise ConfigError(f"it is no proxy: {_SHAPE}")
        try:
            parts = urlsplit(text)
            usable = parts.scheme and parts.hostname and parts.port and not (parts.path.strip("/") or parts.query)
        except ValueError:
            usable = None
        if not usable:
            raise ConfigError(f"it is no proxy: {_SHAPE}")
        return cls(parts.scheme.upper(), parts.netloc)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: user and password, together and the password alone."""
        login, at, _ = self.address.rpartition("@")
        return (login, login.partition(":")[2]) if at else ()
