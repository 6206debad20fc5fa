"""How tables are laid over each other: environments over those they extend, forms over the shared ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_captcha_qa.config.document import Document, KeyPath
from pytest_captcha_qa.config.environments import EnvTable, HttpTable

# One statement each: a rule that took its status from one table and its text from another would be nobody's.
_WHOLE = frozenset({"success", "refused", "verify", "widget", "submit", "confirm", "release_from"})
_TWINS = (*EnvTable.twins, *HttpTable.twins)

Tables = Mapping[str, Any]


def overlay(lower: Tables, upper: Tables) -> dict[str, Any]:
    """Return `lower` with the keys of `upper` in their place.

    Tables are merged key by key, but a rule, `verify`, `widget`, `submit`, `confirm` and `release_from` are replaced as
    a whole.
    A key also takes the place of its twins, as `base_url_env` that of `base_url`.
    """
    replaced = {twin for group in _TWINS if not upper.keys().isdisjoint(group) for twin in group}
    merged = {key: value for key, value in lower.items() if key not in replaced}
    for key, value in upper.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = overlay(below, value) if both and key not in _WHOLE else value  # type: ignore[arg-type]
    return merged


def lineage(environments: Tables, name: str) -> tuple[list[str], str | None]:
    """Return the environment, what it extends, and so on, with what is wrong about that in words, or None."""
    chain = [name]
    while True:
        parent = environments[chain[-1]].get("extends")
        if parent is None:
            return chain, None
        if not isinstance(parent, str):
            return chain, "must be the name of one other environment"
        if parent in chain:
            return chain, f"goes round in a circle: {' extends '.join([*chain, parent])}"
        if not isinstance(environments.get(parent), Mapping):
            return chain, f"names {parent!r}, which is no environment"
        chain.append(parent)


def effective(document: Document, chain: list[str], *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the whole table of an environment: the shared forms, then each of the chain from its far end.

    `without`: slugs of forms to leave out, beside those that are dropped.
    """
    merged: dict[str, Any] = {"forms": _table(document.tables.get("forms"))}
    for name in reversed(chain):
        merged = overlay(merged, document.tables["env"][name])
    merged.pop("extends", None)
    forms = merged.get("forms")
    if isinstance(forms, Mapping):
        left_out = {*without, *(slug for slug, form in forms.items() if _is_dropped(form))}
        merged["forms"] = {slug: form for slug, form in forms.items() if slug not in left_out}
    return merged


def dropped_in_vain(document: Document, chain: list[str]) -> list[str]:
    """Return the forms that an environment drops although nothing it builds on has them."""
    own = _table(document.tables["env"][chain[0]].get("forms"))
    below = [("forms",), *(("env", name, "forms") for name in chain[1:])]
    return [
        slug
        for slug, form in own.items()
        if _is_dropped(form) and not any(document.holds((*place, slug)) for place in below)
    ]


def unfounded_overrides(document: Document, chain: list[str]) -> dict[KeyPath, list[str]]:
    """Return where forms are overridden that nothing below has, each with the forms there are below.

    A table with path and type is no override but a form of its own.
    """
    found: dict[KeyPath, list[str]] = {}
    below = _table(document.tables.get("forms"))
    for name in reversed(chain):
        own = _table(document.tables["env"][name].get("forms"))
        for slug, form in own.items():
            unfounded = slug not in below and not _is_dropped(form)
            if unfounded and not {"path", "type"} <= _table(form).keys():
                found["env", name, "forms", slug] = list(below)
        below = {**below, **own}
    return found


def locate(document: Document, chain: list[str], path: KeyPath) -> KeyPath:
    """Return where in the file a key of the merged environment stands, or where it should."""
    places = [("env", name, *path) for name in chain]
    if path[:1] == ("forms",):
        places.append(path)
    for place in places:
        if document.holds(place):
            return place
    # A missing key belongs where most of its table is written: shared forms before overrides.
    return max(reversed(places), key=lambda place: document.depth(place) - (len(place) - len(path)))


def _table(value: object) -> Tables:
    return value if isinstance(value, Mapping) else {}


def _is_dropped(form: object) -> bool:
    return isinstance(form, Mapping) and form.get("enabled") is False
