"""The metrics that are summed up, compared and gated: one table of names, units and sides for all who name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a metric's samples are: seconds, or one count out of another."""

    TIME = "time"
    RATE = "rate"


class Side(StrEnum):
    """Who can make a metric worse: the site under test, the solving service, or either."""

    OURS = "ours"
    PROVIDER = "provider"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `unit` is `s` for times and `share` (0 to 1) for rates; `label` names it in a sentence. `own_solves`: only attempts
    whose token was solved for them count. `worse` and `better` say what it is then.
    """

    name: str
    label: str
    kind: Kind
    side: Side
    lower_is_better: bool = True
    own_solves: bool = False
    worse: str = "slower"
    better: str = "faster"

    @property
    def unit(self) -> str:
        """`s` or `share`."""
        return "s" if self.kind is Kind.TIME else "share"

    @property
    def column(self) -> str:
        """The column of the view `positive` that holds a time; the name itself."""
        return self.name


_ALL = (
    # A token that was solved for somebody else, or whose task somebody else began, says nothing about this wait.
    Metric("wait", "wait for the token", Kind.TIME, Side.PROVIDER, own_solves=True),
    Metric("blocked", "time blocked by the token", Kind.TIME, Side.PROVIDER),
    Metric("page", "opening the page", Kind.TIME, Side.OURS),
    Metric("submit", "submitting the form", Kind.TIME, Side.OURS),
    Metric("verify", "verification", Kind.TIME, Side.OURS),
    Metric(
        "verify_rate", "verification rate", Kind.RATE, Side.OURS, lower_is_better=False, worse="lower", better="higher"
    ),
    Metric("resolve_share", "share of repeated solves", Kind.RATE, Side.BOTH, worse="higher", better="lower"),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
TIMES: tuple[Metric, ...] = tuple(metric for metric in _ALL if metric.kind is Kind.TIME)
