"""Numbers as people read them, by one rule in every report; the page's script follows the same."""

from __future__ import annotations

from datetime import timedelta

NOTHING = "–"
"""What stands where there is no number."""

_SHORTEST = 0.0001
_HUGE = 1e7


def seconds(value: float | None) -> str:
    """Return a time in three digits, below a second in milliseconds: what is short never looks like nothing."""
    if value is None:
        return NOTHING
    if value < 0:
        return f"-{seconds(-value)}"
    if 0 < value < _SHORTEST:
        return f"<{1000 * _SHORTEST:g} ms"
    if 0 < value < 0.9995:
        return f"{1000 * value:.3g} ms"
    if value < 999.5:
        return f"{value:.3g} s"
    return f"{value:,.0f} s" if value < _HUGE else f"{value:.2e} s"


def percent(share: float | None) -> str:
    """Return a share with one decimal, within a point of nothing or all with two; 0 % and 100 % are exact."""
    if share is None:
        return NOTHING
    near = abs(share) < 0.01 or abs(share - 1) < 0.01
    text = f"{100 * share:.{2 if near else 1}f}"
    if share > 0 and text == "0.00":
        return "<0.01 %"
    if share < 1 and text == "100.00":
        return ">99.99 %"
    return f"{plain(text)} %"


def span(time: timedelta) -> str:
    """Return how long something is ago, in minutes, hours or days."""
    if time >= timedelta(days=2):
        return f"{time / timedelta(days=1):.3g} days"
    hours = time / timedelta(hours=1)
    return f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.0f} min"


def chance(p_value: float) -> str:
    """Return a p-value as `p = 0.0012`, or that it is below what is worth telling."""
    return f"p = {p_value:.2g}" if p_value >= 1e-4 else "p < 0.0001"


def plain(text: str) -> str:
    """Return a number without zeros at its end that say nothing, and without the sign of a zero."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if float(text) else "0"
