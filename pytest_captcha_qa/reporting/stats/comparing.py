"""Numbers in, numbers out: intervals, bounds and comparisons of samples that came in runs (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from inspect import unwrap

import numpy as np
from scipy import stats

from pytest_captcha_qa.reporting.stats.bounds import (
    Floats,
    Samples,
    usable,
)
from pytest_captcha_qa.reporting.stats.resampling import LEAST_RUNS, chance_by_runs, least_chance

# The quarter of the values at each end that says nothing about the typical one.
_TRIMMED = 0.25
# Less than this nobody would call a change, and clocks, schedulers and rounding of records do not tell from one.
LEAST_SECONDS = 0.01
LEAST_SHARE = 0.01
# What nobody will collect for one release.
MOST_RUNS = 1_000
# No alpha is as large as this, so that what looks no better needs no further look.
_HOPELESS = 0.25
_ENOUGH_RANKED = 3_000
# Whether a change hangs on a single run is asked of those that pull most towards it: of all where there are few, of
# fewer where there are many, since each matters less. What is given is the product of both; a chance costs more to ask.
_DOUBTED, _TESTED = 240, 24


class Change(StrEnum):
    """What a comparison comes to."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"
    NOT_ENOUGH_DATA = "not enough data"


@dataclass(frozen=True, slots=True)
class Compared:
    """Candidate against baseline.

    `effect` is the relative change, of times that of the mean of the middle half, of rates that of the share that went
    wrong (at least one percent of it is assumed for the baseline): above 0 is worse, and 0 is what is too small to
    matter (10 ms, one percentage point). `shift` is the change in the metric's own unit. `superiority`: the chance that
    a time of the candidate exceeds one of the baseline. `p_value` is two-sided. `steady_effect` and `steady_p`: as much
    of it, and as unlikely, as stands without any single run, 0 and 1 where `p_value` alone is too large for a change;
    `least_p`: the smallest that so many runs can give then; `reachable_p`: the smallest that these values can give,
    however they came.
    """

    effect: float | None = None
    steady_effect: float = 0.0
    shift: float | None = None
    superiority: float | None = None
    p_value: float = 1.0
    steady_p: float = 1.0
    least_p: float = 1.0
    reachable_p: float = 1.0


def compare_times(baseline: Samples, candidate: Samples, *, alpha: float = _HOPELESS) -> Compared:
    """Compare times by the ranks of all attempts together (Mann and Whitney), dealing out whole runs anew.

    `alpha`: what is less unlikely is no change, so that nobody asks whether it would stand without single runs.
    """
    # Sums depend on their order by a rounding error, and records may be read in another one from history.
    before, after = ([np.sort(values) for values in usable(side)] for side in (baseline, candidate))
    if not (before and after):
        return Compared()
    first, second = np.concatenate(before), np.concatenate(after)
    ranks = stats.rankdata(np.concatenate([first, second]))
    superiority = (ranks[len(first) :].sum() / len(second) - (len(second) + 1) / 2) / len(first)
    sizes = np.array([len(values) for values in (*before, *after)])
    scores = np.add.reduceat(ranks, np.cumsum(sizes) - sizes) / sizes / len(ranks)
    table = np.column_stack([scores, sizes])
    found = _compared(
        _Side(before, table[: len(before)], typical),
        _Side(after, table[len(before) :], typical),
        lambda one, two: _relative(one, two, floor=0.0, least=LEAST_SECONDS),
        lambda one, two: float(stats.mannwhitneyu(_thinned(one), _thinned(two)).pvalue),
        alpha,
    )
    return replace(found, superiority=float(superiority))


def compare_rates(
    baseline: Sequence[tuple[int, int]], candidate: Sequence[tuple[int, int]], *, alpha: float = _HOPELESS
) -> Compared:
    """Compare shares of what went wrong, given for each run as (went wrong, of how many); `alpha` as for times.

    Attempts of one run often go wrong together, so Fisher's exact test on attempts alone would cry wolf: what counts is
    the larger of its chance and that of dealing out whole runs anew.
    """
    before, after = _rate_side(baseline), _rate_side(candidate)
    if not (before.runs and after.runs):
        return Compared()
    return _compared(
        before,
        after,
        lambda one, two: _relative(one, two, floor=LEAST_SHARE, least=LEAST_SHARE),
        lambda one, two: float(stats.fisher_exact([_counts(two), _counts(one)]).pvalue),
        alpha,
    )


def _thinned(runs: Samples) -> Floats:
    """Return at most so many of the values that ranking them takes no time; fewer never look more certain."""
    values, step = np.sort(np.concatenate(runs)), 1 + sum(map(len, runs)) // _ENOUGH_RANKED
    return values[step // 2 :: step]


# Without what SciPy puts around it for the sake of other arguments: it is asked hundreds of times.
_trim_mean = unwrap(stats.trim_mean)


def typical(runs: Samples) -> float:
    """Return the mean of the middle half of all values.

    No outlier moves it, and where times come in the steps of a polling interval it does not jump as a median does.
    """
    return float(_trim_mean(np.concatenate(runs), _TRIMMED))


def adjust(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for how many there are (Benjamini and Hochberg).

    With nothing changed the chance of any false alarm stays at most alpha, also where slugs share the runs' luck, since
    that makes their p-values vary together. A release that slows down all forms at once, as most do, is found with far
    fewer runs than with Holm's correction, which asks of the best one to stand against all others.
    """
    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")] if len(p_values) else []


def verdicts(found: Sequence[Compared], *, alpha: float, min_effect: float) -> list[tuple[float | None, Change]]:
    """Return for each comparison its corrected p-value and what it comes to; None where the data cannot tell.

    What so few runs, or such values, could never decide is left out of the correction (Tarone 1990). Not enough data is
    also what would not count after the correction if it were as clear as so many runs can make it.
    """
    tested = [number for number, one in enumerate(found) if max(one.least_p, one.reachable_p) <= alpha]
    seen = {number: found[number].p_value for number in tested}
    adjusted = dict(zip(tested, adjust(list(seen.values())), strict=True))
    results: list[tuple[float | None, Change]] = []
    for number, one in enumerate(found):
        clearest = {**seen, number: one.least_p}
        place = list(clearest).index(number)
        if adjust(list(clearest.values()))[place] > alpha:
            results.append((None, Change.NOT_ENOUGH_DATA))
        else:
            p = adjusted.get(number, 1.0)
            results.append((p, _change(one, p, alpha, min_effect)))
    return results


def runs_needed(alpha: float, other: int | None = None) -> int | None:
    """Return how many runs could show a change, against `other` runs or, by default, as many of the other release.

    None: no number could. One of them is taken away, so that no single run decides.
    """
    for runs in range(LEAST_RUNS + 1, MOST_RUNS):
        if _least(runs if other is None else other, runs) <= alpha:
            return runs
    return None


def _least(before: int, after: int) -> float:
    return max(least_chance(before - 1, after), least_chance(before, after - 1))


def _change(found: Compared, adjusted: float, alpha: float, min_effect: float) -> Change:
    if max(adjusted, found.steady_p) > alpha or abs(found.steady_effect) < min_effect or not found.steady_effect:
        return Change.SAME
    return Change.WORSE if found.steady_effect > 0 else Change.BETTER


@dataclass(frozen=True)
class _Side:
    """The runs of a release, the mean and weight of each, and what the level of some of them is."""

    runs: list[Floats]
    table: Floats
    level_of: Callable[[list[Floats]], float]

    @cached_property
    def level(self) -> float:
        return self.level_of(self.runs)

    def without_one(self, sign: float) -> list[_Side]:
        """Return the rest without one run, for each of those that pull most to that side, the strongest first."""
        mean, weight = self.table.T
        pull = sign * weight * (mean - np.average(mean, weights=weight))
        strongest = np.argsort(-pull, kind="stable")[: max(2, _DOUBTED // len(pull))]
        return [
            _Side(self.runs[:one] + self.runs[one + 1 :], np.delete(self.table, one, axis=0), self.level_of)
            for one in map(int, strongest)
        ]


def _compared(
    before: _Side,
    after: _Side,
    relative: Callable[[float, float], float],
    at_attempts: Callable[[Samples, Samples], float],
    alpha: float,
) -> Compared:
    least = _least(len(before.runs), len(after.runs))
    shift = after.level - before.level
    effect = relative(before.level, after.level)
    p, reachable = chance_by_runs(before.table, after.table)
    found = Compared(effect, shift=shift, p_value=p, least_p=least, reachable_p=reachable)
    if least >= 1 or not effect or found.p_value > _HOPELESS:
        return found
    found = replace(found, p_value=max(found.p_value, at_attempts(before.runs, after.runs)))
    return found if found.p_value > alpha else _without_single_runs(found, before, after, relative, at_attempts)


def _without_single_runs(
    found: Compared,
    before: _Side,
    after: _Side,
    relative: Callable[[float, float], float],
    at_attempts: Callable[[Samples, Samples], float],
) -> Compared:
    """Return it with as much of it, and as unlikely, as stands without any single run."""
    effect = relative(before.level, after.level)
    sign = 1.0 if effect > 0 else -1.0
    earlier, later = before.without_one(-sign), after.without_one(sign)
    fewer = [*((before, one) for one in later), *((one, after) for one in earlier)]
    effects = [sign * relative(one.level, two.level) for one, two in fewer]
    tested = [*((before, one) for one in _tested(later)), *((one, after) for one in _tested(earlier))]
    chances = [max(chance_by_runs(one.table, two.table).p, at_attempts(one.runs, two.runs)) for one, two in tested]
    return replace(
        found,
        steady_effect=sign * max(0.0, min(sign * effect, *effects)),
        steady_p=max(chances),
    )


def _tested(fewer: list[_Side]) -> list[_Side]:
    return fewer[: max(1, _TESTED // (len(fewer[0].runs) + 1))]


def _relative(before: float, after: float, *, floor: float, least: float) -> float:
    """Return the relative change, 0 for one that is too small to matter."""
    change = after - before
    return 0.0 if abs(change) < least else change / max(before, floor, 1e-3)


def _rate_side(counts: Sequence[tuple[int, int]]) -> _Side:
    kept = [np.array([min(bad, of), of], dtype=float) for bad, of in counts if of > 0]
    table = np.array([(bad / of, of) for bad, of in kept]).reshape(-1, 2)
    return _Side(kept, table, _share)


def _counts(runs: Samples) -> tuple[int, int]:
    """Return how many went wrong and how many did not."""
    bad, of = np.sum(runs, axis=0)
    return int(bad), int(of - bad)


def _share(runs: Samples) -> float:
    bad, of = np.sum(runs, axis=0)
    return float(bad) / float(of)
