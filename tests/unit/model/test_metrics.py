from __future__ import annotations

from pytest_captcha_qa.model.metrics import METRICS, TIMES, Side


def test_the_table_of_metrics_has_what_everybody_names() -> None:
    assert list(METRICS) == ["wait", "blocked", "page", "submit", "verify", "verify_rate", "resolve_share"]
    assert {metric.unit for metric in METRICS.values()} == {"s", "share"}
    assert [metric.name for metric in METRICS.values() if not metric.lower_is_better] == ["verify_rate"]
    assert {metric.column for metric in TIMES} == {"wait", "blocked", "page", "submit", "verify"}
    assert {metric.name for metric in METRICS.values() if metric.side is not Side.OURS} == {
        "wait", "blocked", "resolve_share",
    }  # fmt: skip
