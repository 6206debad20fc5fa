"""Builds small objects from the JSON that came to the control endpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, TypeVar, get_args, get_type_hints

_T = TypeVar("_T")


class DescriptionProblem(Exception):
    """A description cannot be used; the message says why."""


def build(cls: type[_T], values: Mapping[str, Any]) -> _T:
    """Return the dataclass `cls` with these fields: texts, choices, yes or no, and numbers from 0.

    Raises DescriptionProblem.
    """
    found = checked(cls, values)
    for spec in fields(cls):  # type: ignore[arg-type]
        if spec.default is MISSING and spec.default_factory is MISSING and spec.name not in found:
            raise DescriptionProblem(f"{spec.name!r} is needed here")
    return cls(**found)


def checked(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as fields of the dataclass `cls`, of which not all need be there. Raises DescriptionProblem."""
    hints = get_type_hints(cls)
    known = {spec.name for spec in fields(cls)}
    found = {}
    for name, value in values.items():
        if name not in known:
            raise DescriptionProblem(f"there is no {name!r} here")
        found[name] = _as(value, hints[name], name)
    return found


def _as(value: Any, hint: Any, name: str) -> Any:
    """Return the value as what a field holds."""
    choices = get_args(hint)
    kind = choices[0] if type(None) in choices else hint
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in list(kind):
            raise DescriptionProblem(f"{name!r} is one of {', '.join(kind)}")
        return kind(value)
    if not _fits(value, kind):
        raise DescriptionProblem(f"{name!r} cannot be {value!r}")
    return value


def _fits(value: Any, kind: Any) -> bool:
    if kind in (str, bool):
        return isinstance(value, kind)
    kinds = (int, float) if kind is float else (int,)
    return isinstance(value, kinds) and not isinstance(value, bool) and value >= 0 and math.isfinite(value)
