"""Builds small objects from the JSON that came to the control endpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

_T = TypeVar("_T")


class DescriptionProblem(Exception):
    """A description cannot be used; the message says why."""


def build(cls: type[_T], values: Mapping[str, Any]) -> _T:
    """Return the dataclass `cls` with these fields: texts, and numbers from 0. Raises DescriptionProblem."""
    hints = get_type_hints(cls)
    known = {spec.name: spec for spec in fields(cls)}  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in known:
            raise DescriptionProblem(f"there is no {name!r} here")
        if not _fits(value, hints[name]):
            raise DescriptionProblem(f"{name!r} cannot be {value!r}")
    for name, spec in known.items():
        if spec.default is MISSING and name not in values:
            raise DescriptionProblem(f"{name!r} is needed here")
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    if hint is str:
        return isinstance(value, str)
    kinds = (int, float) if hint is float else (int,)
    return isinstance(value, kinds) and not isinstance(value, bool) and value >= 0 and math.isfinite(value)
