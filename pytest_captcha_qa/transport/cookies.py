"""The cookies of a session as plain values, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import Cookie
from typing import Any

from pytest_captcha_qa.model.url import Origin

_DOTLESS = ".local"  # what the library adds to a host without a dot


@dataclass(frozen=True, slots=True)
class KeptCookie:
    """One cookie and the origin that set it; `expires` in seconds since the epoch, None at the end of the session.

    `host_only`: it goes to its own host and to no subdomain; `same_site` as the site wrote it, if it did.
    """

    origin: Origin
    name: str
    value: str = field(repr=False)
    domain: str
    path: str
    expires: int | None
    secure: bool
    http_only: bool
    host_only: bool
    same_site: str | None

    @classmethod
    def of(cls, origin: Origin, cookie: Cookie) -> KeptCookie:
        """Return what a jar holds of a cookie."""
        return cls(
            origin=origin,
            name=cookie.name,
            value=cookie.value or "",
            domain=cookie.domain,
            path=cookie.path,
            expires=cookie.expires,
            secure=cookie.secure,
            http_only=cookie.has_nonstandard_attr("HttpOnly"),
            host_only=not cookie.domain_specified,
            same_site=cookie.get_nonstandard_attr("SameSite"),
        )

    def for_jar(self) -> Cookie:
        """Return it as a jar takes it."""
        return Cookie(
            version=0,
            name=self.name,
            value=self.value,
            port=None,
            port_specified=False,
            domain=self.domain,
            domain_specified=not self.host_only,
            domain_initial_dot=self.domain.startswith("."),
            path=self.path,
            path_specified=True,
            secure=self.secure,
            expires=self.expires,
            discard=self.expires is None,
            comment=None,
            comment_url=None,
            rest=self._rest(),
        )

    def for_browser(self) -> dict[str, Any]:
        """Return it as an entry of `cookies` in the storage state of a Playwright context; its value is a secret."""
        return {
            "name": self.name,
            "value": self.value,
            "domain": self.domain.removesuffix(_DOTLESS) if self._dotless else self.domain,
            "path": self.path,
            "expires": -1 if self.expires is None else self.expires,
            "httpOnly": self.http_only,
            "secure": self.secure,
            "sameSite": (self.same_site or "Lax").capitalize(),
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; the cookie's is among them, so the result is a secret."""
        return {name: getattr(self, name) for name in self.__slots__} | {"origin": str(self.origin)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> KeptCookie:
        """Return the cookie that `to_json` gave."""
        return cls(**{**raw, "origin": Origin.parse(raw["origin"])})

    @property
    def _dotless(self) -> bool:
        return "." not in self.origin.host

    def _rest(self) -> dict[str, str]:
        marks = {"HttpOnly": ""} if self.http_only else {}
        return marks | ({"SameSite": self.same_site} if self.same_site else {})
