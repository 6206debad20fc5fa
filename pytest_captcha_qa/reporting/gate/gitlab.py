"""The gate's answer as a GitLab Code Quality report.

Format: GitLab's documentation, "Code Quality report format": a list of objects with description, check_name,
fingerprint, severity (info, minor, major, critical, blocker), location.path and location.lines.begin.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_captcha_qa.reporting.gate.results import GateResult, Place, RuleResult, Status
from pytest_captcha_qa.reporting.gate.telling import ordered, shown
from pytest_captcha_qa.reporting.wording import one_line

_LONGEST = 1000
_SEVERITIES: Mapping[Status, str] = {
    Status.BREACHED: "major",
    Status.NO_BASELINE: "minor",
    Status.NO_VERDICT: "minor",
    Status.NOT_ENOUGH_DATA: "minor",
    Status.WARNING: "minor",
    Status.WAIVED: "info",
}


def code_quality(result: GateResult, locate: Callable[[RuleResult], Place]) -> list[dict[str, Any]]:
    """Return what counts, warnings and what is waived; each points at its rule in the configuration file."""
    issues = {_fingerprint(result.env, one): _issue(result.env, one, locate(one)) for one in shown(ordered(result))}
    return list(issues.values())


def _issue(env: str, one: RuleResult, place: Place) -> dict[str, Any]:
    return {
        "description": one_line(f"{env}: {one.status}: {one.sentence}")[:_LONGEST],
        "check_name": f"captcha-gate/{one.rule}",
        "fingerprint": _fingerprint(env, one),
        "severity": _SEVERITIES[one.status],
        "location": {"path": place.path, "lines": {"begin": max(place.line, 1)}},
    }


def _fingerprint(env: str, one: RuleResult) -> str:
    """Return what is equal for the same rule about the same thing in every run: no number and no release is in it."""
    pool = one.pool
    about = [*one.forms] if len(one.forms) == 1 and pool is None and one.numbers.get("selected") is None else []
    if pool is not None:
        about = [pool.project, pool.type, pool.provider, pool.key_mode, f"{pool.time_scale:g}", pool.form or ""]
    return hashlib.sha256(json.dumps([env, str(one.rule), one.metric, about]).encode()).hexdigest()
