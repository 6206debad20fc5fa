"""One-sided bounds and intervals of rates and quantiles, of samples that came in runs (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Samples = Sequence[Floats]
"""Measured values, one array a run."""
Counts = float | Sequence[float]
"""A count, or one for each run; what stands for a part of several is no whole number."""

# No step takes longer, in seconds; what says so is no time.
LONGEST = 1e9
# How alike attempts of one run are at most, as far as nothing shows it: their intra-class correlation.
_MOST_ALIKE = 0.2


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Bound(StrEnum):
    """Which side a one-sided bound is on."""

    LOWER = "lower"
    UPPER = "upper"


def rate_interval(passed: Counts, judged: Counts, confidence: float = 0.95) -> Interval | None:
    """Return the two-sided interval of a rate, None where nothing was judged; counts may come by run.

    Clopper and Pearson's, which covers at least as often as it says, also near 0 and 1 where rates of a working form
    are; Wilson's is shorter but covers less there, and a red pipeline must not hang on that.
    """
    if not np.sum(judged):
        return None
    each = (1 + confidence) / 2
    return Interval(*(rate_bound(passed, judged, side, each) for side in (Bound.LOWER, Bound.UPPER)))


def rate_bound(passed: Counts, judged: Counts, side: Bound, confidence: float = 0.95) -> float:
    """Return the one-sided bound of a rate (Clopper and Pearson); 0 or 1 where nothing was judged.

    Counts by run are worth less the more the runs differ: they count as the number of independent attempts that would
    be as uncertain (Korn and Graubard 1998). One run speaks for itself only.
    """
    of = np.atleast_1d(judged).astype(float)
    good = np.minimum(np.atleast_1d(passed).astype(float), of)
    total = of.sum()
    if not total:
        return 0.0 if side is Bound.LOWER else 1.0
    trials = _independent(good, of, confidence)
    successes = good.sum() / total * trials
    failures = trials - successes
    # What `binomtest(...).proportion_ci(method="exact")` gives, a hundred times faster, and for parts of an attempt.
    if side is Bound.LOWER:
        return float(special.betaincinv(successes, failures + 1, 1 - confidence)) if good.any() else 0.0
    return float(special.betaincinv(successes + 1, failures, confidence)) if (of - good).any() else 1.0


def quantile_bound(runs: Samples, q: float, side: Bound, confidence: float = 0.95) -> float | None:
    """Return the one-sided bound of a quantile, None where so few samples cannot give one at that confidence.

    A value among the samples (order statistics, any distribution); runs that differ are worth fewer samples.
    """
    kept = usable(runs)
    if not kept:
        return None
    ordered = np.sort(np.concatenate(kept))
    size = len(ordered)
    trials = max(1, floor(_independent_around(kept, float(np.quantile(ordered, q)), confidence)))
    if side is Bound.LOWER:
        rank = int(stats.binom.isf(confidence, trials, q))
        rank += stats.binom.sf(rank, trials, q) >= confidence
        return float(ordered[floor((rank - 1) * size / trials)]) if rank else None
    rank = int(stats.binom.ppf(confidence, trials, q)) + 1
    return float(ordered[ceil(rank * size / trials) - 1]) if rank <= trials else None


def _independent_around(runs: Samples, value: float, confidence: float) -> float:
    """Return how many independent samples tell how much lies below a value; ties may hide how the runs differ there."""
    of = np.array([len(values) for values in runs], dtype=float)
    below = np.array([(np.count_nonzero(values < value), np.count_nonzero(values <= value)) for values in runs])
    return min(_independent(column.astype(float), of, confidence) for column in below.T)


def _independent(good: Floats, of: Floats, confidence: float) -> float:
    """Return how many independent attempts the counts of all runs are worth."""
    used = of > 0
    good, of = good[used], of[used]
    total, runs = float(of.sum()), int(used.sum())
    share = float(good.sum()) / total
    if runs == 1 or share in (0.0, 1.0):
        return total
    between = runs / (runs - 1) * float(np.square(good - share * of).sum()) / total**2
    worth = min(total, share * (1 - share) / between) if between > 0 else total
    # Few runs do not tell well how much runs differ, but two runs must not say less than one.
    doubt = float(special.stdtrit(total - 1, confidence) / special.stdtrit(runs - 1, confidence)) ** 2
    most_doubt = 1 / (1 + (total / runs - 1) * _MOST_ALIKE)
    return min(total, max(worth * max(doubt, most_doubt), float(min(runs, total))))


def usable(runs: Samples) -> list[Floats]:
    """Return the runs without what is no time; those that have none are left out."""
    kept = [np.asarray(values, dtype=float) for values in runs if len(values)]
    if not kept or _are_times(np.concatenate(kept)).all():
        return kept
    kept = [values[_are_times(values)] for values in kept]
    return [values for values in kept if len(values)]


def _are_times(values: Floats) -> NDArray[np.bool_]:
    return (values >= 0) & (values <= LONGEST)
