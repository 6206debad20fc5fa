"""The tables `success`, `refused`, `verify` and `widget` of a form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pytest_captcha_qa.config.problems import nearest
from pytest_captcha_qa.config.table import Table, Text, VariableName
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.body import Scalar
from pytest_captcha_qa.model.form import VerifySpec, VerifyVia, WidgetSpec
from pytest_captcha_qa.model.identity import PLACEHOLDERS
from pytest_captcha_qa.model.url import Url, UrlRefused

_ANY_ORIGIN = "https://any.example"
# Wider than what is replaced, so that {Identity.Email} is refused and not posted as it stands.
_NAME_IN_BRACES = re.compile(r"\{([A-Za-z_][\w .-]*)\}")


def template(text: str) -> str:
    """Return a text whose names in braces are all known.

    Raises:
        ValueError: one is not; the message offers the nearest that is.
    """
    for name in _NAME_IN_BRACES.findall(text):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{{{name}}} is no known name{nearest(name, PLACEHOLDERS)}")
    return text


def site_path(text: str) -> str:
    """Return a path on the site, perhaps with a query.

    Raises:
        ValueError: it does not start with one slash, or could be read in two ways.
    """
    if not text.startswith("/") or text.startswith("//"):
        raise ValueError("must be a path that starts with one slash, such as /signup")
    if "#" in text:
        raise ValueError("holds a fragment (#...), which never reaches a server")
    _require_url(_ANY_ORIGIN + text)
    return text


def page_path(text: str) -> str:
    """Return the path of a page; names in braces mean nothing in it.

    Raises:
        ValueError: it is no path, or holds braces.
    """
    if "{" in text or "}" in text:
        raise ValueError("holds braces; names such as {identity.email} work in fields only")
    return site_path(text)


def path_or_url(text: str) -> str:
    """Return a path on the site or an absolute URL, perhaps with names in braces.

    Raises:
        ValueError: it is neither, or could be read in two ways.
    """
    if not text.startswith(("http://", "https://")):
        return template(site_path(text))
    _require_url(text)
    return template(text)


def url_without_names(text: str) -> str:
    """Return an absolute URL; names in braces mean nothing in it.

    Raises:
        ValueError: it could be read in two ways, or holds braces.
    """
    _require_url(text)
    if "{" in text or "}" in text:
        raise ValueError("holds braces; names such as {identity.email} work in fields only")
    return text


def _require_url(text: str) -> None:
    try:
        Url.parse(text)
    except UrlRefused as refused:
        raise ValueError(f"is no usable address: {refused}") from None


def _statuses(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _dotted(value: object) -> object:
    """Write nested tables as dotted paths: TOML reads `data.ok = true` and `"data.ok" = true` differently."""
    if not isinstance(value, Mapping):
        return value
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            below = _dotted(inner)
            assert isinstance(below, dict)
            flat.update({f"{name}.{path}": leaf for path, leaf in below.items()})
        else:
            flat[name] = inner
    return flat


def _scalar(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("must be a text, a number, true or false")
    return value


Status = Annotated[int, Field(strict=True, ge=100, le=599)]
Template = Annotated[str, AfterValidator(template)]


class RuleTable(Table):
    """A condition on an answer; every part that is given must hold."""

    status: Annotated[tuple[Status, ...], BeforeValidator(_statuses)] = ()
    location: Text | None = None
    text: Text | None = None
    absent: Text | None = None
    json_: Annotated[dict[str, Annotated[Any, AfterValidator(_scalar)]], BeforeValidator(_dotted)] = Field(
        default_factory=dict, alias="json"
    )
    all: tuple[RuleTable, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> RuleTable:
        if not (self.status or self.location or self.text or self.absent or self.json_ or self.all):
            raise ValueError("is empty; give at least one of status, location, text, absent, json, all")
        return self

    def rule(self) -> Rule:
        """Return the rule as the engine knows it."""
        expected: Mapping[str, Scalar] = MappingProxyType(dict(self.json_))
        inner = tuple(rule.rule() for rule in self.all)
        return Rule(self.status, self.location, self.text, self.absent, expected, inner)


class WidgetTable(Table):
    """Which of several widgets is meant."""

    selector: Text = Field(description="a CSS selector")

    def widget(self) -> WidgetSpec:
        """Return the widget as the engine knows it."""
        return WidgetSpec(self.selector)


class VerifyTable(Table):
    """How the verdict on a token is read."""

    twins: ClassVar[tuple[tuple[str, ...], ...]] = (("secret_env", "secret_file"), ("url_env", "url_file"))

    via: VerifyVia = VerifyVia.FORM
    url: Annotated[str, AfterValidator(path_or_url)] | None = None
    secret_env: VariableName | None = None
    secret_file: Text | None = None
    url_env: VariableName | None = None
    url_file: Text | None = None
    success: RuleTable | None = None
    refused: RuleTable | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what `via` needs and lacks, and what it has no use for."""
        yield from super().faults()
        useful = _USEFUL[self.via]
        for key in sorted(self.model_fields_set - {"via"}):
            if key not in useful:
                users = " and ".join(repr(str(via)) for via, keys in _USEFUL.items() if key in keys)
                yield key, f"means nothing with via = {str(self.via)!r}; it is for {users}"
        if "url" in useful and self.url is None:
            yield "url", f"is missing: via = {str(self.via)!r} needs the path or URL to ask"
        if "secret_env" in useful and self.secret_env is None and self.secret_file is None:
            yield "secret_env", "is missing: siteverify needs secret_env (a variable) or secret_file"

    def spec(self) -> VerifySpec:
        """Return the verification as the engine knows it."""
        rules: dict[str, Any] = {"success": self.success.rule()} if self.success else {}
        if self.refused:
            rules["refused"] = self.refused.rule()
        return VerifySpec(
            self.via,
            url=self.url,
            secret_env=self.secret_env,
            secret_file=self.secret_file,
            url_env=self.url_env,
            **rules,
        )


_JUDGED = frozenset({"url", "success", "refused"})
_USEFUL: dict[VerifyVia, frozenset[str]] = {
    VerifyVia.FORM: frozenset(),
    VerifyVia.LOOKUP: _JUDGED,
    VerifyVia.ENDPOINT: _JUDGED,
    VerifyVia.SITEVERIFY: frozenset({"secret_env", "secret_file", "url_env", "url_file"}),
}
