"""The tables `submit` and `csrf` of a form: what a script of the page would send."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.problems import meant
from pytest_captcha_qa.config.rules import page_path, template, url_without_names
from pytest_captcha_qa.config.table import Table, Text
from pytest_captcha_qa.config.variables import variable_name
from pytest_captcha_qa.model.body import copied, leaves, put
from pytest_captcha_qa.model.form import CsrfSpec, Encoding, SubmitSpec
from pytest_captcha_qa.model.identity import PLACEHOLDERS
from pytest_captcha_qa.model.token import TOKEN

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_NAME_IN_BRACES = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
# Our own, those that say where a request goes and how its body is read, and those that name who asks.
_OURS = frozenset(
    {
        *("host", "user-agent", "content-length", "content-type", "transfer-encoding", "accept-encoding"),
        *("connection", "keep-alive", "upgrade", "te", "trailer", "expect", "origin", "referer"),
        *("cookie", "authorization", "x-captcha-qa-run"),
    }
)


def header_name(text: str) -> str:
    """Return the name of a header that a form may set.

    Raises:
        ValueError: it is no name, or the header is ours.
    """
    if not _HEADER.match(text):
        raise ValueError("must be the name of a header, such as X-XSRF-TOKEN")
    if text.lower() in _OURS or text.lower().startswith(("sec-", "proxy-")):
        raise ValueError(f"cannot be {text}: that header is set by the client, or by env.NAME.http")
    return text


def field_value(value: object) -> object:
    """Return what a field is filled with: a text, the path of a file, or the name of a variable.

    Raises:
        ValueError: it is none of them.
    """
    if isinstance(value, str):
        return template(value)
    if isinstance(value, Mapping) and len(value) == 1:
        [(place, name)] = value.items()
        if place == "env" and isinstance(name, str):
            return {"env": variable_name(name)}
        if place == "file" and isinstance(name, str) and name:
            return dict(value)
    raise ValueError(
        'must be a text in quotes, a variable such as { env = "QA_PASSWORD" }, '
        'or a file such as { file = "fixtures/cat.png" }'
    )


def body_values(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body whose texts name nothing that looks like a name of ours and is none.

    Other braces stay as they are: GraphQL is full of them.

    Raises:
        ValueError: a text does, or a value is none that JSON knows.
    """
    for path, value in leaves(body):
        if isinstance(value, str):
            _check_names(path, value)
        elif not isinstance(value, int | float):
            raise ValueError(f"holds a date or time at {path}; write it as a text in quotes")
    return body


def token_places(value: object) -> object:
    """Return where the token goes: a path, or one for each part of the solution.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str) and value:
        return value
    paths = list(value.values()) if isinstance(value, Mapping) else []
    if paths and all(isinstance(path, str) and path for path in paths):
        return value
    raise ValueError('must be a dotted path, such as "input.captchaToken", or { part = path } for several parts')


def _check_names(path: str, text: str) -> None:
    for name in _NAME_IN_BRACES.findall(text):
        if name not in PLACEHOLDERS and (name.startswith("identity.") or meant(name, PLACEHOLDERS)):
            raise ValueError(f"{{{name}}} at {path} is no known name{meant(name, PLACEHOLDERS)}")


def _target(text: str) -> str:
    return url_without_names(text) if text.startswith(("http://", "https://")) else page_path(text)


class CsrfTable(Table):
    """Which value of the page goes into which header."""

    twins: ClassVar[tuple[tuple[str, ...], ...]] = (("cookie", "meta", "field"),)

    header: Annotated[str, AfterValidator(header_name)] = Field(description="the header that carries the value")
    cookie: Text | None = None
    meta: Text | None = None
    field: Text | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield whether it says exactly one of the three places."""
        yield from super().faults()
        if self.cookie is None and self.meta is None and self.field is None:
            yield "", "says no place of the value: give one of cookie, meta and field"

    def csrf(self) -> CsrfSpec:
        """Return it as the engine knows it."""
        return CsrfSpec(self.header, self.cookie, self.meta, self.field)


class SubmitTable(Table):
    """What is sent in place of an HTML form."""

    url: Annotated[str, AfterValidator(_target)] = Field(description="the path or URL that takes the submit")
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    encoding: Encoding = Encoding.JSON
    body: Annotated[dict[str, Any], AfterValidator(body_values)] = Field(default_factory=dict)
    token_at: Annotated[Any, AfterValidator(token_places)] = None
    csrf: CsrfTable | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what the encoding cannot carry, and places of the token that the body does not have."""
        yield from super().faults()
        flat = self.encoding is not Encoding.JSON
        for name, value in self.body.items():
            if flat and isinstance(value, Mapping | list):
                yield (
                    f"body.{name}",
                    f"must be a single value: encoding = {str(self.encoding)!r} has no tables or lists",
                )
        if not flat and any("." in name for name in _names(self.body)):
            yield "body", "has a key with a dot, which a dotted path cannot name; write a table within it"
        for key, message in self.misplaced(self.places.values(), "token_at"):
            yield key, message
        for key, message in self.csrf.faults() if self.csrf else ():
            yield f"csrf.{key}" if key else "csrf", message

    def misplaced(self, paths: Iterable[str], key: str) -> Iterable[tuple[str, str]]:
        """Yield the key for each path that the body has no place for."""
        body: dict[str, Any] = copied(self.body)
        for path in paths if self.encoding is Encoding.JSON else ():
            try:
                put(body, path, "")
            except ValueError as wrong:
                yield key, f"has no place in the body: {wrong}"

    @property
    def places(self) -> dict[str, str]:
        """Where each part of the solution goes, as far as it is said."""
        return {TOKEN: self.token_at} if isinstance(self.token_at, str) else dict(self.token_at or {})

    def spec(self) -> SubmitSpec:
        """Return it as the engine knows it."""
        csrf = self.csrf.csrf() if self.csrf else None
        body, places = MappingProxyType(self.body), MappingProxyType(self.places)
        return SubmitSpec(self.url, self.method, self.encoding, body, places, csrf)


def _names(body: object) -> Iterable[str]:
    for name, inner in body.items() if isinstance(body, Mapping) else enumerate(body if isinstance(body, list) else ()):
        yield str(name)
        yield from _names(inner)
