"""Values within a nested body, by dotted path: `variables.input.email`, `items.0.name`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Scalar = str | int | float | bool | None


def leaves(body: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Scalar]]:
    """Yield the dotted path and the value of everything in a body that is no table and no list."""
    if isinstance(body, Mapping):
        for name, inner in body.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(body, list | tuple):
        for number, inner in enumerate(body):
            yield from leaves(inner, (*path, str(number)))
    else:
        yield ".".join(path), body  # type: ignore[misc]


def copied(body: object) -> Any:
    """Return a body that can be changed: dicts and lists in place of whatever mappings and sequences it has."""
    if isinstance(body, Mapping):
        return {name: copied(inner) for name, inner in body.items()}
    return [copied(inner) for inner in body] if isinstance(body, list | tuple) else body


def put(body: dict[str, Any], path: str, value: object) -> None:
    """Set the value at a dotted path; tables that are not there are made, lists do not grow.

    Raises:
        ValueError: the path leads through a value that has nothing below it, or beyond the end of a list.
    """
    *steps, last = path.split(".")
    place: Any = body
    for step in steps:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[_index(place, step, path)]
    if isinstance(place, dict):
        place[last] = value
    else:
        place[_index(place, last, path)] = value


def pruned(body: object, paths: Iterable[str]) -> dict[str, Any]:
    """Return a copy of a body without what stands at these dotted paths; what stands in a list stays."""
    left: dict[str, Any] = copied(body)
    for path in paths:
        *steps, last = path.split(".")
        place: Any = left
        for step in steps:
            place = place.get(step) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    return left


def _index(place: object, step: str, path: str) -> int:
    if not isinstance(place, list):
        raise ValueError(f"{path} leads through a value that has nothing below it")
    if not step.isdecimal() or int(step) >= len(place):
        raise ValueError(f"{path} asks for {step} of a list of {len(place)}")
    return int(step)
