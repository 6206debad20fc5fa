"""What the attempts of a group come to: quantiles of its times, its rates, and how many attempts and runs say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from pytest_captcha_qa.model.metrics import TIMES, Kind, Metric
from pytest_captcha_qa.reporting.metrics import source_fits
from pytest_captcha_qa.reporting.stats.bounds import LONGEST, Interval, rate_interval

# What may be grouped by besides the pool, and the column that holds it.
GROUPS: Mapping[str, str] = {"release": "release", "worker_version": "worker_version", "form": "slug"}
_POOL = ("env", "project", "type", "provider", "key_mode", "time_scale")


class Rows(Protocol):
    """What is asked of a dataset here."""

    def rows(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query over the views of the dataset."""

    def columns(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return the same by columns."""


@dataclass(frozen=True, slots=True, order=True)
class Pool:
    """What may be pooled (R2.5): nothing of different values in any of these. `form` None: all forms of the type."""

    env: str
    project: str
    type: str
    provider: str
    key_mode: str
    time_scale: float = 1.0
    form: str | None = None


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """One time metric in seconds: how many attempts of how many runs have it, and its quantiles."""

    n: int
    runs: int
    median: float
    p90: float
    p99: float


class Size(NamedTuple):
    """How many samples of how many runs say something: attempts for a time, judged ones or keys for a rate."""

    samples: int
    runs: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one pool in one group; None for a group that was not asked for.

    `attempts`: the positive ones that count, of `runs` runs; `outages`: those left out of everything else, since
    provider or infrastructure failed or nobody knows; `lost`: started, never recorded. `times` by metric, without
    those that nothing was measured of. `passed` of `judged` were verified, `interval` is the 95 % interval of that rate
    over runs (None: none judged). `repeats`: submits beyond the first of `keys` keys.
    """

    pool: Pool
    release: str | None = None
    worker_version: str | None = None
    attempts: int = 0
    runs: int = 0
    outages: int = 0
    lost: int = 0
    times: Mapping[str, TimeFigures] = field(default_factory=dict)
    passed: int = 0
    judged: int = 0
    rate: float | None = None
    interval: Interval | None = None
    submits: int = 0
    keys: int = 0
    repeats: int = 0
    resolve_share: float | None = None

    def share(self, metric: Metric) -> float | None:
        """Return a rate, None where nothing counts for it."""
        return self.rate if metric.name == "verify_rate" else self.resolve_share

    def size(self, metric: Metric) -> Size:
        """Return how much there is of a metric."""
        if metric.kind is Kind.TIME:
            times = self.times.get(metric.name)
            return Size(times.n, times.runs) if times is not None else Size(0, 0)
        return Size(self.judged if metric.name == "verify_rate" else self.keys, self.runs)


def counts_as_time(metric: Metric) -> str:
    """Return the SQL that holds for a row of `positive` whose time of that metric counts."""
    return f"(counts AND {source_fits(metric)} AND {metric.column} BETWEEN 0 AND {LONGEST})"


# Rows of `positive` with what all figures need: `counts` is false for outages and lost ones; a test that was run again
# had its first submit in an earlier try, so that all of a later one's are repeats.
ROWS = """
SELECT *, NOT outage AND outcome <> 'lost' AS counts,
    (CASE WHEN coalesce(attempt, 1) > 1 THEN 0 WHEN submits > 0 THEN 1 ELSE 0 END) AS first_submits
FROM positive
"""
COUNTED: dict[str, str] = {
    "attempts": "count(*) FILTER (counts)",
    "outages": "count(*) FILTER (outage)",
    "lost": "count(*) FILTER (outcome = 'lost')",
    "passed": "count(*) FILTER (counts AND verify_status = 'pass')",
    "judged": "count(*) FILTER (counts AND verify_status IN ('pass', 'fail'))",
    "submits": "coalesce(sum(submits) FILTER (counts), 0)::BIGINT",
    "keys": "coalesce(sum(first_submits) FILTER (counts), 0)::BIGINT",
}
COUNTS = ", ".join(f"{query} AS {name}" for name, query in COUNTED.items())
_QUANTILES = ", ".join(
    f"quantile_cont({metric.column}, [0.5, 0.9, 0.99]) FILTER (WHERE {counts_as_time(metric)})" for metric in TIMES
)
_TIMED = {f"n_{metric.name}": f"count(*) FILTER (WHERE {counts_as_time(metric)})" for metric in TIMES}


def figures(
    dataset: Rows, *, by: Sequence[str] = ("release",), where: str = "true", parameters: Sequence[object] = ()
) -> list[Figures]:
    """Return the figures of each pool by any of `release`, `worker_version` and `form`, in the order of the pools.

    `where`: SQL over the view `attempts` that narrows it, with its `parameters`.
    """
    [found] = figures_of(dataset, [by], where=where, parameters=parameters)
    return found


def figures_of(
    dataset: Rows, groupings: Sequence[Sequence[str]], *, where: str = "true", parameters: Sequence[object] = ()
) -> list[list[Figures]]:
    """Return the same for each of several groupings, for which the attempts are read as often as for one."""
    columns = tuple(dict.fromkeys(GROUPS[name] for by in groupings for name in by))
    rows = f"SELECT * FROM ({ROWS}) WHERE {where}"
    times = dataset.rows(_quantiles(columns, groupings, rows), parameters)
    counted = dataset.rows(_by_run(columns, groupings, rows), parameters)
    wide = 1 + len(_POOL) + len(columns)
    quantiles = {row[:wide]: row[wide:] for row in times}
    found = []
    for by in groupings:
        places = [*range(1, 1 + len(_POOL)), *(1 + len(_POOL) + columns.index(GROUPS[name]) for name in by)]
        mine = [row for row in counted if row[0] == _without(columns, by)]
        found.append([_figures([row[n] for n in places], by, quantiles[row[:wide]], row[wide:]) for row in mine])
    return found


def _quantiles(columns: Sequence[str], groupings: Sequence[Sequence[str]], rows: str) -> str:
    """Return the query for the quantiles of each group, which begins with what tells the groupings apart."""
    keys = ", ".join((*_POOL, *columns))
    return f"""
    SELECT {_which(columns)}, {keys}, {_QUANTILES} FROM ({rows}) GROUP BY {_sets(groupings)} ORDER BY ALL
    """


def _by_run(columns: Sequence[str], groupings: Sequence[Sequence[str]], rows: str) -> str:
    """Return the query for the counts of each group, as one list a column with an element for each run.

    Attempts are counted in the smallest groups once; their counts make those of the larger groups.
    """
    keys = ", ".join((*_POOL, *columns))
    counts = COUNTED | _TIMED
    counted = ", ".join(f"{query} AS {name}" for name, query in counts.items())
    runs = f"SELECT {keys}, run_id, {counted} FROM ({rows}) GROUP BY ALL"
    summed = ", ".join(f"sum({name})::BIGINT AS {name}" for name in counts)
    sets = _sets(groupings, "run_id")
    larger = f"SELECT {_which(columns)} AS which, {keys}, run_id, {summed} FROM ({runs}) GROUP BY {sets}"
    lists = ", ".join(f"list({name} ORDER BY run_id)" for name in counts)
    return f"SELECT which, {keys}, {lists} FROM ({larger}) GROUP BY ALL ORDER BY ALL"


def _sets(groupings: Sequence[Sequence[str]], *also: str) -> str:
    sets = (", ".join((*_POOL, *(GROUPS[name] for name in by), *also)) for by in groupings)
    return f"GROUPING SETS ({', '.join(f'({names})' for names in sets)})"


def _which(columns: Sequence[str]) -> str:
    """Return the SQL of the number of a row's grouping."""
    return f"grouping({', '.join(columns)})" if columns else "0"


def _without(columns: Sequence[str], by: Sequence[str]) -> int:
    """Return that number: a bit for each column, the last one's the lowest, which is set where it is not grouped by."""
    grouped = {GROUPS[name] for name in by}
    return sum(1 << place for place, column in enumerate(reversed(columns)) if column not in grouped)


def _figures(
    key: Sequence[Any], by: Sequence[str], quantiles: Sequence[Sequence[float]], counts: Sequence[Sequence[int]]
) -> Figures:
    group = dict(zip(by, key[len(_POOL) :], strict=True))
    pool = replace(Pool(*key[: len(_POOL)]), form=group.get("form"))
    sizes = zip(TIMES, quantiles, counts[len(COUNTED) :], strict=True)
    times = {
        metric.name: TimeFigures(sum(size), sum(map(bool, size)), *values)
        for metric, values, size in sizes
        if any(size)
    }
    named = {name: value for name, value in group.items() if name != "form"}
    return of_runs(pool, counts[: len(COUNTED)], times, **named)


def of_runs(
    pool: Pool,
    counts: Sequence[Sequence[int]],
    times: Mapping[str, TimeFigures],
    *,
    release: str | None = None,
    worker_version: str | None = None,
) -> Figures:
    """Return the figures of a group from its counts, each with an element for every run, in the order of `COUNTED`."""
    attempts, outages, lost, passed, judged, submits, keys = (list(map(int, column)) for column in counts)
    repeats = sum(submits) - sum(keys)
    return Figures(
        pool=pool,
        release=release,
        worker_version=worker_version,
        attempts=sum(attempts),
        runs=sum(1 for number in attempts if number),
        outages=sum(outages),
        lost=sum(lost),
        times=times,
        passed=sum(passed),
        judged=sum(judged),
        rate=sum(passed) / sum(judged) if sum(judged) else None,
        interval=rate_interval(passed, judged),
        submits=sum(submits),
        keys=sum(keys),
        repeats=repeats,
        resolve_share=repeats / sum(keys) if sum(keys) else None,
    )
