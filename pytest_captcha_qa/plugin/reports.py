"""What a test's report carries about captchas, so that it also travels from xdist workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_captcha_qa.errors import CaptchaQAError

if TYPE_CHECKING:
    from pytest_captcha_qa.model.attempt import Outcome
    from pytest_captcha_qa.plugin.case import Case
    from pytest_captcha_qa.reporting.verdict import Cause

CASE: pytest.StashKey[Case] = pytest.StashKey()
FORMS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
ATTRIBUTE = "captcha_qa"
_OUTAGE = 12
_FINAL = ("passed", "failed", "skipped")


def has_case(item: pytest.Item) -> bool:
    """Return whether a test, however it came by a fixture of ours, has used a form or token."""
    return CASE in item.stash


def forget(item: pytest.Item) -> None:
    """Let go of what an earlier execution of the test did."""
    if has_case(item):
        del item.stash[CASE]


def annotate(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put on the report which forms the test is about and, if it failed, which exit code its failure stands for."""
    carried: dict[str, Any] = {"forms": list(_forms_of(item))}
    if report.failed:
        carried |= _failure(item, call)
    setattr(report, ATTRIBUTE, carried)


def is_hopeless(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    """Return whether a phase of the test has failed of something that another try, a moment later, does not change."""
    from pytest_captcha_qa.reporting.codes import HOPELESS

    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        return error.exit_code != 1
    case = item.stash.get(CASE, None) if error is not None else None
    faults = {outcome.fault for outcome in case.outcomes if outcome.fault is not None} if case is not None else set()
    return bool(faults) and faults <= HOPELESS


def is_a_try(report: pytest.TestReport) -> bool:
    """Return whether another plugin runs the test again: it changes the outcome to a word of its own, like "rerun"."""
    return report.outcome not in _FINAL


def show_outage_as_skip(report: pytest.TestReport) -> None:
    """Turn a failure that is an outage into a skip; its exit code stays."""
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    if report.failed and carried.get("code") == _OUTAGE:
        path, line, _ = report.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"Skipped: {carried['what']}")


def cause_of(report: pytest.TestReport) -> Cause | None:
    """Return why this report counts against the run, None if it does not."""
    from pytest_captcha_qa.reporting.verdict import Cause

    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    if is_a_try(report):
        return None
    if "code" in carried:
        return Cause(carried["code"], carried["what"], report.nodeid, failed=report.failed)
    if report.failed:
        return Cause(1, f"{report.nodeid} failed", report.nodeid)
    return None


def annotate_collection(call: pytest.CallInfo[Any], report: pytest.CollectReport) -> None:
    """Put on the report of a collection that failed by an error of ours which exit code it stands for."""
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        setattr(report, ATTRIBUTE, {"code": error.exit_code, "what": error.message})


def cause_of_collection(report: pytest.CollectReport) -> Cause | None:
    """Return why a collection that failed counts against the run."""
    from pytest_captcha_qa.reporting.verdict import Cause

    if not report.failed:
        return None
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    said = f"{report.nodeid or 'the project'} could not be collected"
    return Cause(carried.get("code", 1), f"{said}: {carried['what']}" if carried else said, report.nodeid)


def forms_in(report: pytest.TestReport) -> list[str]:
    """Return the forms the report's test is about; empty for an ordinary test."""
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    return list(carried.get("forms", ()))


def is_captcha_report(report: pytest.TestReport) -> bool:
    """Return whether the report is of a captcha test."""
    return hasattr(report, ATTRIBUTE)


def _failure(item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, Any]:
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        return {"code": error.exit_code, "what": error.message}
    case = item.stash.get(CASE, None)
    blamed = [outcome for outcome in case.outcomes if outcome.fault is not None] if case is not None else []
    if not blamed:
        return {"code": 1, "what": f"{item.nodeid} failed"}
    worst = min(blamed, key=_weight)
    return {"code": _code(worst), "what": worst.verdict.reason}


def _weight(outcome: Outcome) -> int:
    from pytest_captcha_qa.reporting.codes import rank

    return rank(_code(outcome))


def _code(outcome: Outcome) -> int:
    from pytest_captcha_qa.reporting.codes import FAULT_CODES

    assert outcome.fault is not None
    return FAULT_CODES[outcome.fault]


def _forms_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the forms the test named before it ran, or has used since."""
    case = item.stash.get(CASE, None)
    used = case.used_forms if case is not None else ()
    return tuple(dict.fromkeys((*item.stash.get(FORMS, ()), *used)))
