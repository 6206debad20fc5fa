"""How the dataset counts the metrics of `model.metrics`, as SQL over the view `positive`."""

from __future__ import annotations

from pytest_captcha_qa.model.metrics import Metric
from pytest_captcha_qa.model.token import OWN_SOLVES

_OWN_SOLVES = f"source IN ({', '.join(repr(str(source)) for source in sorted(OWN_SOLVES))})"


def source_fits(metric: Metric) -> str:
    """Return the SQL that holds for a row whose time of that metric counts, as far as its source goes."""
    return _OWN_SOLVES if metric.own_solves else "true"
