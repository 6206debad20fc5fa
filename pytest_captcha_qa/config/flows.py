"""What surrounds the submit of a form: `confirm`, `variants`, `rate`, and functions of the team."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pytest_captcha_qa.config.problems import NO_SECRETS, names_a_secret
from pytest_captcha_qa.config.rules import RuleTable, path_or_url
from pytest_captcha_qa.config.submits import header_name
from pytest_captcha_qa.config.table import Number, Table, Text
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.form import ConfirmSpec, VariantSpec

_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z", re.ASCII)
_RATE = re.compile(r"([1-9]\d{0,5})/(s|min|h)\Z")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z")
_PARTS = ("status", "location", "text", "absent", "json", "all")


def function_name(text: str) -> str:
    """Return the name of a function, written `package.module:name`.

    Raises:
        ValueError: it is written in another way.
    """
    if not _FUNCTION.match(text):
        raise ValueError("must name a function of yours as package.module:name, such as qa.flows:cart_to_checkout")
    return text


def rate(text: str) -> str:
    """Return how often something may be done, such as 5/min.

    Raises:
        ValueError: it is written in another way.
    """
    if not _RATE.match(text):
        raise ValueError("must be a number of submits per s, min or h, such as 5/min")
    return text


def seconds_between(text: str | None) -> float:
    """Return the seconds between two submits at a rate, 0 without one."""
    found = _RATE.match(text or "")
    return _SECONDS[found.group(2)] / int(found.group(1)) if found else 0.0


def _variant_id(text: str) -> str:
    if not _ID.match(text):
        raise ValueError("must be a short name: letters, digits, _ and - only")
    return text


def _shown_to_the_site(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        header_name(name)
        if names_a_secret(name):
            raise ValueError(f"holds {name}: {NO_SECRETS}; name a variable with env.NAME.http.headers_env")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"holds a value of {name} that cannot stand in a header")
    return headers


def _function_as_table(value: object) -> object:
    return {"function": value} if isinstance(value, str) else value


Function = Annotated[str, AfterValidator(function_name)]
Rate = Annotated[str, AfterValidator(rate)]


class VariantTable(Table):
    """The same form with other headers."""

    id: Annotated[str, AfterValidator(_variant_id)] = Field(description="a short name, which tests and records use")
    headers: Annotated[dict[str, Text], AfterValidator(_shown_to_the_site)] = Field(
        min_length=1, description="what this visitor's browser sends, such as { Accept-Language = 'ru' }"
    )

    def variant(self) -> VariantSpec:
        """Return it as the engine knows it."""
        return VariantSpec(self.id, MappingProxyType(self.headers))


class ConfirmTable(RuleTable):
    """Where the effect of an accepted submit shows: an address and what it must answer, or a function."""

    url: Annotated[str, AfterValidator(path_or_url)] | None = None
    function: Function | None = None
    within: Annotated[Number, Field(gt=0, le=60)] = 10.0

    @model_validator(mode="after")
    def _says_something(self) -> ConfirmTable:
        if (self.url is None) == (self.function is None):
            raise ValueError("needs a url and a rule on its answer, or a function (package.module:name)")
        ruled = bool(self.status or self.location or self.text or self.absent or self.json_ or self.all)
        if self.url is not None and not ruled:
            raise ValueError(f"says nothing of the answer; give at least one of {', '.join(_PARTS)}")
        if self.function is not None and ruled:
            raise ValueError("has a rule and a function; the function says itself whether the effect is there")
        return self

    def spec(self) -> ConfirmSpec:
        """Return it as the engine knows it."""
        return ConfirmSpec(self.url, self.rule() if self.url else Rule(), self.function, self.within)


Confirm = Annotated[ConfirmTable, BeforeValidator(_function_as_table)]


def variant_faults(variants: Iterable[VariantTable]) -> Iterable[tuple[str, str]]:
    """Yield the ids that stand twice."""
    seen: set[str] = set()
    for variant in variants:
        if variant.id in seen:
            yield "variants", f"has two with the id {variant.id!r}"
        seen.add(variant.id)


def file_paths(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that are filled with a file, and its path as written."""
    return {name: value["file"] for name, value in fields.items() if isinstance(value, Mapping) and "file" in value}


def field_variables(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields whose value a variable holds, and its name."""
    return {name: value["env"] for name, value in fields.items() if isinstance(value, Mapping) and "env" in value}
