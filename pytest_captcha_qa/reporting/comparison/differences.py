"""Two samples metric by metric, before it is judged what the differences mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_captcha_qa.reporting.comparison.samples import Sample, Samples, levels
from pytest_captcha_qa.reporting.figures import Figures, Pool
from pytest_captcha_qa.reporting.metrics import METRICS, TIMES, Metric
from pytest_captcha_qa.reporting.stats.comparing import Compared, compare_rates, compare_times


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one pool on both sides, and what the numbers say."""

    pool: Pool
    metric: Metric
    baseline: Figures
    candidate: Figures
    compared: Compared


Known = dict[tuple[Pool, frozenset[str]], list[Difference]]
"""What was found of some forms in a pool, of the same two sides."""


def differences(first: Samples, second: Samples, before: str, after: str, known: Known) -> Iterator[Difference]:
    """Yield the metrics that either side has, of the pools that both have; of each pool the forms that both have.

    What is `known` is not compared again, and what is found is known from then on.
    """
    for pool in sorted(set(first.pools) & set(second.pools), key=_order):
        common = frozenset(first.get(pool).forms & second.get(pool).forms)
        if common and (pool, common) not in known:
            one, two = first.get(pool).of(common), second.get(pool).of(common)
            known[pool, common] = list(_differences(pool, one, two, before, after))
        yield from known.get((pool, common), ())


def _differences(pool: Pool, one: Sample, two: Sample, before: str, after: str) -> Iterator[Difference]:
    figures = one.figures(pool, before), two.figures(pool, after)
    for metric, compared in (*_times(one, two), *_rates(one, two)):
        yield Difference(pool, metric, *figures, compared)


def _order(pool: Pool) -> tuple[str, ...]:
    return (pool.type, pool.form or "", pool.project, pool.provider, pool.key_mode, str(pool.time_scale))


def _times(one: Sample, two: Sample) -> Iterator[tuple[Metric, Compared]]:
    for metric in TIMES:
        if one.has(metric.name) or two.has(metric.name):
            scale = levels(one, two, metric.name)
            yield metric, compare_times(one.times(metric.name, scale), two.times(metric.name, scale))


def _rates(one: Sample, two: Sample) -> Iterator[tuple[Metric, Compared]]:
    for name, went_wrong in (("verify_rate", _failed), ("resolve_share", _repeated)):
        before, after = went_wrong(one), went_wrong(two)
        if any(of for _, of in (*before, *after)):
            metric, compared = METRICS[name], compare_rates(before, after)
            if compared.shift is not None and not metric.lower_is_better:
                compared = replace(compared, shift=0.0 - compared.shift)  # not -0.0
            yield metric, compared


def _failed(sample: Sample) -> list[tuple[int, int]]:
    counts = sample.counts()
    return [(judged - passed, judged) for passed, judged in zip(counts["passed"], counts["judged"], strict=True)]


def _repeated(sample: Sample) -> list[tuple[int, int]]:
    counts = sample.counts()
    return [(submits - keys, keys) for submits, keys in zip(counts["submits"], counts["keys"], strict=True)]
