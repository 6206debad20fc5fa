"""A submit before it is sent, which a probe may change; what sends it asks for a grant for its target as it then is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.model.url import Url

_CSRF = re.compile(r"csrf|xsrf|^authenticity_token$|^_token$|RequestVerificationToken", re.IGNORECASE)
_CSRF_HEADERS = ("X-CSRFToken", "X-CSRF-Token", "X-XSRF-TOKEN", "RequestVerificationToken")
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Wire(StrEnum):
    """How the body of a draft is written."""

    FORM = "form"
    JSON = "json"
    MULTIPART = "multipart"
    TEXT = "text"


@dataclass(frozen=True, slots=True, repr=False)
class Draft:
    """One submit: `pairs` are its fields in order, by dotted path where `nested` is the body they go into.

    `token_fields` are those that take the solution; `query` goes beside the target's own; `headers` and `cookies` go
    beside those of a browser; `sessionless`: without the cookies that the page has set. A value that is no text can be
    written as JSON only. It prints without any value.
    """

    method: str
    target: Url
    wire: Wire
    pairs: tuple[tuple[str, Any], ...]
    token_fields: tuple[str, ...]
    nested: Mapping[str, Any] | None = None
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    cookies: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    sessionless: bool = False

    def without_token(self) -> Draft:
        """Return it without the fields that take the solution."""
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair[0] not in self.token_fields))

    def with_token(self, value: object) -> Draft:
        """Return it with one value in each field that takes a part of the solution."""
        return self.without_token().adding(*((name, value) for name in self.token_fields))

    def adding(self, *pairs: tuple[str, Any]) -> Draft:
        """Return it with more fields at its end; names may repeat."""
        return replace(self, pairs=(*self.pairs, *pairs))

    def before(self, *pairs: tuple[str, Any]) -> Draft:
        """Return it with more fields at its beginning."""
        return replace(self, pairs=(*pairs, *self.pairs))

    def sent_as(self, wire: Wire) -> Draft:
        """Return it with its body written in another way; fields below others become fields of their own."""
        return replace(self, wire=wire, nested=None if wire is not Wire.JSON else self.nested)

    def by(self, method: str) -> Draft:
        """Return it with another method; GET carries the fields in its query."""
        return replace(self, method=method)

    def at(self, target: Url) -> Draft:
        """Return it for another address."""
        return replace(self, target=target)

    def asking(self, *query: tuple[str, str]) -> Draft:
        """Return it with more in the query of its target."""
        return replace(self, query=(*self.query, *query))

    def carrying(self, headers: Mapping[str, str] = _NOTHING, *, cookies: Mapping[str, str] = _NOTHING) -> Draft:
        """Return it with more headers and cookies."""
        return replace(self, headers={**self.headers, **headers}, cookies={**self.cookies, **cookies})

    def with_csrf_headers(self) -> Draft:
        """Return it with the value of its CSRF field in the headers that frameworks read it from, too.

        Django, Rails, Laravel and ASP.NET look into fields only in a POST of a form; a script sends the header.
        """
        value = next((str(value) for name, value in self.pairs if _CSRF.search(name)), None)
        return self if value is None else self.carrying(dict.fromkeys(_CSRF_HEADERS, value))

    def without_session(self) -> Draft:
        """Return it as sent by a visitor whose session was lost."""
        return replace(self, sessionless=True)

    def __repr__(self) -> str:
        return f"<Draft {self.method} {self.target.without_query} as {self.wire}>"


@dataclass(frozen=True, slots=True)
class Edited:
    """A change of a submit, and what it is called in a sentence: "the form with ..."."""

    called: str
    edit: Callable[[Draft], Draft]
