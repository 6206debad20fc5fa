"""The samples of one release: what every form measured in every run, and what of it may be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_captcha_qa.model.metrics import TIMES
from pytest_captcha_qa.reporting.figures import (
    COUNTED,
    COUNTS,
    ROWS,
    Figures,
    Pool,
    Rows,
    TimeFigures,
    counts_as_time,
    of_runs,
)
from pytest_captcha_qa.reporting.stats.bounds import Floats

_KEY = ("release", "project", "type", "provider", "key_mode", "time_scale", "slug", "run_id")
_MINE = "($release IS NULL OR release = $release) AND NOT list_contains($left_out::VARCHAR[], run_id)"
_TIMES = ", ".join(f"list({one.column}) FILTER (WHERE {counts_as_time(one)}) AS t_{one.name}" for one in TIMES)


@dataclass(frozen=True, slots=True)
class Source:
    """Where one side of a comparison comes from: an environment's attempts of one release, or all (`release` None)."""

    dataset: Rows
    env: str
    label: str
    release: str | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def where(self) -> str:
        """The SQL that narrows `attempts` to it."""
        return f"env = $env AND {_MINE}"

    @property
    def parameters(self) -> dict[str, object]:
        """The values in `where`."""
        return {"env": self.env, "release": self.release, "left_out": sorted(self.left_out)}

    def settled(self) -> Source:
        """Return the same without the runs during which the release changed: nobody knows which one they measured."""
        if self.release is None:
            return self
        changed = self._runs("run_id", "release_changed", of="release IS NOT NULL")
        if not changed:
            return self
        here = f"SELECT DISTINCT run_id FROM attempts WHERE {self.where} AND list_contains($changed::VARCHAR[], run_id)"
        found = self.dataset.rows(here, {**self.parameters, "changed": sorted(changed)})
        return replace(self, left_out=self.left_out | {run_id for (run_id,) in found})

    @property
    def run_ids(self) -> set[str]:
        """The ids of its runs."""
        return set(self._runs("run_id", "true"))

    @property
    def incomplete(self) -> int:
        """How many of its runs ended early or lost records."""
        return len(self._runs("run_id", "NOT complete"))

    @property
    def schemas(self) -> list[int]:
        """The schemas that its records have."""
        return sorted(self._runs("schema", "schema IS NOT NULL"))

    @property
    def of_unknown_release(self) -> int:
        """How many attempts of the environment have no known release."""
        return sum(self._runs("attempts", "attempts > 0", of="release IS NULL", distinct=False))

    def _runs(self, what: str, where: str, *, of: str = "", distinct: bool = True) -> list[Any]:
        values = {"env": self.env} if of else self.parameters
        query = f"SELECT {'DISTINCT ' * distinct}{what} FROM runs WHERE env = $env AND {of or _MINE} AND {where}"
        return [value for (value,) in self.dataset.rows(query, values)]


@dataclass(frozen=True, slots=True)
class FormRun:
    """One form in one run: its counts in the order of `COUNTED`, and its times by metric."""

    form: str
    run_id: str
    counts: tuple[int, ...]
    times: Mapping[str, Floats]


Part = tuple[Pool, FormRun]
"""What a form measured in a run, with its pool over all forms."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All that one side has of one pool."""

    parts: tuple[FormRun, ...] = ()

    @property
    def forms(self) -> set[str]:
        """The forms with an attempt that counts."""
        return {part.form for part in self.parts if part.counts[0]}

    def of(self, forms: Iterable[str]) -> Sample:
        """Return the part that is about these forms."""
        wanted = set(forms)
        return Sample(tuple(part for part in self.parts if part.form in wanted))

    def counts(self) -> dict[str, list[int]]:
        """Return each count with an element for every run."""
        runs: dict[str, list[Sequence[int]]] = defaultdict(list)
        for part in self.parts:
            runs[part.run_id].append(part.counts)
        summed = [tuple(map(sum, zip(*counts, strict=True))) for _, counts in sorted(runs.items())]
        columns = zip(*summed, strict=True) if summed else [()] * len(COUNTED)
        return {name: list(column) for name, column in zip(COUNTED, columns, strict=True)}

    def has(self, metric: str) -> bool:
        """Return whether any attempt has that time."""
        return any(metric in part.times for part in self.parts)

    def times(self, metric: str, scale: Mapping[str, float]) -> list[Floats]:
        """Return the times of every run that has any, of the forms in `scale`, each multiplied by its factor."""
        runs: dict[str, list[Floats]] = defaultdict(list)
        for part in self.parts:
            if metric in part.times and part.form in scale:
                factor = scale[part.form]
                runs[part.run_id].append(part.times[metric] if factor == 1 else part.times[metric] * factor)
        return [np.concatenate(values) if len(values) > 1 else values[0] for _, values in sorted(runs.items())]

    def figures(self, pool: Pool, release: str) -> Figures:
        """Return what it comes to."""
        times = {metric.name: figures for metric in TIMES if (figures := self._of(metric.name))}
        return of_runs(pool, list(self.counts().values()), times, release=release)

    def _of(self, metric: str) -> TimeFigures | None:
        measured = [part for part in self.parts if metric in part.times]
        if not measured:
            return None
        values = np.concatenate([part.times[metric] for part in measured])
        runs = len({part.run_id for part in measured})
        return TimeFigures(len(values), runs, *map(float, np.quantile(values, (0.5, 0.9, 0.99))))


@dataclass(slots=True)
class Samples:
    """All pools of one side."""

    pools: dict[Pool, Sample] = field(default_factory=dict)

    def get(self, pool: Pool) -> Sample:
        """Return what there is of a pool, perhaps nothing."""
        return self.pools.get(pool, Sample())


def measured(before: Source, after: Source) -> tuple[list[Part], list[Part]]:
    """Return what every form measured in every run, on both sides; two releases of one dataset are read at once."""
    if before.dataset is not after.dataset or len({before.release, after.release} - {None}) < 2:
        one, two = (_read(side, side.where, side.parameters) for side in (before, after))
        return [part for _, part in one], [part for _, part in two]
    releases = {"env": before.env, "before": before.release, "after": after.release}
    found = _read(before, "env = $env AND release IN ($before, $after)", releases)
    first, second = (
        [part for release, part in found if release == side.release and part[1].run_id not in side.left_out]
        for side in (before, after)
    )
    return first, second


def _read(source: Source, where: str, parameters: Mapping[str, object]) -> list[tuple[str | None, Part]]:
    """Return the parts of a source's dataset for which `where` holds, each with its release."""
    keys = ", ".join(_KEY)
    rows = f"SELECT * FROM ({ROWS}) WHERE {where}"
    query = f"SELECT {keys}, {COUNTS}, {_TIMES} FROM ({rows}) GROUP BY ALL ORDER BY {keys}"
    columns = source.dataset.columns(query, parameters)
    # Lists come as arrays, which takes a tenth of the time of Python's.
    return [_part(source.env, row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]


def _part(env: str, row: Sequence[Any]) -> tuple[str | None, Part]:
    release, *pool, form, run_id = row[: len(_KEY)]
    counts = tuple(map(int, row[len(_KEY) : len(_KEY) + len(COUNTED)]))
    values = dict(zip((metric.name for metric in TIMES), row[len(_KEY) + len(COUNTED) :], strict=True))
    times = {name: np.asarray(times, dtype=float) for name, times in values.items() if times is not None}
    return release, (Pool(env, *pool), FormRun(form, run_id, counts, times))


def pooled(parts: Iterable[Part], own_rule_forms: Iterable[str] = ()) -> Samples:
    """Return the samples that such parts make; each form of `own_rule_forms` is a pool of its own."""
    own = set(own_rule_forms)
    pools: dict[Pool, list[FormRun]] = defaultdict(list)
    for pool, part in parts:
        pools[replace(pool, form=part.form) if part.form in own else pool].append(part)
    return Samples({pool: Sample(tuple(found)) for pool, found in pools.items()})


def levels(before: Sample, after: Sample, metric: str) -> dict[str, float]:
    """Return for each form that both sides measured the factor that brings it to the level of the pool.

    Another mix of slow and fast forms must not look like a change of them. The medians are those of both sides
    together, which no change between the sides can hide in.
    """
    values: dict[str, list[Floats]] = defaultdict(list)
    sides: dict[str, set[bool]] = defaultdict(set)
    for side, sample in enumerate((before, after)):
        for part in sample.parts:
            if metric in part.times:
                values[part.form].append(part.times[metric])
                sides[part.form].add(bool(side))
    common = {form: np.concatenate(found) for form, found in values.items() if len(sides[form]) > 1}
    if len(common) < 2:
        return dict.fromkeys(common, 1.0)
    whole = float(np.median(np.concatenate(list(common.values()))))
    return {form: whole / max(float(np.median(found)), 1e-3) for form, found in common.items()}
