"""`verdict.json`: what a CI branches on, written in one step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytest_captcha_qa.reporting.codes import meaning
from pytest_captcha_qa.reporting.forms import FormVerdict, Pool
from pytest_captcha_qa.reporting.gate.telling import answer_json
from pytest_captcha_qa.reporting.probing import ProbeFinding
from pytest_captcha_qa.reporting.verdict import CodeReasons, Verdict
from pytest_captcha_qa.reporting.writing import write_json

VERDICT_SCHEMA = 1


def verdict_json(verdict: Verdict, root: Path) -> dict[str, Any]:
    """Return the content of verdict.json; paths are relative to `root`."""
    return {
        "schema": VERDICT_SCHEMA,
        "exit": verdict.exit,
        "sentence": verdict.sentence,
        "exit_codes": verdict.mode,
        "codes": [_code_json(reasons) for reasons in verdict.codes],
        "environment": verdict.environment,
        "release": verdict.releases[0] if len(verdict.releases) == 1 else None,
        "releases": list(verdict.releases),
        "run_id": verdict.run_id,
        "complete": verdict.complete,
        "key_mode": verdict.key_modes[0] if len(verdict.key_modes) == 1 else None,
        "key_modes": list(verdict.key_modes),
        "time_scale": verdict.time_scale,
        "captcha_tests": verdict.captcha_tests,
        "forms": {form.slug: _form_json(form) | _whose(form.slug, verdict, root) for form in verdict.forms},
        "coverage": {
            "measured": verdict.measured,
            "selected": verdict.selected,
            "measured_forms": list(verdict.measured_forms),
            "not_measured_forms": list(verdict.not_measured_forms),
            "unselected_forms": list(verdict.unselected_forms),
        },
        "cost": {"submits": verdict.submits, "price": verdict.price, "budget": verdict.budget},
        "probes": [_probe_json(finding) for finding in verdict.probes],
        "gate": answer_json(verdict.gate) if verdict.gate is not None else None,
        "flaky": verdict.flaky,
        "lost": verdict.lost,
        "damaged": verdict.damaged,
        "events": dict(verdict.events),
        "weak_evidence": dict(verdict.weak_evidence),
        "extension_faults": dict(verdict.extension_faults),
        "records": [relative(path, root) for path in verdict.records],
    }


def write_verdict(verdict: Verdict, path: Path, root: Path) -> None:
    """Write verdict.json in one step: a reader sees the old file or the whole new one.

    Raises:
        RecordError: it cannot be written there.
    """
    write_json(verdict_json(verdict, root), path, what="the verdict")


def relative(path: Path, root: Path) -> str:
    """Return the path as seen from `root`, with forward slashes; its name alone from another drive."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:
        return path.name


def _code_json(reasons: CodeReasons) -> dict[str, Any]:
    said = [{"what": what, "times": times} for what, times in reasons.reasons]
    return {
        "code": reasons.code,
        "meaning": meaning(reasons.code),
        "reasons": said,
    }


def _form_json(form: FormVerdict) -> dict[str, Any]:
    only = form.pools[0] if len(form.pools) == 1 else None
    return {
        "verdict": form.state.value,
        "fault": form.fault.value if form.fault else None,
        "reason": form.reason,
        "measured": form.measured,
        "attempts": form.attempts,
        "positive": form.positive,
        "negative": form.negative,
        "not_submitted": form.not_submitted,
        "flaky": form.flaky,
        "waived": _waiver_json(form),
        "outcomes": dict(form.outcomes),
        "submits": form.submits,
        "pass_rate": only.pass_rate if only else None,
        "wait_median": only.wait_median if only else None,
        "wait_max": only.wait_max if only else None,
        "pools": [_pool_json(pool) for pool in form.pools],
    }


def _probe_json(finding: ProbeFinding) -> dict[str, Any]:
    return {
        "form": finding.form,
        "probe": finding.probe,
        "family": finding.family,
        "severity": finding.severity.value,
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "exchange": finding.exchange,
        "key_mode": finding.key_mode,
        "code": finding.code,
        "waived": finding.waived,
    }


def _whose(slug: str, verdict: Verdict, root: Path) -> dict[str, Any]:
    """Return who answers for a form, and where to look."""
    kept = verdict.evidence.get(slug, ())
    return {"owner": verdict.owners.get(slug), "evidence": [relative(path, root) for path in kept]}


def _waiver_json(form: FormVerdict) -> dict[str, Any] | None:
    waiver = form.waiver
    if waiver is None:
        return None
    said = {"until": waiver.until.isoformat(), "reason": waiver.reason, "ticket": waiver.ticket}
    return {**said, "expired": not form.waived}


def _pool_json(pool: Pool) -> dict[str, Any]:
    return {
        "type": pool.type,
        "provider": pool.provider,
        "key_mode": pool.key_mode,
        "attempts": pool.attempts,
        "ok": pool.ok,
        "not_submitted": pool.not_submitted,
        "measured": pool.measured,
        "submits": pool.submits,
        "judged": pool.judged,
        "passed": pool.passed,
        "wait_median": pool.wait_median,
        "wait_max": pool.wait_max,
    }
