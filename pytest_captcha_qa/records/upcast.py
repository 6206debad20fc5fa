"""Lines of older schema versions, brought to the present one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_captcha_qa.model.record import SCHEMA_VERSION

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# Schema version -> what makes a line of the next version out of one of this. Version 1 is the first.
UPCASTERS: Mapping[int, Upcaster] = {}


def upcast(
    line: dict[str, Any],
    version: int,
    *,
    upcasters: Mapping[int, Upcaster] = UPCASTERS,
    current: int = SCHEMA_VERSION,
) -> dict[str, Any]:
    """Return a line of schema `version` as one of `current`; a newer line comes back as it is."""
    for step in range(version, current):
        line = upcasters[step](line)
    return line


def readable(version: int, *, upcasters: Mapping[int, Upcaster] = UPCASTERS, current: int = SCHEMA_VERSION) -> bool:
    """Return whether every step from that version to the present one is known; a newer one always is."""
    return all(step in upcasters for step in range(version, current))
