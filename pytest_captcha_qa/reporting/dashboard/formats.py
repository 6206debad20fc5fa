"""How values are written on the page: foreign text made inert and short, numbers with their units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest_captcha_qa.reporting.comparison import changes
from pytest_captcha_qa.reporting.figures import Figures, Pool
from pytest_captcha_qa.reporting.wording import one_line

NONE = "–"
NAMELESS = "(no name)"
_HUGE = 1e7


def shown(text: str, most: int = 90) -> str:
    """Return foreign text on one inert line, cut where it is longer than the page has room for; a blank one is told."""
    line = one_line(text) or NAMELESS
    return line if len(line) <= most else f"{line[: most - 1]}…"


def seconds(value: float | None) -> str:
    """Return seconds with their unit, in three digits; below a tenth in milliseconds' steps."""
    if value is None:
        return NONE
    size = abs(value)
    if size >= _HUGE:
        return f"{value:.2e} s"
    digits = 3 if 0 < size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f} s"


def percent(value: float | None) -> str:
    """Return a share as per cent."""
    return NONE if value is None else changes.percent(value)


def rate(figures: Figures) -> str:
    """Return the verification rate with its interval."""
    if figures.interval is None:
        return percent(figures.rate)
    low, high = figures.interval
    return f"{percent(figures.rate)} ({percent(low)} to {percent(high)})"


def moment(text: str | None) -> str:
    """Return an ISO time as date and minute."""
    return shown(text.replace("T", " ")[:16], 16) if text else NONE


def span(start: float, end: float) -> str:
    """Return a part of a distribution's axis."""
    return f"{start:.3g} to {end:.3g}"


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
    interval = f"{percent(one.interval[0])} to {percent(one.interval[1])}" if one.interval is not None else NONE
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
