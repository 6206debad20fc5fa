"""Thresholds on rates and times: breached only where the one-sided 95 % bound excludes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pytest_captcha_qa.model.gate import Rule, Rules
from pytest_captcha_qa.model.metrics import METRICS, Metric, Side
from pytest_captcha_qa.reporting.figures import Rows
from pytest_captcha_qa.reporting.gate.groups import Group, with_failures
from pytest_captcha_qa.reporting.gate.results import Number, RuleResult, Status
from pytest_captcha_qa.reporting.gate.subject import Subject
from pytest_captcha_qa.reporting.metrics import source_fits
from pytest_captcha_qa.reporting.numbers import percent, seconds
from pytest_captcha_qa.reporting.stats.bounds import Bound, Samples, quantile_bound, rate_bound, usable
from pytest_captcha_qa.reporting.wording import counted

_QUANTILE = 0.9


def judge_group(dataset: Rows, subject: Subject, group: Group, rules: Rules) -> Iterator[RuleResult]:
    """Yield what the rules on rates and times say of one group; rules that are not written say nothing."""
    judge = _Judge(group, rules)
    if rules.min_verify_rate is not None:
        yield judge.verify_rate(rules.min_verify_rate)
    if rules.max_resolve_share is not None:
        yield judge.resolve_share(rules.max_resolve_share)
    for rule in (Rule.MAX_P90, Rule.WARN_P90):
        for metric, limit in rules.limits(rule, group.pool.type).items():
            yield judge.p90(rule, METRICS[metric], limit, _samples(dataset, subject, group, METRICS[metric]))


@dataclass(frozen=True, slots=True)
class _Judge:
    """Holds rules against one group."""

    group: Group
    rules: Rules

    def verify_rate(self, least: float) -> RuleResult:
        """Return what the share of confirmed tokens says."""
        group = self.group
        passed, judged = group.total("passed"), group.total("judged")
        numbers: dict[str, Number] = {"passed": passed, "judged": judged, "limit": least}
        numbers["outages"] = group.total("outages")
        if judged == 0:
            said = f"verification rate of {group.named}: no good token was judged by the backend{self._left_out}"
            return self._result(Rule.MIN_VERIFY_RATE, Status.NOT_ENOUGH_DATA, said, numbers)
        upper = rate_bound(group.by_run("passed"), group.by_run("judged"), Bound.UPPER)
        best = rate_bound(0, judged, Bound.UPPER)
        numbers |= {"rate": passed / judged, "upper": upper}
        status = _status(holds=passed / judged >= least, excluded=upper < least, could_be=best < least)
        failing = with_failures(group)
        said = (
            f"verification rate of {group.named}: {passed} of {judged} ({percent(passed / judged)}), at least "
            f"{percent(least)} asked; {_why(status, f'at most {percent(upper)}')}"
            f"{f'; {failing}' if failing else ''}{self._left_out}"
        )
        return self._result(Rule.MIN_VERIFY_RATE, status, said, numbers)

    def resolve_share(self, most: float) -> RuleResult:
        """Return what the submits beyond the first say; those that the provider caused only warn."""
        group = self.group
        keys, repeats = group.total("keys"), group.total("repeats")
        held = repeats - min(group.forgiven, repeats)
        numbers: dict[str, Number] = {"keys": keys, "repeats": repeats, "provider": repeats - held, "limit": most}
        if keys == 0:
            said = f"repeated solves of {group.named}: no captcha was solved{self._left_out}"
            return self._result(Rule.MAX_RESOLVE_SHARE, Status.NOT_ENOUGH_DATA, said, numbers)
        lower, worst = group.least_share(forgiven=True), rate_bound(keys, keys, Bound.LOWER)
        numbers |= {"share": repeats / keys, "lower": lower}
        status = _status(holds=held / keys <= most, excluded=lower > most, could_be=worst > most)
        if status is Status.PASSED and (beyond := group.least_share(forgiven=False)) > most:
            status, lower = Status.WARNING, beyond
        theirs = f", {repeats - held} of them since the provider failed" if repeats > held else ""
        said = (
            f"repeated solves of {group.named}: {repeats} beyond the first of {counted(keys, 'captcha')} "
            f"({percent(repeats / keys)}{theirs}), at most {percent(most)} allowed; "
            f"{_why(status, f'at least {percent(lower)}')}"
        )
        return self._result(Rule.MAX_RESOLVE_SHARE, status, said, numbers)

    def p90(self, rule: Rule, metric: Metric, limit: float, samples: Samples) -> RuleResult:
        """Return what the time that nine of ten attempts keep says."""
        measured = sum(map(len, samples))
        about = f"{metric.label} of {self.group.named}"
        numbers: dict[str, Number] = {"n": measured, "runs": len(samples), "limit": limit}
        nothing, matters = self._no_time(metric, measured)
        if nothing is not None:
            found = self._result(rule, Status.NOT_ENOUGH_DATA, f"{about}: {nothing}", numbers, metric)
            return replace(found, required=found.required and matters)
        p90 = float(np.quantile(np.concatenate(samples), _QUANTILE, method="inverted_cdf"))
        lower = quantile_bound(samples, _QUANTILE, Bound.LOWER)
        numbers |= {"p90": round(p90, 3), "lower": None if lower is None else round(lower, 3)}
        excluded = lower is not None and lower > limit
        status = _status(holds=p90 <= limit, excluded=excluded, could_be=lower is not None)
        if excluded and rule is Rule.WARN_P90:
            status = Status.WARNING
        bound = "no bound can be given" if lower is None else f"at least {seconds(lower)}"
        theirs = " (the provider's side)" if metric.side is Side.PROVIDER else ""
        said = (
            f"{about}{theirs}: P90 {seconds(p90)} of {counted(measured, 'attempt')}, at most {seconds(limit)} allowed; "
            f"{_why(status, bound)}{self._left_out}"
        )
        return self._result(rule, status, said, numbers, metric)

    def _no_time(self, metric: Metric, measured: int) -> tuple[str | None, bool]:
        """Return why there is no time to judge, None if there is, and whether that may matter to anybody."""
        if measured == 0 and self.group.total("judged"):
            return "no attempt has this time; not every way of verification takes it", False
        if measured == 0:
            return f"nothing was measured{self._left_out}", True
        if self.group.pool.time_scale != 1 and metric.side is Side.PROVIDER:
            return "solve times are scaled, so they are not held against real seconds", False
        return None, True

    @property
    def _left_out(self) -> str:
        outages = self.group.total("outages")
        return f"; {counted(outages, 'attempt')} left out: outage or undetermined" if outages else ""

    def _result(
        self, rule: Rule, status: Status, sentence: str, numbers: dict[str, Number], metric: Metric | None = None
    ) -> RuleResult:
        return RuleResult(
            rule=rule,
            status=status,
            sentence=sentence,
            pool=self.group.pool,
            forms=self.group.forms,
            metric=metric.name if metric is not None else None,
            numbers=numbers,
            required=self.rules.requires(rule),
        )


def _samples(dataset: Rows, subject: Subject, group: Group, metric: Metric) -> Samples:
    """Return the measured seconds of a group, one array a run."""
    pool = group.pool
    found = dataset.rows(
        f'SELECT list("{metric.column}") FROM positive WHERE {subject.where} AND NOT outage'
        f' AND ({source_fits(metric)}) AND "{metric.column}" IS NOT NULL'
        " AND project = ? AND type = ? AND provider = ? AND key_mode = ? AND time_scale = ?"
        " AND slug IN (SELECT unnest(?)) GROUP BY run_id ORDER BY run_id",
        (*subject.parameters, pool.project, pool.type, pool.provider, pool.key_mode, pool.time_scale, [*group.forms]),
    )
    return usable([np.asarray(values, dtype=np.float64) for (values,) in found])


def _status(*, holds: bool, excluded: bool, could_be: bool) -> Status:
    """Return what a threshold says; `could_be`: whether so few samples could ever have excluded it."""
    if excluded:
        return Status.BREACHED
    return Status.PASSED if holds and could_be else Status.NOT_ENOUGH_DATA


def _why(status: Status, bound: str) -> str:
    if status is Status.NOT_ENOUGH_DATA:
        return f"too few to tell ({bound} with 95 % confidence)"
    return f"{bound} with 95 % confidence" if status in (Status.BREACHED, Status.WARNING) else "kept"
