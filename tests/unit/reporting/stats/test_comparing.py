from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_captcha_qa.reporting.stats.bounds import Bound, Interval, quantile_bound, rate_bound, rate_interval
from pytest_captcha_qa.reporting.stats.comparing import (
    Change,
    Compared,
    adjust,
    compare_rates,
    compare_times,
    runs_needed,
    typical,
    verdicts,
)


def runs(*values: Sequence[float]) -> list[np.ndarray]:
    return [np.array(run, dtype=float) for run in values]


def steady(level: float, number: int = 8, size: int = 4) -> list[np.ndarray]:
    """Make runs around a level that differ a little, always the same."""
    draw = np.random.default_rng(7)
    return [level * np.exp(0.05 * draw.standard_normal(size)) for _ in range(number)]


def judged(found: Compared, alpha: float = 0.01, min_effect: float = 0.15) -> Change:
    return verdicts([found], alpha=alpha, min_effect=min_effect)[0][1]


# Rates.


@pytest.mark.parametrize(("passed", "of"), [(0, 1), (1, 1), (0, 20), (1, 20), (19, 20), (20, 20), (980, 1000)])
def test_the_interval_of_a_rate_is_clopper_and_pearsons(passed: int, of: int) -> None:
    expected = stats.binomtest(passed, of).proportion_ci(0.95, method="exact")
    assert rate_interval(passed, of) == pytest.approx(Interval(expected.low, expected.high), abs=1e-9)
    less = stats.binomtest(passed, of, alternative="less").proportion_ci(0.95, method="exact")
    more = stats.binomtest(passed, of, alternative="greater").proportion_ci(0.95, method="exact")
    assert rate_bound(passed, of, Bound.UPPER) == pytest.approx(less.high, abs=1e-9)
    assert rate_bound(passed, of, Bound.LOWER) == pytest.approx(more.low, abs=1e-9)


def test_of_nothing_every_rate_is_possible() -> None:
    assert rate_interval(0, 0) is None
    assert rate_interval([], []) is None
    assert (rate_bound(0, 0, Bound.LOWER), rate_bound(0, 0, Bound.UPPER)) == (0.0, 1.0)
    assert (rate_bound([0, 0], [0, 0], Bound.LOWER), rate_bound([], [], Bound.UPPER)) == (0.0, 1.0)


def test_failures_that_come_together_in_one_run_say_less() -> None:
    spread = rate_bound([9] * 10, [10] * 10, Bound.UPPER)
    together = rate_bound([0] + [10] * 9, [10] * 10, Bound.UPPER)
    assert spread < together
    assert rate_bound([0] * 5, [4] * 5, Bound.UPPER) == pytest.approx(rate_bound(0, 20, Bound.UPPER))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
def test_a_bound_is_a_share_and_on_its_side_of_the_rate(counts: list[tuple[int, int]]) -> None:
    passed, of = [min(pair) for pair in counts], [max(pair) for pair in counts]
    low, high = (rate_bound(passed, of, side) for side in Bound)
    assert 0 <= low <= high <= 1
    if sum(of):
        assert low - 1e-9 <= sum(passed) / sum(of) <= high + 1e-9


def test_more_repeats_than_keys_are_all_of_them() -> None:
    assert rate_bound(30, 10, Bound.UPPER) == 1.0
    assert rate_bound(30, 10, Bound.LOWER) == pytest.approx(rate_bound(10, 10, Bound.LOWER))


# Quantiles.


def test_too_few_samples_bound_no_quantile() -> None:
    assert quantile_bound([], 0.9, Bound.LOWER) is None
    assert quantile_bound(runs([5.0]), 0.9, Bound.LOWER) is None
    assert quantile_bound(runs([5.0, 6.0]), 0.9, Bound.LOWER) == 5.0
    assert quantile_bound(runs([1.0] * 28), 0.9, Bound.UPPER) is None
    assert quantile_bound(runs([1.0] * 29), 0.9, Bound.UPPER) == 1.0


@pytest.mark.parametrize("size", [2, 10, 29, 100])
def test_the_bound_of_a_quantile_is_the_order_statistic_that_excludes_it(size: int) -> None:
    values = np.arange(1.0, size + 1)
    bound = quantile_bound([values], 0.9, Bound.LOWER)
    ranks = [rank for rank in range(1, size + 1) if stats.binom.sf(rank - 1, size, 0.9) >= 0.95]
    assert bound == (max(ranks) if ranks else None)
    upper = quantile_bound([values], 0.9, Bound.UPPER)
    ranks = [rank for rank in range(1, size + 1) if stats.binom.cdf(rank - 1, size, 0.9) >= 0.95]
    assert upper == (min(ranks) if ranks else None)


def test_slow_attempts_that_come_together_in_one_run_bound_less() -> None:
    together = quantile_bound(runs(*[[1.0] * 10] * 8, [9.0] * 10, [9.0] * 10), 0.9, Bound.LOWER)
    spread = quantile_bound(runs(*[[1.0] * 8 + [9.0] * 2] * 10), 0.9, Bound.LOWER)
    assert (together, spread) == (1.0, 9.0)


# Comparing.


def test_a_slower_release_is_worse_and_a_faster_one_better() -> None:
    found = compare_times(steady(10), steady(15))
    assert judged(found) is Change.WORSE
    assert found.effect == pytest.approx(0.5, abs=0.02)
    assert found.shift == pytest.approx(5, abs=0.2)
    assert judged(compare_times(steady(15), steady(10))) is Change.BETTER


def test_the_superiority_is_mann_and_whitneys() -> None:
    before, after = steady(10), steady(10.4)
    first, second = np.concatenate(before), np.concatenate(after)
    expected = stats.mannwhitneyu(second, first).statistic / len(first) / len(second)
    assert compare_times(before, after).superiority == pytest.approx(expected)


@pytest.mark.parametrize("slower", [0.0, 0.05, 0.14])
def test_what_is_smaller_than_the_least_effect_is_the_same(slower: float) -> None:
    assert judged(compare_times(steady(10, 20), steady(10 * (1 + slower), 20))) is Change.SAME


def test_milliseconds_are_no_change_however_many_times_more() -> None:
    found = compare_times(steady(0.001), steady(0.009))
    assert found.p_value < 0.001
    assert judged(found) is Change.SAME
    assert judged(compare_times(steady(0.01), steady(0.03))) is Change.WORSE


def test_the_same_numbers_in_another_order_give_the_same_answer() -> None:
    before, after = steady(10, 12), steady(11, 12)
    draw = np.random.default_rng(1)
    mixed = [draw.permutation(before[number]) for number in draw.permutation(12)]
    one, two = compare_times(before, after), compare_times(mixed, after[::-1])
    assert (one.p_value, one.steady_p) == (two.p_value, two.steady_p)
    assert one.effect == pytest.approx(two.effect)
    assert compare_times(steady(10, 12, 99), after) == compare_times(
        [draw.permutation(values) for values in steady(10, 12, 99)], [draw.permutation(values) for values in after]
    ), "to the last bit, whatever order the attempts of a run are read in"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []),
        ([], steady(1)),
        (steady(1), []),
        (runs([]), runs([], [])),
        (runs([1.0]), runs([2.0])),
        (runs([1.0, 2.0, 3.0]), runs([7.0, 8.0, 9.0])),
        (steady(1, 40), runs([100.0] * 50)),
        (steady(1, 40), runs([100.0] * 50, [100.0] * 50)),
        (steady(1, 5), steady(9, 5)),
        (runs([math.nan, math.inf, -1.0]), steady(1)),
    ],
    ids=["nothing", "no baseline", "no candidate", "empty runs", "one sample", "one run", "one run against many",
         "two runs against many", "five against five", "no numbers"],
)  # fmt: skip
def test_so_little_can_never_tell_a_change(before: list[np.ndarray], after: list[np.ndarray]) -> None:
    found = compare_times(before, after)
    assert found.least_p > 0.01
    assert judged(found) is Change.NOT_ENOUGH_DATA


def test_values_that_are_no_time_are_left_out() -> None:
    dirty = [np.append(run, [math.nan, math.inf, -math.inf, -3.0]) for run in steady(10)]
    assert compare_times(dirty, steady(15)) == compare_times(steady(10), steady(15))


@pytest.mark.parametrize("value", [0.0, 1.0, 12.5])
def test_constant_times_are_the_same(value: float) -> None:
    constant = runs(*[[value] * 3] * 8)
    found = compare_times(constant, constant)
    assert (found.p_value, found.effect, found.superiority) == (1.0, 0.0, 0.5)
    assert judged(found) is Change.SAME


def test_constant_times_on_two_levels_are_a_change() -> None:
    low, high = runs(*[[1.0] * 3] * 8), runs(*[[2.0] * 3] * 8)
    assert judged(compare_times(low, high)) is Change.WORSE
    assert judged(compare_times(high, low)) is Change.BETTER
    assert judged(compare_times(runs(*[[0.0] * 3] * 8), high)) is Change.WORSE


def test_ties_of_a_polling_interval_are_no_trouble() -> None:
    before = [np.ceil(run / 5) * 5 for run in steady(9.9, 12)]
    after = [np.ceil(run / 5) * 5 for run in steady(19.9, 12)]
    assert judged(compare_times(before, before)) is Change.SAME
    assert judged(compare_times(before, after)) is Change.WORSE


def test_the_typical_value_moves_with_no_outlier() -> None:
    values = np.append(np.arange(1.0, 12.0), 1e12)
    assert typical([values]) == pytest.approx(6.5)


def test_runs_that_fail_together_are_no_evidence_against_a_release() -> None:
    before = [(0, 10)] * 12
    together = compare_rates(before, [(10, 10), *[(0, 10)] * 11])
    spread = compare_rates(before, [(2, 10)] * 12)
    assert (judged(together), judged(spread)) == (Change.SAME, Change.WORSE)
    assert stats.fisher_exact([[10, 110], [0, 120]]).pvalue < 0.01
    assert judged(compare_rates([(2, 10)] * 12, before)) is Change.BETTER


def test_rates_of_nothing_and_of_all_are_compared_without_a_warning() -> None:
    assert judged(compare_rates([], [(0, 10)] * 8)) is Change.NOT_ENOUGH_DATA
    assert judged(compare_rates([(0, 0)] * 8, [(0, 10)] * 8)) is Change.NOT_ENOUGH_DATA
    assert judged(compare_rates([(0, 10)] * 8, [(0, 10)] * 8)) is Change.SAME
    assert judged(compare_rates([(10, 10)] * 8, [(10, 10)] * 8)) is Change.SAME
    assert judged(compare_rates([(0, 10)] * 8, [(10, 10)] * 8)) is Change.WORSE
    assert judged(compare_rates([(0, 10)] * 8, [(30, 10)] * 8)) is Change.WORSE


def test_a_drop_of_less_than_a_point_is_the_same() -> None:
    found = compare_rates([(10, 10_000)] * 20, [(80, 10_000)] * 20)
    assert found.p_value < 1e-4
    assert judged(found) is Change.SAME


@settings(max_examples=40)
@given(st.integers(6, 14), st.floats(0.8, 1.5), st.integers(0, 2**32 - 1))
def test_what_is_asked_no_further_comes_to_the_same(number: int, slower: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, after = ([level * draw.gamma(9, 1 / 9, 6) for _ in range(number)] for level in (10, 10 * slower))
    assert judged(compare_times(before, after, alpha=0.01)) is judged(compare_times(before, after))
    failed, more = ([(int(draw.binomial(9, share)), 9) for _ in range(number)] for share in (0.1, 0.1 * slower**4))
    assert judged(compare_rates(failed, more, alpha=0.01)) is judged(compare_rates(failed, more))


ANY_RUNS = st.lists(st.lists(st.floats() | st.sampled_from([0.0, 1.0, 5.0]), max_size=4), max_size=9)


@given(ANY_RUNS, ANY_RUNS)
def test_any_numbers_have_an_answer(before: list[list[float]], after: list[list[float]]) -> None:
    one, two = runs(*before), runs(*after)
    found = compare_times(one, two)
    assert 0 <= found.least_p <= 1
    assert 0 <= found.p_value <= 1
    assert 0 <= found.steady_p <= 1
    assert found.effect is None or math.isfinite(found.effect)
    assert abs(found.steady_effect) <= abs(found.effect or 0)
    assert judged(compare_times(one, one)) in (Change.SAME, Change.NOT_ENOUGH_DATA)
    bounds = [quantile_bound(one, 0.9, side) for side in Bound]
    assert None in bounds or bounds[0] <= bounds[1]


ANY_COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9)


@given(ANY_COUNTS, ANY_COUNTS)
def test_any_counts_have_an_answer(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    found = compare_rates(before, after)
    assert 0 <= found.p_value <= 1
    assert judged(found) in Change
    assert judged(compare_rates(before, before)) in (Change.SAME, Change.NOT_ENOUGH_DATA)


# Many at once.


def clear(p: float, *, least: float = 1e-6) -> Compared:
    return Compared(effect=0.5, steady_effect=0.5, shift=1.0, p_value=p, steady_p=p, least_p=least, reachable_p=least)


def test_the_correction_is_that_of_benjamini_and_hochberg() -> None:
    p_values = [0.001, 0.02, 0.3, 0.9]
    assert adjust(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))
    assert adjust([]) == []
    assert verdicts([], alpha=0.01, min_effect=0.15) == []


def test_what_counts_alone_may_not_count_among_many() -> None:
    many = [clear(0.005), *[clear(0.6)] * 9]
    assert judged(clear(0.005)) is Change.WORSE
    assert verdicts(many, alpha=0.01, min_effect=0.15)[0] == (pytest.approx(0.05), Change.SAME)


def test_what_could_never_tell_costs_the_others_nothing() -> None:
    hopeless = [clear(0.6, least=0.05)] * 9
    found = verdicts([clear(0.005), *hopeless], alpha=0.01, min_effect=0.15)
    assert [change for _, change in found] == [Change.WORSE, *[Change.NOT_ENOUGH_DATA] * 9]


def test_runs_that_would_do_for_one_metric_may_be_too_few_for_many() -> None:
    few = [clear(0.5, least=0.004)] * 10
    assert {change for _, change in verdicts(few, alpha=0.01, min_effect=0.15)} == {Change.NOT_ENOUGH_DATA}
    assert judged(few[0]) is Change.SAME


def test_the_number_of_runs_that_could_tell_is_known() -> None:
    assert runs_needed(0.01) == 6
    assert runs_needed(0.05) == 5
    assert runs_needed(0.01, other=50) == 3
    assert runs_needed(0.01, other=1) is None
    for number in (5, 6):
        change = judged(compare_times(steady(10, number), steady(20, number)))
        assert (change is Change.WORSE) == (number >= 6)
