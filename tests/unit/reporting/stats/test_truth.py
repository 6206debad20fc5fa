"""Seeded simulations: what is claimed of the statistics, held against worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from pytest_captcha_qa.reporting.stats import comparing
from pytest_captcha_qa.reporting.stats.bounds import Bound, quantile_bound, rate_bound
from pytest_captcha_qa.reporting.stats.comparing import Change, Compared, verdicts

ALPHA, MIN_EFFECT, SIGMA = 0.01, 0.15, 0.3
FAST, FULL = 40, 2_000
# Any change counts here: what is counted are the alarms of the test alone.
ANY = 1e-9
# An honest share is further off than this once in a hundred thousand times.
SURE = 1e-5

compare_times = partial(comparing.compare_times, alpha=ALPHA)
compare_rates = partial(comparing.compare_rates, alpha=ALPHA)

Times = list[np.ndarray]
Rates = list[tuple[int, int]]
repetitions = pytest.mark.parametrize("repeat", [FAST, pytest.param(FULL, marks=pytest.mark.soak)])


class World:
    """Draws runs; `effect` is the standard deviation of the logarithm that a whole run shares."""

    def __init__(self, name: str) -> None:
        self.draw = np.random.default_rng(list(name.encode()))

    def times(self, sizes: Sequence[int], slower: float = 0.0, effect: float = 0.0) -> Times:
        runs = effect * self.draw.standard_normal(len(sizes))
        return [
            10 * (1 + slower) * np.exp(run + SIGMA * self.draw.standard_normal(size))
            for run, size in zip(runs, sizes, strict=True)
        ]

    def failures(self, sizes: Sequence[int], share: float, correlation: float = 0.0) -> Rates:
        """Return for each run how many of how many failed; `correlation` between two attempts of a run."""
        scale = (1 - correlation) / correlation if correlation else 0.0
        shares = self.draw.beta(share * scale, (1 - share) * scale, len(sizes)) if scale else [share] * len(sizes)
        return [(int(self.draw.binomial(size, one)), size) for one, size in zip(shares, sizes, strict=True)]

    def slugs(self, runs: int, number: int) -> list[Compared]:
        """Return the comparisons of many forms in the same runs, whose luck they share."""
        before, after = (0.3 * self.draw.standard_normal(runs) for _ in range(2))
        return [compare_times(self._shared(before), self._shared(after)) for _ in range(number)]

    def _shared(self, luck: np.ndarray) -> Times:
        return [10 * np.exp(run + SIGMA * self.draw.standard_normal(3)) for run in luck]


def share_of(repeat: int, change: Callable[[], bool]) -> tuple[float, int]:
    hits = sum(change() for _ in range(repeat))
    return hits / repeat, hits


def verdict(found: Compared, min_effect: float = MIN_EFFECT) -> Change:
    ((_, change),) = verdicts([found], alpha=ALPHA, min_effect=min_effect)
    assert change is not Change.NOT_ENOUGH_DATA
    return change


def at_most(hits: int, repeat: int, share: float) -> bool:
    """Return whether that many hits are no evidence for more than that share."""
    return hits <= stats.binom.isf(SURE, repeat, share)


def at_least(hits: int, repeat: int, share: float) -> bool:
    return hits >= stats.binom.ppf(SURE, repeat, share)


SAME_WORLDS: dict[str, Callable[[World], Compared]] = {
    "12 runs of 10": lambda w: compare_times(w.times([10] * 12), w.times([10] * 12)),
    "10 runs of 3": lambda w: compare_times(w.times([3] * 10), w.times([3] * 10)),
    "correlated, 12 runs of 10": lambda w: compare_times(
        w.times([10] * 12, effect=0.3), w.times([10] * 12, effect=0.3)
    ),
    "correlated, 6 runs against 40": lambda w: compare_times(
        w.times([3] * 40, effect=0.3), w.times([3] * 6, effect=0.3)
    ),
    "long runs against few short ones": lambda w: compare_times(
        w.times([30] * 20, effect=0.1), w.times([3] * 4, effect=0.1)
    ),
    "short runs against few long ones": lambda w: compare_times(
        w.times([3] * 30, effect=0.1), w.times([40] * 5, effect=0.1)
    ),
    "runs of all sizes": lambda w: compare_times(
        w.times([1, 1, 2, 3, 5, 8, 13, 50] * 2, effect=0.3), w.times([1, 2, 3, 5, 8, 13, 50], effect=0.3)
    ),
    "polled every five seconds": lambda w: compare_times(
        [5 * np.ceil(run / 5) for run in w.times([5] * 12, effect=0.1)],
        [5 * np.ceil(run / 5) for run in w.times([5] * 12, effect=0.1)],
    ),
    "1 % fails": lambda w: compare_rates(w.failures([10] * 12, 0.01), w.failures([10] * 12, 0.01)),
    "10 % fails in runs of 1": lambda w: compare_rates(w.failures([1] * 40, 0.1), w.failures([1] * 40, 0.1)),
    "20 % fails, correlated": lambda w: compare_rates(w.failures([10] * 12, 0.2, 0.3), w.failures([10] * 12, 0.2, 0.3)),
    "20 % fails, correlated, few long runs": lambda w: compare_rates(
        w.failures([3] * 30, 0.2, 0.3), w.failures([20] * 6, 0.2, 0.3)
    ),
}


@repetitions
@pytest.mark.parametrize("name", SAME_WORLDS)
def test_where_nothing_changed_alarms_are_at_most_alpha(name: str, repeat: int) -> None:
    world = World(name)
    alarms, hits = share_of(repeat, lambda: verdict(SAME_WORLDS[name](world), ANY) is not Change.SAME)
    print(f"\nfalse alarms, {name}: {alarms:.4f} of {repeat} (alpha {ALPHA})")
    assert at_most(hits, repeat, ALPHA)


@repetitions
def test_alarms_stay_at_most_alpha_over_many_slugs_that_share_the_luck_of_their_runs(repeat: int) -> None:
    world = World("slugs")

    def alarm() -> bool:
        found = verdicts(world.slugs(12, 8), alpha=ALPHA, min_effect=ANY)
        return any(change is not Change.SAME for _, change in found)

    repeat //= 4
    alarms, hits = share_of(repeat, alarm)
    print(f"\nfalse alarms in any of 8 slugs: {alarms:.4f} of {repeat} (alpha {ALPHA})")
    assert at_most(hits, repeat, ALPHA)


# Name: the world, and the share of slow-downs or failures that is found at least.
CHANGED_WORLDS: dict[str, tuple[Callable[[World], Compared], float]] = {
    "25 % slower, n = 120 in 12 runs": (
        lambda w: compare_times(w.times([10] * 12), w.times([10] * 12, slower=0.25)),
        0.9,
    ),
    "50 % slower, n = 30 in 10 runs": (lambda w: compare_times(w.times([3] * 10), w.times([3] * 10, slower=0.5)), 0.9),
    "50 % slower, correlated, n = 90 in 30 runs": (
        lambda w: compare_times(w.times([3] * 30, effect=0.2), w.times([3] * 30, slower=0.5, effect=0.2)),
        0.9,
    ),
    "failures from 1 to 20 %, n = 120 in 12 runs": (
        lambda w: compare_rates(w.failures([10] * 12, 0.01), w.failures([10] * 12, 0.2)),
        0.9,
    ),
    "failures from 1 to 20 %, n = 90 in 30 runs": (
        lambda w: compare_rates(w.failures([3] * 30, 0.01), w.failures([3] * 30, 0.2)),
        0.9,
    ),
}


@repetitions
@pytest.mark.parametrize("name", CHANGED_WORLDS)
def test_what_got_worse_is_found(name: str, repeat: int) -> None:
    world = World(name)
    make, share = CHANGED_WORLDS[name]
    found, hits = share_of(repeat, lambda: verdict(make(world)) is Change.WORSE)
    print(f"\nfound, {name}: {found:.4f} of {repeat}")
    assert at_least(hits, repeat, share)
    if repeat == FULL:
        assert found > share


def shuffled_apart(world: World, before: Times, after: Times) -> bool:
    """Return whether what one outlier makes worse is worse without it too."""
    outlier = int(world.draw.integers(len(after)))
    if world.draw.random() < 0.5:
        after = [run * 1000 if number == outlier else run for number, run in enumerate(after)]
    else:
        after[outlier] = np.append(after[outlier], 1e6)
    if verdict(compare_times(before, after)) is not Change.WORSE:
        return False
    rest = compare_times(before, after[:outlier] + after[outlier + 1 :])
    assert rest.p_value <= ALPHA
    assert rest.effect is not None
    assert rest.effect >= MIN_EFFECT
    return True


@repetitions
@pytest.mark.parametrize(("before", "after"), [(6, 6), (5, 6), (40, 3), (12, 12)])
def test_one_outlier_attempt_or_run_makes_no_release_worse(before: int, after: int, repeat: int) -> None:
    world = World(f"outlier {before} {after}")
    failed, hits = share_of(repeat, lambda: shuffled_apart(world, world.times([5] * before), world.times([5] * after)))
    print(f"\nworse with one outlier, {before} against {after} runs: {failed:.4f} of {repeat}")
    assert at_most(hits, repeat, ALPHA / 2)


@pytest.mark.parametrize("runs", [6, 7, 12, 40])
def test_one_outlier_beside_the_same_samples_is_never_worse(runs: int) -> None:
    world = World(f"beside {runs}")
    for _ in range(20):
        before = world.times([4] * runs, effect=0.2)
        attempt = [*before[:-1], np.append(before[-1], 1e9)]
        run = [*before, np.full(50, 1e9)]
        assert [verdict(compare_times(before, after)) for after in (attempt, run)] == [Change.SAME] * 2


COVERAGE_WORLDS = [(1, 20, 0.9, 0.0), (10, 3, 0.95, 0.0), (10, 3, 0.95, 0.3), (10, 10, 0.9, 0.1), (5, 10, 0.9, 0.1)]


@repetitions
@pytest.mark.parametrize("side", Bound)
@pytest.mark.parametrize(("runs", "size", "rate", "correlation"), COVERAGE_WORLDS)
def test_the_bound_of_a_rate_holds_in_at_least_95_percent(
    runs: int, size: int, rate: float, correlation: float, side: Bound, repeat: int
) -> None:
    world = World(f"rate {runs} {size} {rate} {correlation} {side}")

    def misses() -> bool:
        failed = world.failures([size] * runs, 1 - rate, correlation)
        bound = rate_bound([of - bad for bad, of in failed], [of for _, of in failed], side)
        return bound > rate if side is Bound.LOWER else bound < rate

    missed, hits = share_of(repeat, misses)
    print(f"\n{side} bound of a rate of {rate}, {runs} runs of {size}, correlation {correlation}: missed {missed:.4f}")
    assert at_most(hits, repeat, 0.05)


QUANTILE_WORLDS = [(1, 30, 0.9, 0.0), (10, 3, 0.9, 0.0), (12, 10, 0.9, 0.0), (12, 10, 0.9, 0.1), (30, 5, 0.9, 0.2)]


@repetitions
@pytest.mark.parametrize("side", Bound)
@pytest.mark.parametrize(("runs", "size", "q", "effect"), QUANTILE_WORLDS)
def test_the_bound_of_a_quantile_holds_in_at_least_95_percent(
    runs: int, size: int, q: float, effect: float, side: Bound, repeat: int
) -> None:
    world = World(f"quantile {runs} {size} {q} {effect} {side}")
    truth = 10 * float(np.exp(stats.norm.ppf(q) * np.hypot(SIGMA, effect)))

    def misses() -> bool:
        bound = quantile_bound(world.times([size] * runs, effect=effect), q, side)
        return bound is not None and (bound > truth if side is Bound.LOWER else bound < truth)

    missed, hits = share_of(repeat, misses)
    print(f"\n{side} bound of p{100 * q:.0f}, {runs} runs of {size}, run effect {effect}: missed {missed:.4f}")
    assert at_most(hits, repeat, 0.05)


def found_in(world: World, runs: int, slower: float, effect: float) -> bool:
    before, after = world.times([3] * runs, effect=effect), world.times([3] * runs, slower, effect)
    return verdict(compare_times(before, after)) is Change.WORSE


@pytest.mark.soak
def test_the_table_of_the_documentation_says_how_many_runs_find_what() -> None:
    """Prints the table of docs/statistics.md; asserts only that more runs find no less."""
    repeat = 500
    for effect in (0.0, 0.2):
        for slower in (0.25, 0.5, 1.0):
            shares = []
            for runs in (6, 8, 12, 20, 40):
                world = World(f"table {effect} {slower} {runs}")
                shares.append(share_of(repeat, partial(found_in, world, runs, slower, effect))[0])
            print(f"\nrun effect {effect}, {slower:.0%} slower: {shares}")
            assert all(later >= earlier - 0.08 for earlier, later in pairwise(shares))
