"""What changed between two releases, as rows: the worst first, values written out."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_captcha_qa.model.metrics import Kind, Metric, Side
from pytest_captcha_qa.reporting.comparison.changes import change_by
from pytest_captcha_qa.reporting.comparison.releases import Change, MetricChange
from pytest_captcha_qa.reporting.dashboard.formats import NONE, percent, seconds, shown
from pytest_captcha_qa.reporting.dashboard.model import Level, Mover, Tag, made_by
from pytest_captcha_qa.reporting.figures import Figures, Pool

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


def name_of(pool: Pool) -> str:
    """Return what a pool is for the reader: a form, or all forms of a type, and by which tokens it is measured."""
    kind = shown(pool.type, 40)
    what = f"{shown(pool.form, 60)} ({kind})" if pool.form is not None else f"all {kind} forms"
    project = f", project {shown(pool.project, 40)}" if pool.project != "default" else ""
    return f"{what}{project}, {made_by(pool)}"


def short_name(pool: Pool) -> str:
    """Return what a pool is for a sentence; by which tokens it is measured stands in the table."""
    return shown(pool.form, 60) if pool.form is not None else f"all {shown(pool.type, 40)} forms"


def effect_of(one: MetricChange) -> str:
    """Return by how much a metric changed: times in per cent, rates in points."""
    return (change_by(one.metric, one.effect, one.shift) or NONE).replace("-", "−")


def _mover(one: MetricChange) -> Mover:
    before, after = one.baseline, one.candidate
    return Mover(
        tag=Tag(one.pool.env, one.pool.project, one.pool.type, one.pool.form),
        level=level_of(one),
        word=str(one.change.value),
        pool=name_of(one.pool),
        what=one.metric.label,
        side=_SIDES[one.metric.side],
        baseline=_value(before, one.metric),
        candidate=_value(after, one.metric),
        effect=effect_of(one),
        n=f"{_count(before, one.metric):,} → {_count(after, one.metric):,}",
        runs=f"{_runs(before, one.metric):,} → {_runs(after, one.metric):,}",
        sentence=_why(one),
    )


def _why(one: MetricChange) -> str:
    """Return what the columns do not say: why there is no answer, or how rare such a difference would be by chance."""
    if one.change is Change.NOT_ENOUGH_DATA:
        return one.lacking
    if one.adjusted is None:
        return one.sentence
    chance = "< 0.0001" if one.adjusted < 0.0001 else f"= {one.adjusted:.2g}"
    return f"p {chance}, corrected for all comparisons"


def _value(figures: Figures, metric: Metric) -> str:
    if metric.kind is Kind.RATE:
        return percent(_share(figures, metric))
    time = figures.times.get(metric.name)
    return f"{seconds(time.median)}, P90 {seconds(time.p90)}" if time is not None else NONE


def _share(figures: Figures, metric: Metric) -> float | None:
    return figures.rate if metric.name == "verify_rate" else figures.resolve_share


def _count(figures: Figures, metric: Metric) -> int:
    if metric.kind is Kind.RATE:
        return figures.judged if metric.name == "verify_rate" else figures.keys
    time = figures.times.get(metric.name)
    return time.n if time is not None else 0


def _runs(figures: Figures, metric: Metric) -> int:
    time = figures.times.get(metric.name)
    return time.runs if time is not None else figures.runs if metric.kind is Kind.RATE else 0
