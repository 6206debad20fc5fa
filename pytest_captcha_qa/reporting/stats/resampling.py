"""The chance of a difference between two groups of runs, by dealing the runs out anew.

Attempts of one run share its hour, its network and the provider's mood, so they are no independent samples; runs are.
Under "nothing changed" every way to deal the runs out to the two releases is as likely as the one that was seen.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

Floats = NDArray[np.float64]

# Below this many ways all of them are tried, which makes the chance exact; beyond it as many are drawn.
MOST_EXACT = 20_000
MOST_DRAWN = 9_999
# Many runs need fewer draws, since the tail beyond them is well known then.
_LEAST_DRAWN, _DRAWN_LABELS = 1_999, 400_000
# So many draws tell what is certainly not rare.
_GLANCE, _NOT_RARE, _LARGE = 500, 0.3, 0.05
# One run has no spread, so that nobody can say how far it may be off.
LEAST_RUNS = 2


def least_chance(baseline_runs: int, candidate_runs: int) -> float:
    """Return the smallest two-sided chance that so many runs can give; 1 where a side has less than two."""
    if min(baseline_runs, candidate_runs) < LEAST_RUNS:
        return 1.0
    return min(1.0, 2 / comb(baseline_runs + candidate_runs, candidate_runs))


class Chance(NamedTuple):
    """`p`: two-sided chance of a difference at least as large; `reachable`: the smallest that these values can give.

    Three runs with a failure among thirty, say, cannot give a small one, however they are dealt out.
    """

    p: float
    reachable: float


_NONE = Chance(1.0, 1.0)


def chance_by_runs(baseline: Floats, candidate: Floats) -> Chance:
    """Return the chance of the difference in means of two groups of runs; rows are runs: mean and weight.

    The statistic is the difference of the weighted means over its standard error between runs. Dealt out anew it keeps
    the false alarms where releases have unlike numbers of runs, or runs of unlike size, which the bare difference does
    not (Janssen 1997).
    """
    if min(len(baseline), len(candidate)) < LEAST_RUNS:
        return _NONE
    runs = np.concatenate([_in_order(baseline), _in_order(candidate)])
    centred = runs[:, 0] - np.average(runs[:, 0], weights=runs[:, 1])
    if np.ptp(centred) <= 1e-12 * max(1.0, float(np.abs(runs[:, 0]).max())):
        return _NONE
    count, chosen = len(runs), len(candidate)
    seen = np.r_[np.zeros(len(baseline)), np.ones(chosen)][np.newaxis]
    statistic = float(_studentised(seen, chosen, centred, runs[:, 1])[0])
    labels = _labellings(count, chosen)
    if comb(count, chosen) > MOST_EXACT:
        few = _studentised(labels[:_GLANCE], chosen, centred, runs[:, 1])
        glance = _chance(few, statistic, chosen, count)
        if glance.p > _NOT_RARE:
            # Few draws know of no small chance, but a large one they do.
            least = least_chance(len(baseline), chosen)
            return glance if glance.reachable > _LARGE else Chance(glance.p, least)
    return _chance(_studentised(labels, chosen, centred, runs[:, 1]), statistic, chosen, count)


def _chance(dealt: Floats, statistic: float, chosen: int, count: int) -> Chance:
    p = _two_sided(dealt, statistic, chosen, count)
    return Chance(p, min(p, *(_two_sided(dealt, float(most), chosen, count) for most in (dealt.max(), dealt.min()))))


def _two_sided(dealt: Floats, statistic: float, chosen: int, count: int) -> float:
    # What differs by rounding only is a tie, and ties count against the difference.
    slack = 1e-7 * max(1.0, abs(statistic))
    ways = comb(count, chosen)
    extreme = min(np.sum(dealt >= statistic - slack), np.sum(dealt <= statistic + slack))
    if ways <= MOST_EXACT:
        return min(1.0, 2 * int(extreme) / ways)
    drawn = (int(extreme) + 1) / (len(dealt) + 1)
    if not extreme:
        # Rarer than the draws can tell: Welch's t with the fewest degrees of freedom has the heavier tail.
        welch = float(special.stdtr(min(chosen, count - chosen) - 1, -abs(statistic)))
        drawn = min(drawn, max(welch, 1 / ways))
    return min(1.0, 2 * drawn)


def _in_order(runs: Floats) -> Floats:
    """Return the runs in an order of their own, so that the order of files changes nothing."""
    return runs[np.lexsort(runs.T)]


def _studentised(labels: Any, chosen: int, value: Floats, weight: Floats) -> Floats:
    """Return for each row, in which `chosen` are 1 (candidate), the difference of the means over its standard error."""
    squared = weight * weight
    parts = np.column_stack([weight, weight * value, squared, squared * value, squared * value * value])
    inside = labels @ parts
    outside = parts.sum(axis=0) - inside
    mean, variance = _mean_and_variance(inside, chosen)
    other, other_variance = _mean_and_variance(outside, len(value) - chosen)
    least = 1e-12 * float(np.square(value).mean())
    result: Floats = (mean - other) / np.sqrt(variance + other_variance + least)
    return result


def _mean_and_variance(parts: Floats, runs: int) -> tuple[Floats, Floats]:
    """Return the weighted mean of each row and its variance as that of a ratio over independent runs."""
    weight, weighted, squared, once, twice = parts.T
    mean = weighted / weight
    spread = np.maximum(twice - 2 * mean * once + mean * mean * squared, 0.0)
    return mean, spread / (weight * weight) * runs / (runs - 1)


@lru_cache(maxsize=8)
def _labellings(runs: int, chosen: int) -> Any:
    """Return ways to choose some of the runs, one a row: all of them, or as many as are drawn, always the same.

    Sparse, since a product with a full matrix starts threads that cost more than they save on a busy machine.
    """
    if comb(runs, chosen) <= MOST_EXACT:
        flat = np.fromiter(chain.from_iterable(combinations(range(runs), chosen)), dtype=np.intp)
        picked = flat.reshape(-1, chosen)
    else:
        drawn = min(MOST_DRAWN, max(_LEAST_DRAWN, _DRAWN_LABELS // runs))
        order = np.random.default_rng([runs, chosen]).random((drawn, runs), dtype=np.float32)
        picked = np.argpartition(order, chosen, axis=1)[:, :chosen]
    ways = len(picked)
    starts = np.arange(0, picked.size + 1, chosen)
    return sparse.csr_array((np.ones(picked.size), picked.ravel(), starts), shape=(ways, runs))
