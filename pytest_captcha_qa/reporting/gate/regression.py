"""The release under test against its baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pytest_captcha_qa.errors import BaselineMissing
from pytest_captcha_qa.model.gate import ALPHA, MIN_EFFECT, GateRules, Rule, Rules
from pytest_captcha_qa.model.metrics import Side
from pytest_captcha_qa.model.record import SCHEMA_VERSION
from pytest_captcha_qa.reporting.comparison.references import PREVIOUS
from pytest_captcha_qa.reporting.comparison.releases import (
    Change,
    MetricChange,
    Regression,
    ReleaseComparison,
    compare_sources,
    previous_release,
    releases,
)
from pytest_captcha_qa.reporting.comparison.samples import Source
from pytest_captcha_qa.reporting.figures import Pool, Rows
from pytest_captcha_qa.reporting.gate.common import Sides
from pytest_captcha_qa.reporting.gate.results import Number, RuleResult, Status
from pytest_captcha_qa.reporting.gate.subject import Asked, Subject
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.wording import counted, some_of


@dataclass(frozen=True, slots=True)
class Regressed:
    """The results of the comparison, and the comparison itself where there was one."""

    results: tuple[RuleResult, ...]
    baseline: str | None = None
    comparison: ReleaseComparison | None = None


def judge_regression(
    dataset: Rows, subject: Subject, asked: Asked, rules: GateRules, alone: Collection[str]
) -> Regressed:
    """Return what got worse; nothing where no baseline was named."""
    if asked.baseline is None:
        return Regressed(())
    if asked.baseline_fault is not None:
        return _alone(rules, Status.NO_BASELINE, f"there is no baseline: {asked.baseline_fault}")
    if asked.baseline_records is None and asked.baseline not in (PREVIOUS, *releases(dataset, subject.env)):
        there = some_of(releases(dataset, subject.env)[::-1]) or "none"
        missing = f"there is no record of the baseline {asked.baseline} in environment {subject.env!r} (there: {there})"
        return _alone(rules, Status.NO_BASELINE, missing)
    if subject.release is None:
        unknown = "the release under test is unknown, so it is not compared; name it with --captcha-release"
        return _alone(rules, Status.NOT_ENOUGH_DATA, unknown)
    candidate = Source(dataset, subject.env, subject.release, subject.release)
    baseline = _baseline(candidate, subject.release, asked)
    if baseline is None:
        first = f"no complete run of another release than {subject.release} has measured anything yet to compare with"
        return _alone(rules, Status.NOT_ENOUGH_DATA, first)
    if baseline.dataset is dataset and baseline.release == subject.release:
        said = f"the baseline {baseline.label} is the release under test itself"
        return _alone(rules, Status.NO_BASELINE, said, baseline.label)
    if baseline.left_out and not baseline.run_ids:
        said = f"the baseline {baseline.label} holds nothing but runs of the release under test"
        return _alone(rules, Status.NO_BASELINE, said, baseline.label)
    return _compared(baseline, candidate, rules, alone)


def _baseline(candidate: Source, release: str, asked: Asked) -> Source | None:
    """Return what is compared with, None where there is nothing before this release.

    Runs of the candidate are no part of it, where it is a folder that holds them too.
    """
    named, dataset, env = str(asked.baseline), candidate.dataset, candidate.env
    if asked.baseline_records is not None:
        source = Source(asked.baseline_records, env, named)
        return replace(source, left_out=frozenset(source.run_ids & candidate.run_ids))
    found = previous_release(dataset, env, release) if named == PREVIOUS else named
    return Source(dataset, env, found, found) if found is not None else None


def _alone(rules: GateRules, status: Status, sentence: str, baseline: str | None = None) -> Regressed:
    return Regressed((_result(rules, status, sentence),), baseline)


def _compared(baseline: Source, candidate: Source, rules: GateRules, alone: Collection[str]) -> Regressed:
    fault = _unreadable(baseline)
    if fault is not None:
        return _alone(rules, Status.NO_BASELINE, fault, baseline.label)
    settings = _settings(rules.all)
    try:
        comparison = compare_sources(baseline, candidate, regression=settings, own_rule_forms=alone)
        changes = list(comparison.changes)
        for other in {_of(rules, change.pool) for change in changes} - {settings}:
            found = compare_sources(baseline, candidate, regression=other, own_rule_forms=alone)
            own = [change for change in found.changes if _of(rules, change.pool) == other]
            changes = [change for change in changes if _of(rules, change.pool) != other] + own
    except BaselineMissing as missing:
        return _alone(rules, Status.NO_BASELINE, missing.message, baseline.label)
    sides = Sides.of(baseline, candidate)
    if not changes:
        return _alone(rules, *sides.nothing_in_common(), baseline.label)
    said = f"against {baseline.label}"
    lacking = [
        _result(rules, Status.NOT_ENOUGH_DATA, f"{said}, {named(pool)}: never measured there{whom}", pool)
        for pool, whom in sides.lacking(alone)
    ]
    return Regressed((*_results(changes, rules, baseline.label), *lacking), baseline.label, comparison)


def _results(changes: list[MetricChange], rules: GateRules, baseline: str) -> Iterator[RuleResult]:
    for change in changes:
        if change.change is Change.WORSE:
            yield _worse(change, rules)
    unclear: dict[Pool, list[str]] = {}
    for change in changes:
        if change.change is Change.NOT_ENOUGH_DATA:
            unclear.setdefault(change.pool, []).append(change.metric.label)
    for pool, labels in unclear.items():
        said = f"against {baseline}, {named(pool)}: too little data to compare {some_of(labels, len(labels))}"
        yield _result(rules, Status.NOT_ENOUGH_DATA, said, pool)
    told = [change for change in changes if change.change in (Change.SAME, Change.BETTER)]
    if told:
        better = sum(change.change is Change.BETTER for change in told)
        said = f"against {baseline}: {counted(len(told), 'comparison')} without a change for the worse"
        yield _result(rules, Status.PASSED, f"{said}, {better} for the better" if better else said)


def _worse(change: MetricChange, rules: GateRules) -> RuleResult:
    """Return a breach where our side got worse; what the provider may have caused only warns, unless moved up."""
    own = _rules_of(rules, change.pool)
    moved_up = change.metric.name in own.limits(Rule.MAX_P90, change.pool.type)
    status = Status.BREACHED if change.metric.side is Side.OURS or moved_up else Status.WARNING
    numbers: dict[str, Number] = {"effect": change.effect, "p_value": change.p_value, "adjusted": change.adjusted}
    said = change.sentence if status is Status.BREACHED else f"{change.sentence} (the provider may be why)"
    return _result(rules, status, said, change.pool, metric=change.metric.name, numbers=numbers)


def _unreadable(baseline: Source) -> str | None:
    newest = max(baseline.schemas, default=0)
    if newest <= SCHEMA_VERSION:
        return None
    return (
        f"the baseline {baseline.label} was recorded by a newer tool (schema {newest}, ours is {SCHEMA_VERSION}), "
        "so it cannot be compared; update pytest-captcha-qa"
    )


def _settings(rules: Rules) -> Regression:
    return Regression(rules.alpha or ALPHA, rules.min_effect or MIN_EFFECT)


def _rules_of(rules: GateRules, pool: Pool) -> Rules:
    return rules.of(pool.type, project=pool.project, form=pool.form)


def _of(rules: GateRules, pool: Pool) -> Regression:
    return _settings(_rules_of(rules, pool))


def _result(
    rules: GateRules,
    status: Status,
    sentence: str,
    pool: Pool | None = None,
    *,
    metric: str | None = None,
    numbers: dict[str, Number] | None = None,
) -> RuleResult:
    own = _rules_of(rules, pool) if pool is not None else rules.all
    return RuleResult(
        rule=Rule.REGRESSION,
        status=status,
        sentence=f"regression: {sentence}",
        pool=pool,
        forms=(pool.form,) if pool is not None and pool.form is not None else (),
        metric=metric,
        numbers=numbers or {},
        required=own.requires(Rule.REGRESSION),
    )
