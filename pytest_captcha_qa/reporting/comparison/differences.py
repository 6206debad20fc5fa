"""Two samples metric by metric, before it is judged what the differences mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_captcha_qa.model.metrics import METRICS, TIMES, Metric
from pytest_captcha_qa.reporting.comparison.samples import Sample, Samples, levels
from pytest_captcha_qa.reporting.figures import Figures, Pool
from pytest_captcha_qa.reporting.stats.comparing import Compared, compare_rates, compare_times


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one pool on both sides, and what the numbers say."""

    pool: Pool
    metric: Metric
    baseline: Figures
    candidate: Figures
    compared: Compared


Known = dict[tuple[Pool, frozenset[str], float], list[Difference]]
"""What was found of some forms in a pool at an alpha, of the same two sides."""


def differences(
    first: Samples, second: Samples, before: str, after: str, *, alpha: float, known: Known
) -> Iterator[Difference]:
    """Yield the metrics that either side has, of the pools that both have; of each pool the forms that both have.

    What is `known` is not compared again, and what is found is known from then on.
    """
    for pool in sorted(set(first.pools) & set(second.pools), key=_order):
        common = frozenset(first.get(pool).forms & second.get(pool).forms)
        key = pool, common, alpha
        if common and key not in known:
            one, two = first.get(pool).of(common), second.get(pool).of(common)
            figures = one.figures(pool, before), two.figures(pool, after)
            found = (*_times(one, two, alpha), *_rates(one, two, alpha))
            known[key] = [Difference(pool, metric, *figures, compared) for metric, compared in found]
        yield from known.get(key, ())


def _order(pool: Pool) -> tuple[str, ...]:
    return (pool.type, pool.form or "", pool.project, pool.provider, pool.key_mode, str(pool.time_scale))


def _times(one: Sample, two: Sample, alpha: float) -> Iterator[tuple[Metric, Compared]]:
    for metric in TIMES:
        if one.has(metric.name) or two.has(metric.name):
            scale = levels(one, two, metric.name)
            yield metric, compare_times(one.times(metric.name, scale), two.times(metric.name, scale), alpha=alpha)


def _rates(one: Sample, two: Sample, alpha: float) -> Iterator[tuple[Metric, Compared]]:
    for name, went_wrong in (("verify_rate", _failed), ("resolve_share", _repeated)):
        before, after = went_wrong(one), went_wrong(two)
        if any(of for _, of in (*before, *after)):
            metric, compared = METRICS[name], compare_rates(before, after, alpha=alpha)
            if compared.shift is not None and not metric.lower_is_better:
                compared = replace(compared, shift=0.0 - compared.shift)  # not -0.0
            yield metric, compared


def _failed(sample: Sample) -> list[tuple[int, int]]:
    counts = sample.counts()
    return [(judged - passed, judged) for passed, judged in zip(counts["passed"], counts["judged"], strict=True)]


def _repeated(sample: Sample) -> list[tuple[int, int]]:
    counts = sample.counts()
    return [(submits - keys, keys) for submits, keys in zip(counts["submits"], counts["keys"], strict=True)]
