"""All probes of this version: M01 to M39 of reference/verification.md, section 3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pytest_captcha_qa.conformance.families import load, page, replay, route, shape, token, vendor
from pytest_captcha_qa.conformance.probe import Family, Probe
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.probing import Severity

_FAMILIES = (page, token, replay, shape, route, vendor, load)

CATALOGUE: Mapping[str, Probe] = {probe.id: probe for family in _FAMILIES for probe in family.PROBES}
"""By id, in the order in which they run: what reads first, what is destructive last."""

_ID = re.compile(r"[mM](\d{1,2})")
SAFE = "safe"
ALL = "all"


def select(asked: str) -> tuple[Probe, ...]:
    """Return the probes that `--captcha-probes` asks for, in the order of the catalogue.

    `safe` and `all`, ids and families add probes, a severity narrows them to those that are as bad; without any other
    word it narrows the safe ones. A family or severity brings no destructive probe, `all` and an id do.

    Raises:
        UnknownName: a word is none of these.
        ConfigError: the words select nothing, so that a run would be green without a probe.
    """
    words = [word.strip() for word in asked.split(",") if word.strip()]
    least = [Severity(word) for word in words if word in set(Severity)]
    adding = [word for word in words if word not in set(Severity)] or [SAFE] * bool(least)
    chosen = {id for word in adding for id in _meant(word)}
    kept = (probe for probe in CATALOGUE.values() if probe.id in chosen)
    found = tuple(probe for probe in kept if all(probe.severity.reaches(one) for one in least))
    if not found:
        raise ConfigError(
            f"--captcha-probes: {asked!r} selects no probe; a family brings no destructive one "
            f"(ask for {ALL!r} or an id), and a severity keeps only those that are at least as bad"
        )
    return found


def _meant(word: str) -> Iterable[str]:
    if word == ALL:
        return CATALOGUE
    safe = [probe for probe in CATALOGUE.values() if not probe.destructive]
    if word == SAFE:
        return [probe.id for probe in safe]
    if word in set(Family):
        of_family = [probe for probe in CATALOGUE.values() if probe.family == word]
        return [probe.id for probe in of_family if probe in safe]
    number = _ID.fullmatch(word)
    return [known(f"M{number[1]:0>2}" if number else word).id]


def known(id: str) -> Probe:
    """Return a probe by its id.

    Raises:
        UnknownName: there is none of that id; the message names the nearest.
    """
    if id in CATALOGUE:
        return CATALOGUE[id]
    if _ID.fullmatch(id):
        first, *_, last = sorted(CATALOGUE)
        raise UnknownName(f"unknown probe {id!r} in --captcha-probes: there are {first} to {last}")
    words = [*map(str, Family), *map(str, Severity), SAFE, ALL]
    raise UnknownName.among("probe", id, words, where="--captcha-probes")


def families(probes: Iterable[Probe]) -> tuple[Family, ...]:
    """Return the families of probes, each once, destructive ones last."""
    return tuple(dict.fromkeys(probe.family for probe in sorted(probes, key=lambda probe: probe.destructive)))
