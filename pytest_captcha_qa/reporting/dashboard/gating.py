"""What the gate says, as rows of the page."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_captcha_qa.reporting.dashboard.model import Level, RuleRow, Tag
from pytest_captcha_qa.reporting.gate.results import GateResult, RuleResult, Status
from pytest_captcha_qa.reporting.gate.telling import ordered

_LEVELS: Mapping[Status, Level] = {
    Status.PASSED: Level.GOOD,
    Status.BREACHED: Level.BAD,
    Status.WARNING: Level.WARN,
    Status.NOT_ENOUGH_DATA: Level.UNKNOWN,
    Status.NO_VERDICT: Level.WARN,
    Status.NO_BASELINE: Level.WARN,
    Status.WAIVED: Level.WARN,
}


def rule_rows(result: GateResult) -> list[RuleRow]:
    """Return what each rule says, the worst first, what simply passed last."""
    passed = [one for one in result.rules if one.status is Status.PASSED]
    return [_row(one, result.env) for one in (*ordered(result), *passed)]


def _row(one: RuleResult, env: str) -> RuleRow:
    pool, form = one.pool, one.forms[0] if len(one.forms) == 1 else None
    tag = Tag(env, form=form) if pool is None else Tag(env, pool.project, pool.type, pool.form or form)
    level = Level.WARN if one.status is Status.NOT_ENOUGH_DATA and one.code else _LEVELS[one.status]
    sentence = one.sentence.removeprefix(f"{one.rule}: ")
    return RuleRow(tag=tag, level=level, word=one.status.value, rule=str(one.rule), sentence=sentence)
