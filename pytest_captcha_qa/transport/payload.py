"""What goes along with a request, and the encodings of its body."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import urlencode

from requests import Request

_NOTHING: Mapping[str, str] = MappingProxyType({})
Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Payload:
    """Headers, cookies and body of one request; none of them is in its repr.

    `cookies` go beside those of the session (a solution may bring some); `user_agent` replaces the fixed one.
    """

    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    cookies: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    user_agent: str | None = field(default=None, repr=False)

    def having(
        self,
        headers: Mapping[str, str] = _NOTHING,
        *,
        cookies: Mapping[str, str] = _NOTHING,
        user_agent: str | None = None,
    ) -> Payload:
        """Return the same payload with more headers and cookies, and another user agent if one is given."""
        return replace(
            self,
            headers={**self.headers, **headers},
            cookies={**self.cookies, **cookies},
            user_agent=user_agent or self.user_agent,
        )


@dataclass(frozen=True, slots=True)
class File:
    """One file of a multipart body."""

    field: str
    name: str
    content: bytes
    content_type: str = "application/octet-stream"


NO_PAYLOAD = Payload()


def urlencoded(pairs: Pairs, *, charset: str = "utf-8") -> Payload:
    """Return a form body; order and repeated names are kept, what `charset` lacks becomes a reference."""
    body = urlencode(list(pairs), encoding=charset, errors="xmlcharrefreplace").encode("ascii")
    return Payload(body, {"Content-Type": "application/x-www-form-urlencoded"})


def multipart(pairs: Pairs, files: Iterable[File] = ()) -> Payload:
    """Return a multipart form body; fields first, then files. It is multipart also without any file."""
    # A part without a file name is how `requests` writes a plain field.
    parts: list[tuple[str, tuple[str | None, bytes] | tuple[str | None, bytes, str]]]
    parts = [(name, (None, value.encode())) for name, value in pairs]
    parts += [(file.field, (file.name, file.content, file.content_type)) for file in files]
    prepared = Request("POST", "http://localhost/", files=parts).prepare()
    body = prepared.body if isinstance(prepared.body, bytes) else b""
    return Payload(body, {"Content-Type": prepared.headers["Content-Type"]})


def json_body(value: object) -> Payload:
    """Return a JSON body in UTF-8."""
    return Payload(json.dumps(value, ensure_ascii=False).encode(), {"Content-Type": "application/json"})
