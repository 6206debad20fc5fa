"""An attempt as Allure shows it: a step with its phases below it, timed by its record, and the record attached."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import uuid4

import allure_commons
from allure_commons.model2 import Attachment, ExecutableItem, Parameter, Status, StatusDetails, TestStepResult
from allure_commons.types import AttachmentType

from pytest_captcha_qa.model.attempt import Fault, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.lines import to_json
from pytest_captcha_qa.reporting.codes import fault_of, was_left_open
from pytest_captcha_qa.reporting.numbers import seconds

_VERIFY = "verify"
# Steps of a record in their order, each with its name in the report and the parts of it that are told beside.
_PHASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "page": ("open", ()),
    "blocked": ("obtain", ("queue", "solve", "detect")),
    "rate": ("wait for the form's rate", ()),
    "submit": ("submit", ()),
    _VERIFY: (_VERIFY, ()),
    "confirm": ("confirm", ()),
}


def step_of(line: AttemptLine, started: str | None) -> TestStepResult:
    """Return the step of one attempt; `started` is when its `started` line was written, None if not known.

    Durations are those of the record. Each phase begins where the one before it has ended: what the test did in between
    is in no record.
    """
    begin = _milliseconds(started or line.ts) - (0 if started else round(1000 * sum(_phases(line).values())))
    status = status_of(line)
    step = TestStepResult(name=f"{line.slug} ({line.captcha}): {line.outcome}", status=status, start=begin)
    step.statusDetails = _details(line, status)
    step.parameters = list(_parameters(line))
    step.steps = list(_phase_steps(line, begin, status))
    step.stop = max(step.steps[-1].stop if step.steps else begin, _milliseconds(line.ts))
    attach_json(step, "record", to_json(line))
    return step


def status_of(line: AttemptLine) -> str:
    """Return how Allure calls what came of an attempt: `failed` is the product's fault, `broken` anybody else's."""
    if was_left_open(line):
        return str(Status.SKIPPED)
    fault = fault_of(line)
    if fault is None:
        return str(Status.PASSED)
    return str(Status.FAILED if fault is Fault.PRODUCT else Status.BROKEN)


def attach_json(item: ExecutableItem, name: str, value: object) -> None:
    """Attach a value to a step or test."""
    text = json.dumps(value, indent=2, ensure_ascii=True)
    source = _new_attachment(item, name, AttachmentType.JSON)
    allure_commons.plugin_manager.hook.report_attached_data(body=text, file_name=source)


def attach_file(item: ExecutableItem, name: str, path: str) -> None:
    """Attach a file of JSON to a step or test."""
    source = _new_attachment(item, name, AttachmentType.JSON)
    allure_commons.plugin_manager.hook.report_attached_file(source=path, file_name=source)


def _new_attachment(item: ExecutableItem, name: str, kind: AttachmentType) -> str:
    source = f"{uuid4()}-attachment.{kind.extension}"
    item.attachments.append(Attachment(name=name, source=source, type=kind.mime_type))
    return source


def _phases(line: AttemptLine) -> dict[str, float]:
    """Return the seconds of each phase that was reached; the backend's word takes no time where the submit is it."""
    found = {name: line.seconds[name] for name in _PHASES if name in line.seconds}
    if line.verify_status != VerifyStatus.SKIPPED:
        found.setdefault(_VERIFY, 0.0)
    return {name: found[name] for name in _PHASES if name in found}


def _phase_steps(line: AttemptLine, begin: int, status: str) -> Iterator[TestStepResult]:
    phases = _phases(line)
    for number, (name, took) in enumerate(phases.items(), 1):
        told, parts = _PHASES[name]
        last = number == len(phases) and status != Status.SKIPPED
        step = TestStepResult(name=told, status=status if last else Status.PASSED, start=begin)
        step.statusDetails = _details(line, status) if last else None
        step.parameters = [_parameter(part, seconds(line.seconds[part])) for part in parts if part in line.seconds]
        if name == _VERIFY:
            step.parameters.append(_parameter("verify_status", line.verify_status))
        begin += round(1000 * took)
        step.stop = begin
        yield step


def _details(line: AttemptLine, status: str) -> StatusDetails | None:
    if status in (Status.PASSED, Status.SKIPPED):
        return None
    said = (line.error or {}).get("message") or f"{line.outcome}: verify_status {line.verify_status}"
    return StatusDetails(message=f"{said} (fault {fault_of(line)})")


def _parameters(line: AttemptLine) -> Iterator[Parameter]:
    shown = {
        "expect": line.expect,
        "source": line.source,
        "wait": seconds(line.wait) if line.wait is not None else None,
        "task_id": line.task_id,
        "submits": str(line.submits),
        "http_status": str(line.http_status) if line.http_status is not None else None,
    }
    yield from (_parameter(name, value) for name, value in shown.items() if value is not None)


def _parameter(name: str, value: str) -> Parameter:
    return Parameter(name=name, value=value, excluded=True)


def _milliseconds(ts: str) -> int:
    return round(1000 * datetime.fromisoformat(ts).timestamp())
