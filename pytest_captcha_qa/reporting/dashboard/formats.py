"""How figures are written on the page: as cells of its tables and as filters of its template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest_captcha_qa.reporting.figures import Figures, Pool
from pytest_captcha_qa.reporting.numbers import NOTHING, percent, seconds
from pytest_captcha_qa.reporting.wording import shown

__all__ = ["FILTERS", "ROWS", "moment", "rate", "seconds", "shown", "span", "time", "time_of", "whole"]


def rate(figures: Figures) -> str:
    """Return the verification rate with its interval."""
    if figures.interval is None:
        return percent(figures.rate)
    low, high = figures.interval
    return f"{percent(figures.rate)} ({percent(low)} to {percent(high)})"


def moment(text: str | None) -> str:
    """Return an ISO time as date and minute."""
    return shown(text.replace("T", " ")[:16], 16) if text else NOTHING


def span(start: float, end: float) -> str:
    """Return a part of a distribution's axis."""
    return f"{seconds(start)} to {seconds(end)}"


def time_of(figures: Figures, metric: str, part: str) -> float | None:
    """Return a quantile of a time in seconds, None where nothing was measured."""
    found = figures.times.get(metric)
    value: float | None = getattr(found, part) if found is not None else None
    return value


def time(figures: Figures, metric: str, part: str) -> str:
    """Return a quantile of a time with its unit."""
    return seconds(time_of(figures, metric, part))


def whole(pool: Pool) -> Pool:
    """Return the pool over all forms."""
    return replace(pool, form=None)


def _times(one: Figures) -> list[str]:
    wait = one.times.get("wait")
    waits = [time(one, "wait", part) for part in ("median", "p90", "p99")]
    ours = [time(one, name, "p90") for name in ("page", "submit", "verify")]
    return [str(one.release), f"{one.runs:,}", f"{wait.n if wait else 0:,}", *waits, *ours]


def _rates(one: Figures) -> list[str]:
    interval = f"{percent(one.interval[0])} to {percent(one.interval[1])}" if one.interval is not None else NOTHING
    counts = [f"{one.judged:,}", f"{one.passed:,}", percent(one.rate), interval]
    return [str(one.release), f"{one.runs:,}", *counts, f"{one.keys:,}", f"{one.submits:,}", percent(one.resolve_share)]


ROWS: Mapping[str, Callable[[Figures], list[str]]] = {"times": _times, "rates": _rates}
FILTERS: dict[str, Callable[..., Any]] = {
    "shown": shown,
    "seconds": seconds,
    "percent": percent,
    "rate": rate,
    "moment": moment,
    "span": span,
    "time": time,
}
