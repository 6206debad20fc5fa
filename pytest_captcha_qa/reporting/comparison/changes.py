"""A change in one sentence: what of which captcha type, from how much to how much, and how many runs say so."""

from __future__ import annotations

from collections.abc import Callable

from pytest_captcha_qa.model.metrics import Kind, Metric
from pytest_captcha_qa.reporting.comparison.differences import Difference
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.numbers import chance, percent, plain, seconds
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.stats.comparing import LEAST_SECONDS, Change, runs_needed
from pytest_captcha_qa.reporting.wording import counted, short


def sentence(one: Difference, adjusted: float | None, change: Change, alpha: float) -> str:
    """Return the sentence; names from records are made inert and short in it."""
    subject = f"{one.metric.label} of {named(one.pool)}"
    numbers = f"{values(one.baseline, one.metric)} -> {values(one.candidate, one.metric)}"
    if change is Change.NOT_ENOUGH_DATA:
        return f"{subject}: not enough data to tell a change ({numbers}); {lacking(one, alpha)}"
    if change is Change.SAME:
        return f"{subject}: no change that counts, {numbers}"
    word = one.metric.worse if change is Change.WORSE else one.metric.better
    return f"{subject} is {word}{_by(one)}: {numbers}; {chance(adjusted or 0)}"


def change_by(metric: Metric, effect: float | None, shift: float | None) -> str | None:
    """Return by how much a metric changed, with the sign of what is read: rates in points, times in per cent.

    A change of times that is too small to matter is told as that, since no percentage was computed of it.
    """
    if effect is None or shift is None:
        return None
    if metric.kind is Kind.RATE:
        return f"{plain(f'{100 * shift:+.1f}')} points"
    return f"{plain(f'{100 * effect:+.0f}')} %" if effect else f"< {seconds(LEAST_SECONDS)}"


def values(side: Figures, metric: Metric) -> str:
    """Return what a release has of a metric, with how much of it there is."""
    return _VALUES[metric.name](side) if metric.kind is Kind.RATE else _time(side, metric)


def _time(side: Figures, metric: Metric) -> str:
    times = side.times.get(metric.name)
    if times is None:
        return f"none measured in {short(side.release or '')}"
    return f"median {seconds(times.median)} ({counted(times.n, 'attempt')} in {counted(times.runs, 'run')})"


def _verified(side: Figures) -> str:
    if side.rate is None or side.interval is None:
        return f"none judged in {short(side.release or '')}"
    low, high = (percent(bound) for bound in side.interval)
    of = f"{side.passed} of {side.judged} in {counted(side.runs, 'run')}"
    return f"{percent(side.rate)} ({of}; 95 % interval {low} to {high})"


def _repeated(side: Figures) -> str:
    if side.resolve_share is None:
        return f"none submitted in {short(side.release or '')}"
    return f"{percent(side.resolve_share)} ({side.repeats} beyond {counted(side.keys, 'key')})"


_VALUES: dict[str, Callable[[Figures], str]] = {"verify_rate": _verified, "resolve_share": _repeated}


def _by(one: Difference) -> str:
    told = change_by(one.metric, one.compared.effect, one.compared.shift)
    return f" by {told.lstrip('+-')}" if told else ""


def lacking(one: Difference, alpha: float) -> str:
    """Return how many runs could tell a change."""
    before, after = (side.size(one.metric).runs for side in (one.baseline, one.candidate))
    each, more = runs_needed(alpha), runs_needed(alpha, before)
    if more is not None and after < more:
        return f"{counted(more, 'run')} of {short(one.candidate.release or '')} could tell, there is {after or 'none'}"
    if each is not None and min(before, after) < each:
        return f"{counted(each, 'run')} of each could tell"
    return "so few runs cannot bear so many comparisons"
