"""A line of the terminal summary and its colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GOOD = {"green": True}
BAD = {"red": True}
WARN = {"yellow": True}
PLAIN: dict[str, bool] = {}


class SummaryLine(NamedTuple):
    """One line and its pytest markup, as `write_line(text, **markup)` takes it."""

    text: str
    markup: Mapping[str, bool] = PLAIN
