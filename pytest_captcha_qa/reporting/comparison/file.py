"""A comparison as one JSON object, for scripts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_captcha_qa.model.metrics import Kind, Metric
from pytest_captcha_qa.reporting.comparison.releases import MetricChange, ReleaseComparison
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.stats.comparing import Change


def as_json(found: ReleaseComparison) -> dict[str, Any]:
    """Return it with how many metrics came to what, every change, and what was left out."""
    return {
        "env": found.env,
        "baseline": found.baseline,
        "candidate": found.candidate,
        "regression": asdict(found.regression),
        "counts": {change.name.lower(): len(found.of(change)) for change in Change},
        "changes": [_change(change) for change in found.changes],
        "notes": list(found.notes),
    }


def _change(one: MetricChange) -> dict[str, Any]:
    return {
        **{name: value for name, value in asdict(one.pool).items() if name != "env"},
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "side": str(one.metric.side),
        "change": one.change.name.lower(),
        "effect": one.effect,
        "shift": one.shift,
        "superiority": one.superiority,
        "p_value": one.p_value,
        "adjusted_p_value": one.adjusted,
        "baseline": _side(one.baseline, one.metric),
        "candidate": _side(one.candidate, one.metric),
        "sentence": one.sentence,
    }


def _side(side: Figures, metric: Metric) -> dict[str, Any]:
    if metric.kind is Kind.TIME:
        times = side.times.get(metric.name)
        return asdict(times) if times is not None else {"n": 0, "runs": 0, "median": None, "p90": None, "p99": None}
    if metric.name == "verify_rate":
        interval = list(side.interval) if side.interval is not None else None
        counts = {"passed": side.passed, "judged": side.judged, "runs": side.runs}
        return {"rate": side.rate, "interval": interval, **counts}
    return {"rate": side.resolve_share, "repeats": side.repeats, "keys": side.keys, "runs": side.runs}
