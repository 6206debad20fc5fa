"""What changed between two releases, as rows: the worst first, values written out."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_captcha_qa.model.metrics import Kind, Metric, Side
from pytest_captcha_qa.reporting.comparison.changes import change_by
from pytest_captcha_qa.reporting.comparison.releases import Change, MetricChange
from pytest_captcha_qa.reporting.dashboard.model import Level, Mover, Tag
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.numbers import NOTHING, chance, percent, seconds
from pytest_captcha_qa.reporting.pools import named

__all__ = ["effect_of", "level_of", "movers"]

_SIDES = {Side.OURS: "our side", Side.PROVIDER: "provider's side", Side.BOTH: "either side"}
_LEVELS = {Change.BETTER: Level.GOOD, Change.SAME: Level.SAME, Change.NOT_ENOUGH_DATA: Level.UNKNOWN}
_ORDER = (Level.BAD, Level.WARN, Level.UNKNOWN, Level.GOOD, Level.SAME)


def movers(changes: Iterable[MetricChange]) -> list[Mover]:
    """Return the rows of a comparison, what got worse on our side first, the largest effect before smaller ones."""
    ranked = sorted(changes, key=lambda one: (_ORDER.index(level_of(one)), -abs(one.effect or 0), one.pool.type))
    return [_mover(one) for one in ranked]


def level_of(one: MetricChange) -> Level:
    """Return how bad a change is: what only the provider can make worse is a warning."""
    if one.change is Change.WORSE:
        return Level.WARN if one.metric.side is Side.PROVIDER else Level.BAD
    return _LEVELS[one.change]


def effect_of(one: MetricChange) -> str:
    """Return by how much a metric changed: times in per cent, rates in points."""
    return (change_by(one.metric, one.effect, one.shift) or NOTHING).replace("-", "−")


def _mover(one: MetricChange) -> Mover:
    before, after = one.baseline, one.candidate
    return Mover(
        tag=Tag(one.pool.env, one.pool.project, one.pool.type, one.pool.form),
        level=level_of(one),
        word=str(one.change.value),
        pool=named(one.pool),
        what=one.metric.label,
        side=_SIDES[one.metric.side],
        baseline=_value(before, one.metric),
        candidate=_value(after, one.metric),
        effect=effect_of(one),
        n=f"{before.size(one.metric).samples:,} → {after.size(one.metric).samples:,}",
        runs=f"{before.size(one.metric).runs:,} → {after.size(one.metric).runs:,}",
        sentence=_why(one),
    )


def _why(one: MetricChange) -> str:
    """Return what the columns do not say: why there is no answer, or how rare such a difference would be by chance."""
    if one.change is Change.NOT_ENOUGH_DATA:
        return one.lacking
    if one.adjusted is None:
        return one.sentence
    return f"{chance(one.adjusted)}, corrected for all comparisons"


def _value(figures: Figures, metric: Metric) -> str:
    if metric.kind is Kind.RATE:
        return percent(figures.share(metric))
    time = figures.times.get(metric.name)
    return f"{seconds(time.median)}, P90 {seconds(time.p90)}" if time is not None else NOTHING
