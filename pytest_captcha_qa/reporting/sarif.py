"""The findings of conformance probes as SARIF 2.1.0, for what shows the results of scanners.

Texts are plain, of one line and inert; addresses are relative. Format: OASIS SARIF 2.1.0, sections 3.14 to 3.28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_captcha_qa import __version__
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.reporting.probing import CONCLUSIVE, ProbeFinding
from pytest_captcha_qa.reporting.wording import one_line
from pytest_captcha_qa.reporting.writing import write_json

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
# What GitHub orders results by: it takes numbers for security severities.
_SCORES = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "2.0"}
_KINDS = {ProbeVerdict.SAFE: "pass", ProbeVerdict.NOT_APPLICABLE: "notApplicable", ProbeVerdict.INCONCLUSIVE: "open"}


def sarif(findings: Sequence[ProbeFinding], anchor: str) -> dict[str, Any]:
    """Return the findings as one run of SARIF; `anchor` is the file a result points at, relative to the root."""
    rules = {finding.probe: _rule(finding) for finding in sorted(findings, key=lambda one: one.probe)}
    order = list(rules)
    driver = {"name": "pytest-captcha-qa", "version": __version__, "rules": list(rules.values())}
    results = [_result(finding, order.index(finding.probe), anchor) for finding in findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def write_sarif(findings: Sequence[ProbeFinding], path: Path, anchor: str) -> None:
    """Write the findings in one step; a reader sees the old file or the whole new one.

    Raises:
        RecordError: it cannot be written there.
    """
    write_json(sarif(findings, anchor), path, what="the findings")


def _message(text: str) -> dict[str, str]:
    """Return a message of one inert line, in which nothing is a link: its brackets are escaped (3.11.6)."""
    return {"text": re.sub(r"[\[\]\\]", r"\\\g<0>", one_line(text))}


def _rule(finding: ProbeFinding) -> dict[str, Any]:
    return {
        "id": one_line(finding.probe),
        "shortDescription": _message(finding.title),
        "help": _message(f"Safe behaviour: {finding.safe_behaviour}"),
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {
            "tags": ["security", *map(one_line, finding.standards)],
            "security-severity": _SCORES[finding.severity],
        },
    }


def _result(finding: ProbeFinding, rule: int, anchor: str) -> dict[str, Any]:
    failing = finding.verdict in CONCLUSIVE and finding.verdict is not ProbeVerdict.SAFE
    result: dict[str, Any] = {
        "ruleId": one_line(finding.probe),
        "ruleIndex": rule,
        "kind": _KINDS.get(finding.verdict, "fail"),
        "level": _LEVELS[finding.severity] if failing else "none",
        "message": _message(f"{finding.sentence}. {finding.exchange}".strip()),
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": anchor}},
                "logicalLocations": [{"name": one_line(finding.form), "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"captchaQa/v1": one_line(f"{finding.form}:{finding.probe}")},
    }
    if finding.waived:
        result["suppressions"] = [{"kind": "external", "justification": f"waived until {finding.waived}"}]
    return result
