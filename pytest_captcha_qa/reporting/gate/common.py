"""What the release under test and its baseline have in common, and what only one of them measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_captcha_qa.reporting.comparison.samples import Source
from pytest_captcha_qa.reporting.figures import Pool
from pytest_captcha_qa.reporting.gate.results import Status
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.wording import some_of

Measured = Mapping[Pool, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Sides:
    """The names of both sides and the forms of each pool that they measured, outages left out."""

    before: str
    after: str
    baseline: Measured
    candidate: Measured

    @classmethod
    def of(cls, baseline: Source, candidate: Source) -> Sides:
        """Return the sides of a comparison."""
        return cls(baseline.label, candidate.label, _measured(baseline), _measured(candidate))

    def nothing_in_common(self) -> tuple[Status, str]:
        """Return what it means that nothing can be compared: only what will never be pooled is no baseline."""
        unlike = f"the baseline {self.before} cannot be compared"
        if not self.candidate:
            return Status.NOT_ENOUGH_DATA, f"{self.after} has measured nothing that could be compared"
        if not self.baseline:
            return Status.NO_BASELINE, f"{unlike}: it has no good token, outages left out"
        if set(self.baseline) & set(self.candidate):
            told = "no form is in both, and one that was renamed has no history"
            return Status.NOT_ENOUGH_DATA, f"{self._each(_forms)}: {told}"
        return Status.NO_BASELINE, f"{unlike}: {self._each(_pools)}, which are never pooled"

    def _each(self, told: Callable[[Measured], str]) -> str:
        return f"{self.before} has {told(self.baseline)}, {self.after} has {told(self.candidate)}"

    def lacking(self, alone: Collection[str]) -> Iterator[tuple[Pool, str]]:
        """Yield the pools of which forms were never measured in the baseline, and in words which of several.

        Forms that are `alone` are pools of their own.
        """
        for pool, forms in self.candidate.items():
            new = forms - self.baseline.get(pool, frozenset())
            yield from ((replace(pool, form=slug), "") for slug in sorted(new & set(alone)))
            if together := sorted(new - set(alone)):
                yield pool, f": {some_of(together)}"


def _measured(source: Source) -> Measured:
    found = source.dataset.rows(
        "SELECT project, type, provider, key_mode, time_scale, list(DISTINCT slug) FROM positive"
        f" WHERE {source.where} AND NOT outage GROUP BY ALL ORDER BY ALL",
        source.parameters,
    )
    return {Pool(source.env, *pool): frozenset(slugs) for *pool, slugs in found}


def _pools(measured: Measured) -> str:
    return some_of([named(pool) for pool in measured])


def _forms(measured: Measured) -> str:
    return some_of(sorted(map(repr, frozenset().union(*measured.values()))))
