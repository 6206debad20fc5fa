"""The gate's answer for people and scripts: lines of a summary, and JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_captcha_qa.model.gate import GateMode
from pytest_captcha_qa.reporting.codes import meaning
from pytest_captcha_qa.reporting.gate.results import GateResult, Number, RuleResult, Status
from pytest_captcha_qa.reporting.shown import BAD, GOOD, PLAIN, WARN, SummaryLine
from pytest_captcha_qa.reporting.wording import counted, one_line

_MOST = 20
_WORST_FIRST = (
    Status.BREACHED, Status.NO_BASELINE, Status.NO_VERDICT, Status.WARNING, Status.WAIVED, Status.NOT_ENOUGH_DATA,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What a run is told of its gate: the result, or in `fault` why there is none; and how far it counts.

    `held_back`: why the gate only reports although it was to be enforced.
    """

    mode: GateMode
    result: GateResult | None = None
    fault: str | None = None
    fault_code: int = 0
    held_back: str | None = None

    @property
    def counts(self) -> bool:
        """Whether its codes are those of the run."""
        return self.mode is GateMode.ENFORCE

    @property
    def exit(self) -> int:
        """The code it comes to, whether or not it counts."""
        return self.result.exit if self.result is not None else self.fault_code


def ordered(result: GateResult) -> list[RuleResult]:
    """Return the results that are not simply passed, the worst first."""
    told = [one for one in result.rules if one.status is not Status.PASSED]
    return sorted(told, key=lambda one: (one.code == 0, _WORST_FIRST.index(one.status), one.rule, one.sentence))


def headline(result: GateResult) -> str:
    """Return the answer in one line: what was judged, against what, and how many results of each kind."""
    states = Counter(one.status for one in result.rules)
    said = [f"{states[status]} {status}" for status in (*_WORST_FIRST, Status.PASSED) if states[status]]
    against = f", against {result.baseline}" if result.baseline else ""
    return one_line(f"{result.subject}{against}: {', '.join(said) or 'no rule applies'}")


def closing_line(answer: GateAnswer) -> str:
    """Return what follows: the exit code and its meaning, and whether it counts."""
    code = answer.exit
    told = f"exit {code}: {meaning(code)}" if code else "exit 0: no rule is breached"
    if answer.counts:
        return f"gate: {told}"
    why = f" ({answer.held_back})" if answer.held_back else ""
    return f"gate, only reported{why}: enforced it would be {told}"


def answer_lines(answer: GateAnswer | None) -> Iterator[SummaryLine]:
    """Yield the lines of the terminal's summary; none without a gate."""
    if answer is None:
        return
    if answer.result is None:
        yield SummaryLine(one_line(f"gate: not judged: {answer.fault}"), BAD)
        return
    yield SummaryLine(f"gate: {headline(answer.result)}", {"bold": True})
    yield from result_lines(answer.result)
    yield SummaryLine(one_line(closing_line(answer)), GOOD if answer.exit == 0 else BAD if answer.counts else WARN)


def result_lines(result: GateResult) -> Iterator[SummaryLine]:
    """Yield a line for each result that counts, warns or is waived, one for what has too little data, and the notes."""
    told = told_apart(result)
    for one in told[:_MOST]:
        yield SummaryLine(one_line(f"gate: {one.status}: {one.sentence}"), _markup(one))
    if len(told) > _MOST:
        yield SummaryLine(f"gate: … and {counted(len(told) - _MOST, 'more result')}", WARN)
    for note in filter(None, (open_rules(result), *result.notes[:_MOST])):
        yield SummaryLine(one_line(f"gate: {note}"), PLAIN)


def told_apart(result: GateResult) -> list[RuleResult]:
    """Return what each deserves a line: all that is not passed, but for too little data that fails nothing."""
    return [one for one in ordered(result) if one.code or one.status is not Status.NOT_ENOUGH_DATA]


def open_rules(result: GateResult) -> str:
    """Return which rules have too little data and fail nothing by it, empty if none has."""
    found = Counter(one.rule for one in result.rules if one.status is Status.NOT_ENOUGH_DATA and not one.code)
    said = ", ".join(f"{rule} ({times})" for rule, times in sorted(found.items()))
    return f"too little data yet, which fails nothing: {said}" if said else ""


def _markup(one: RuleResult) -> dict[str, bool]:
    return BAD if one.code else WARN


def answer_json(answer: GateAnswer) -> dict[str, Any]:
    """Return the answer as verdict.json and `--json` have it."""
    said: dict[str, Any] = {
        "mode": answer.mode.value,
        "held_back": answer.held_back,
        "exit": answer.exit,
        "counts": answer.counts,
        "fault": answer.fault,
    }
    return said | (result_json(answer.result) if answer.result is not None else {"codes": [], "rules": [], "notes": []})


def result_json(result: GateResult) -> dict[str, Any]:
    """Return a result with every rule's sentence and numbers."""
    return {
        "environment": result.env,
        "subject": result.subject,
        "release": result.release,
        "runs": list(result.runs),
        "baseline": result.baseline,
        "codes": list(result.codes),
        "rules": [_rule_json(one) for one in result.rules],
        "notes": list(result.notes),
    }


def _rule_json(one: RuleResult) -> dict[str, Any]:
    pool = one.pool
    where = {} if pool is None else {name: getattr(pool, name) for name in ("project", "type", "provider", "key_mode")}
    return {
        "rule": str(one.rule),
        "status": one.status.value,
        "code": one.code,
        "sentence": one_line(one.sentence),
        "form": pool.form if pool is not None else None,
        "forms": list(one.forms),
        "metric": one.metric,
        "pool": where or None,
        "numbers": {name: number if _is_json(number) else None for name, number in one.numbers.items()},
        "waived_until": str(one.waiver.until) if one.waiver is not None else None,
    }


def _is_json(number: Number) -> bool:
    return not isinstance(number, float) or math.isfinite(number)


def shown(results: Sequence[RuleResult]) -> list[RuleResult]:
    """Return the results that a pipeline's pages show: what counts, warnings and what is waived."""
    return [one for one in results if one.code or one.status in (Status.WARNING, Status.WAIVED)]
