from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import validate

from pytest_captcha_qa.model.gate import GateMode, GateRules, Rule, Rules
from pytest_captcha_qa.reporting.gate import github, gitlab
from pytest_captcha_qa.reporting.gate.results import GateResult, Place, RuleResult, Status
from pytest_captcha_qa.reporting.gate.telling import GateAnswer, answer_json, answer_lines

FAILED: Mapping[str, Any] = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "::error file=a,line=1::owned",
    "##[error]owned",
    "a|b\n::set-output name=x::y",
    "\x1b[31mred\x1b[0m \u202eevil\u2028next",
    "[click](https://evil.example) @everyone `x` *b* _i_ $$x$$",
    "%0A::error::x",
    "x" * 500,
]
RULES = GateRules(
    all=Rules(min_verify_rate=0.99, warn_p90={"wait": 1}, max_p90={"page": 3}), min_coverage=1.0
)  # fmt: skip

# The documented shape of GitLab's report ("Code Quality report format").
CODE_QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "pattern": "^captcha-gate/[a-z0-9_]+$"},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {"properties": {"begin": {"type": "integer", "minimum": 1}}, "required": ["begin"]},
                },
            },
        },
    },
}


def place(one: RuleResult) -> Place:
    return Place("captcha-qa.toml", 0)


def answer(result: GateResult, mode: GateMode = GateMode.ENFORCE) -> GateAnswer:
    return GateAnswer(mode, result)


@pytest.fixture
def hostile(records: Any) -> GateResult:
    attempts = [
        {"slug": text, "captcha": text, "provider": text, "project": text, **FAILED}
        for text in HOSTILE
        for _ in range(3)
    ]
    records.run("r1", attempts, release=HOSTILE[0])
    found: GateResult = records.judge(RULES, selected={text: text for text in (*HOSTILE, "never\n::error::x")})
    return found


def test_the_summary_tells_what_counts_and_counts_what_does_not(records: Any) -> None:
    records.run("r1", [{"slug": "login"}] * 50 + [FAILED] * 9)
    result = records.judge(RULES)
    lines = [line.text for line in answer_lines(answer(result))]
    assert lines == [
        "gate: run r1 of release 1.3.0: 1 breached, 1 warning, 1 not enough data, 1 passed",
        f"gate: breached: {result.rules[0].sentence}",
        f"gate: warning: {result.rules[2].sentence}",
        "gate: too little data yet, which fails nothing: max_p90 (1)",
        "gate: exit 10: the gate is breached",
    ]
    reported = [line.text for line in answer_lines(GateAnswer(GateMode.REPORT, result, held_back="-k was given"))]
    assert reported[-1] == (
        "gate, only reported (-k was given): enforced it would be exit 10: the gate is breached"
    )  # fmt: skip
    assert list(answer_lines(None)) == []


def test_a_gate_that_could_not_be_judged_says_why() -> None:
    broken = GateAnswer(GateMode.ENFORCE, fault="the records\ncannot be read", fault_code=4)
    assert [line.text for line in answer_lines(broken)] == ["gate: not judged: the records cannot be read"]
    assert answer_json(broken)["exit"] == 4
    assert list(github.commands(broken, place)) == ["::error title=captcha gate::the records cannot be read"]
    assert "cannot be read" in github.job_summary(broken)


def test_json_has_every_rule_with_its_numbers(records: Any) -> None:
    records.run("r1", [FAILED] * 9)
    said = answer_json(answer(records.judge(RULES)))
    assert (said["exit"], said["counts"], said["codes"], said["mode"]) == (10, True, [10], "enforce")
    rate = said["rules"][0]
    assert (rate["rule"], rate["status"], rate["code"], rate["forms"]) == (
        "min_verify_rate",
        "breached",
        10,
        ["signup"],
    )
    assert rate["pool"] == {"project": "default", "type": "turnstile", "provider": "captchaai", "key_mode": "live"}
    assert rate["numbers"]["judged"] == 9
    assert json.loads(json.dumps(said)) == said


def test_json_has_no_number_that_json_does_not_know() -> None:
    one = RuleResult(Rule.REGRESSION, Status.BREACHED, "says so", numbers={"effect": float("inf"), "n": 3})
    said = answer_json(answer(GateResult("staging", "run r1", None, ("r1",), (one,))))
    assert said["rules"][0]["numbers"] == {"effect": None, "n": 3}


def test_annotations_are_errors_only_where_the_gate_counts(records: Any) -> None:
    records.run("r1", [FAILED] * 9)
    result = records.judge(RULES)
    enforced = list(github.commands(answer(result), place))
    assert [command.partition(" ")[0] for command in enforced] == ["::error", "::warning"]
    assert enforced[0].startswith(
        "::error file=captcha-qa.toml,line=0,title=captcha gate%3A min_verify_rate::breached: "
    )
    assert " 0 of 9 (0 %25), at least 99 %25 asked" in enforced[0]
    reported = list(github.commands(answer(result, GateMode.REPORT), place))
    assert {command.partition(" ")[0] for command in reported} == {"::warning"}


def test_hostile_strings_are_inert_on_every_page(hostile: GateResult) -> None:
    lines = [line.text for line in answer_lines(answer(hostile))]
    assert len(lines) > 5
    assert all(line.isprintable() and line.startswith("gate") for line in lines)
    assert all(re.match(r"::(error|warning) [^:]+::", one) for one in github.commands(answer(hostile), place))
    assert all(one.count("\n") == 0 and "##[" not in one for one in github.commands(answer(hostile), place))
    assert "##[" not in "".join(map(github.plain, lines))
    assert github.plain("  ::error::x") == "  : :error::x"
    summary = github.job_summary(answer(hostile))
    for sign in ("<img", "](http", "https://", "@everyone", "`", "$$", "\u202e", "\u2028", "\x1b"):
        assert sign not in summary
    assert len(summary) < 2**20
    rows = [line for line in summary.splitlines() if line.startswith("|")]
    assert all(row.count("|") == 4 for row in rows)


def test_code_quality_has_the_documented_shape(hostile: GateResult, records: Any) -> None:
    issues = gitlab.code_quality(hostile, place)
    validate(issues, CODE_QUALITY)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) > 5
    assert all(issue["description"].isprintable() for issue in issues)
    assert {issue["severity"] for issue in issues} == {"major", "minor"}


def test_fingerprints_are_those_of_the_last_run_whatever_the_numbers(records: Any) -> None:
    records.run("r1", [FAILED] * 9)
    first = gitlab.code_quality(records.judge(RULES, selected={"signup": "turnstile", "a": "image"}), place)
    records.run("r2", [{"slug": "login", **FAILED}] * 30, release="1.4.0")
    second = gitlab.code_quality(records.judge(RULES, run_id="r2", selected={"b": "image", "c": "image"}), place)
    prints = [{one["check_name"]: one["fingerprint"] for one in issues} for issues in (first, second)]
    assert prints[0] == prints[1]
    assert set(prints[0]) == {"captcha-gate/min_verify_rate", "captcha-gate/min_coverage", "captcha-gate/warn_p90"}


def test_every_status_has_a_sign_and_a_severity(records: Any) -> None:
    ones = tuple(RuleResult(Rule.MAX_P90, status, f"says {status}", metric=status.value) for status in Status)
    result = GateResult("staging", "run r1", None, ("r1",), ones)
    summary = github.job_summary(answer(result))
    assert all(f" {status} | max&#95;p90 | says {status} |" in summary for status in Status)
    assert len(gitlab.code_quality(result, place)) == len(Status) - 1
