"""What a test's report carries about captchas, so that it also travels from xdist workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_captcha_qa.errors import CaptchaQAError

if TYPE_CHECKING:
    from pytest_captcha_qa.conformance.runner import Finding
    from pytest_captcha_qa.model.attempt import Outcome
    from pytest_captcha_qa.plugin.case import Case
    from pytest_captcha_qa.reporting.causes import Cause

CASE: pytest.StashKey[Case] = pytest.StashKey()
FORMS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
FINDINGS: pytest.StashKey[tuple[Finding, ...]] = pytest.StashKey()
ATTRIBUTE = "captcha_qa"
_NO_VERDICT = 12
_OUTAGES = ("provider", "infrastructure")
_FINAL = ("passed", "failed", "skipped")


def has_case(item: pytest.Item) -> bool:
    """Return whether a test, however it came by a fixture of ours, has used a form or token."""
    return CASE in item.stash


def forget(item: pytest.Item) -> None:
    """Let go of what an earlier execution of the test did."""
    if has_case(item):
        del item.stash[CASE]
    item.stash[FINDINGS] = ()


def annotate(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put on the report which forms the test is about and, if it failed, which exit code its failure stands for."""
    carried: dict[str, Any] = {"forms": list(forms_of(item))}
    if report.failed:
        carried |= _failure(item, call)
    setattr(report, ATTRIBUTE, carried)


def is_hopeless(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    """Return whether a phase of the test has failed of something that another try, a moment later, does not change."""
    from pytest_captcha_qa.reporting.codes import HOPELESS

    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        return error.exit_code != 1
    faults = {outcome.fault for outcome in _blamed(item)} if error is not None else set()
    return bool(faults) and faults <= HOPELESS


def worker_of_crash(report: pytest.TestReport) -> object | None:
    """Return the xdist worker whose end has ended the test, None where it ended by itself."""
    return getattr(report, "node", None) if report.when not in ("setup", "call", "teardown") else None


def is_a_try(report: pytest.TestReport) -> bool:
    """Return whether another plugin runs the test again: it changes the outcome to a word of its own, like "rerun"."""
    return report.outcome not in _FINAL


def show_outage_as_skip(report: pytest.TestReport) -> None:
    """Turn a failure that is an outage into a skip; its exit code stays. An answer nobody understands is none."""
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    if report.failed and carried.get("outage"):
        path, line, _ = report.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"Skipped: {carried['what']}")


def cause_of(report: pytest.TestReport) -> Cause | None:
    """Return why this report counts against the run, None if it does not."""
    from pytest_captcha_qa.reporting.causes import Cause

    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    if is_a_try(report):
        return None
    if "code" in carried:
        waivable = carried["about_attempt"] and report.when != "teardown"
        return Cause(carried["code"], carried["what"], report.nodeid, failed=report.failed, waivable=waivable)
    if report.failed:
        return Cause(1, f"{report.nodeid} failed", report.nodeid, waivable=False)
    return None


def is_part(report: pytest.TestReport) -> bool:
    """Return whether the report is of a part of a test, as subtests have them; the test has one of its own beside."""
    return hasattr(report, "context")


def says_why(report: pytest.TestReport) -> bool:
    """Return whether the report says why it failed: one that another plugin turned into a failure does not."""
    return "code" in (getattr(report, ATTRIBUTE, None) or {})


def annotate_collection(call: pytest.CallInfo[Any], report: pytest.CollectReport) -> None:
    """Put on the report of a collection that failed by an error of ours which exit code it stands for."""
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        setattr(report, ATTRIBUTE, {"code": error.exit_code, "what": error.message})


def cause_of_collection(report: pytest.CollectReport) -> Cause | None:
    """Return why a collection that failed counts against the run."""
    from pytest_captcha_qa.reporting.causes import Cause

    if not report.failed:
        return None
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    said = f"{report.nodeid or 'the project'} could not be collected"
    return Cause(carried.get("code", 1), f"{said}: {carried['what']}" if carried else said, report.nodeid)


def forms_in(report: pytest.TestReport) -> list[str]:
    """Return the forms the report's test is about; empty for an ordinary test."""
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    return list(carried.get("forms", ()))


def forms_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the forms the test named before it ran, or has used since."""
    case = item.stash.get(CASE, None)
    used = case.used_forms if case is not None else ()
    return tuple(dict.fromkeys((*item.stash.get(FORMS, ()), *used)))


def is_captcha_report(report: pytest.TestReport) -> bool:
    """Return whether the report is of a captcha test."""
    return hasattr(report, ATTRIBUTE)


def _failure(item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, Any]:
    from pytest_captcha_qa.plugin.attributing import About, about

    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaptchaQAError):
        outage = error.exit_code == _NO_VERDICT and error.fault in _OUTAGES
        return {
            "code": error.exit_code,
            "fault": error.fault,
            "what": error.message,
            "outage": outage,
            "about_attempt": True,
        }
    blamed = _blamed(item)
    if not blamed:
        return {"code": 1, "what": f"{item.nodeid} failed", "about_attempt": False}
    worst, told = min(blamed, key=_weight), about(error, blamed, item.path)
    # What fails after an attempt has failed is taken for its consequence, but no waiver excuses it.
    beside = f"{item.nodeid} failed of something else, after an attempt: " if told is About.ITSELF else ""
    return {
        "code": _code(worst),
        "fault": None if beside else str(worst.fault),
        "what": beside + worst.verdict.reason,
        "outage": not beside and all(outcome.fault in _OUTAGES for outcome in blamed),
        "about_attempt": told is About.AN_ATTEMPT,
    }


def _blamed(item: pytest.Item) -> list[Outcome]:
    """Return the outcomes of the test so far that somebody is at fault for."""
    case = item.stash.get(CASE, None)
    return [outcome for outcome in case.outcomes if outcome.fault is not None] if case is not None else []


def _weight(outcome: Outcome) -> int:
    from pytest_captcha_qa.reporting.codes import rank

    return rank(_code(outcome))


def _code(outcome: Outcome) -> int:
    from pytest_captcha_qa.reporting.codes import FAULT_CODES

    assert outcome.fault is not None
    return FAULT_CODES[outcome.fault]
