"""Release against release: what got better, worse, stayed, or cannot be told yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pytest_captcha_qa.errors import BaselineMissing
from pytest_captcha_qa.model.metrics import Metric
from pytest_captcha_qa.reporting.comparison.changes import lacking, sentence
from pytest_captcha_qa.reporting.comparison.differences import Difference, Known, differences
from pytest_captcha_qa.reporting.comparison.reservations import reservations
from pytest_captcha_qa.reporting.comparison.samples import Part, Source, measured, pooled
from pytest_captcha_qa.reporting.figures import Figures, Pool, Rows
from pytest_captcha_qa.reporting.stats.comparing import Change, verdicts

__all__ = [
    "Change",
    "MetricChange",
    "Regression",
    "ReleaseComparison",
    "Sides",
    "Source",
    "compare",
    "compare_releases",
    "compare_sources",
    "previous_release",
    "read_sides",
    "releases",
]


@dataclass(frozen=True, slots=True)
class Regression:
    """When a change counts: `alpha`: false alarms of a whole comparison; `min_effect`: the least relative change."""

    alpha: float = 0.01
    min_effect: float = 0.15


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one pool in both releases; `adjusted` is the p-value corrected over all of the comparison.

    `effect`: relative change (times: of the typical value; rates: of the share that went wrong), above 0 where it is
    worse; `shift`: the change in the metric's unit; `superiority`: the chance that a time of the candidate exceeds one
    of the baseline. None is what could not be computed. `lacking`: where there is not enough data, what would be.
    """

    pool: Pool
    metric: Metric
    baseline: Figures
    candidate: Figures
    effect: float | None
    shift: float | None
    superiority: float | None
    p_value: float | None
    adjusted: float | None
    change: Change
    sentence: str
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """All changes between two releases of an environment; `notes`: sentences on what was left out.

    `measured`: the candidate has attempts that count, whether or not they can be compared.
    """

    env: str
    baseline: str
    candidate: str
    regression: Regression
    changes: tuple[MetricChange, ...]
    notes: tuple[str, ...]
    measured: bool = True

    def of(self, change: Change) -> tuple[MetricChange, ...]:
        """Return what came to that."""
        return tuple(one for one in self.changes if one.change is change)


def compare_releases(
    dataset: Rows,
    *,
    env: str,
    candidate: str,
    baseline: str,
    regression: Regression | None = None,
    own_rule_forms: Collection[str] = (),
) -> ReleaseComparison:
    """Return how `candidate` differs from `baseline`; forms of `own_rule_forms` are pools of their own.

    Raises:
        BaselineMissing: the dataset has no run of that baseline in that environment.
    """
    before, after = (Source(dataset, env, release, release) for release in (baseline, candidate))
    return compare_sources(before, after, regression=regression, own_rule_forms=own_rule_forms)


def compare_sources(
    baseline: Source,
    candidate: Source,
    *,
    regression: Regression | None = None,
    own_rule_forms: Collection[str] = (),
) -> ReleaseComparison:
    """Return how one source, such as a folder of records, differs from another one of the same environment.

    Raises:
        BaselineMissing: the baseline has no record of that environment.
    """
    return compare(read_sides(baseline, candidate), regression=regression, own_rule_forms=own_rule_forms)


@dataclass(frozen=True, slots=True)
class Sides:
    """Two sources and what they measured, read once for any number of comparisons; `known`: what those have found."""

    before: Source
    after: Source
    first: Sequence[Part]
    second: Sequence[Part]
    known: Known = field(default_factory=dict)


def read_sides(baseline: Source, candidate: Source) -> Sides:
    """Return both, without the runs during which a release changed.

    Raises:
        BaselineMissing: the baseline has no record of that environment.
    """
    before, after = baseline.settled(), candidate.settled()
    sides = Sides(before, after, *measured(before, after))
    if not sides.first:
        raise BaselineMissing(_missing(baseline))
    return sides


def compare(
    sides: Sides, *, regression: Regression | None = None, own_rule_forms: Collection[str] = ()
) -> ReleaseComparison:
    """Return how the second side differs from the first one; forms of `own_rule_forms` are pools of their own."""
    rule = regression or Regression()
    first, second = pooled(sides.first, own_rule_forms), pooled(sides.second, own_rule_forms)
    names = (sides.before.env, sides.before.label, sides.after.label)
    found = list(differences(first, second, *names[1:], alpha=rule.alpha, known=sides.known))
    judged = verdicts([one.compared for one in found], alpha=rule.alpha, min_effect=rule.min_effect)
    changes = (_change(one, *verdict, rule) for one, verdict in zip(found, judged, strict=True))
    notes = tuple(reservations(sides.before, sides.after, first, second))
    counts = any(sample.forms for sample in second.pools.values())
    return ReleaseComparison(*names, rule, tuple(changes), notes, measured=counts)


def _change(one: Difference, adjusted: float | None, change: Change, rule: Regression) -> MetricChange:
    known = one.compared.effect is not None
    return MetricChange(
        pool=one.pool,
        metric=one.metric,
        baseline=one.baseline,
        candidate=one.candidate,
        effect=one.compared.effect,
        shift=one.compared.shift,
        superiority=one.compared.superiority,
        p_value=one.compared.p_value if known and change is not Change.NOT_ENOUGH_DATA else None,
        adjusted=adjusted,
        change=change,
        sentence=sentence(one, adjusted, change, rule.alpha),
        lacking=lacking(one, rule.alpha) if change is Change.NOT_ENOUGH_DATA else "",
    )


def _missing(baseline: Source) -> str:
    known = [name for name in releases(baseline.dataset, baseline.env) if name != baseline.release]
    if baseline.left_out and not baseline.run_ids:
        return f"there is nothing to compare with: all runs of {baseline.label} are on the other side too"
    there = f"; there is {', '.join(known[-5:])}" if known else ""
    return (
        f"there is nothing to compare with: no good attempt of {baseline.label} in environment {baseline.env!r}{there}"
    )


def releases(dataset: Rows, env: str) -> list[str]:
    """Return the releases of an environment in the order in which they were first seen."""
    query = """
        SELECT release FROM attempts WHERE env = ? AND release IS NOT NULL
        GROUP BY release ORDER BY min(ts) NULLS LAST, release
    """
    return [release for (release,) in dataset.rows(query, [env])]


def previous_release(dataset: Rows, env: str, candidate: str) -> str | None:
    """Return the release of the last complete run of another release in that environment, None where there is none.

    Runs that began after the candidate's last one do not count: a baseline lies before what is compared with it. Nor do
    those that measured nothing, such as one in an outage or one of probes and refusals alone.
    """
    query = """
        SELECT release FROM runs
        WHERE env = $env AND release <> $release AND complete AND NOT release_changed
            AND run_id IN (SELECT run_id FROM positive WHERE env = $env AND NOT outage)
            AND started_at <= coalesce(
                (SELECT max(started_at) FROM runs WHERE env = $env AND release = $release), 'infinity'::TIMESTAMPTZ)
        ORDER BY ended_at DESC NULLS LAST, run_id DESC LIMIT 1
    """
    found: Sequence[tuple[str]] = dataset.rows(query, {"env": env, "release": candidate})
    return found[0][0] if found else None
