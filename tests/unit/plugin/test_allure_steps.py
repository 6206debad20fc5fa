from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import allure_commons
import pytest
from allure_commons.logger import AllureMemoryLogger

from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.plugin.allure_steps import status_of, step_of

TS = "2026-11-29T11:18:03.120Z"
MOMENT = 1795951083120


@pytest.fixture(autouse=True)
def written() -> Iterator[dict[str, str]]:
    """What Allure is given to write, by the name of the file."""
    logger = AllureMemoryLogger()
    allure_commons.plugin_manager.register(logger)
    yield logger.attachments
    allure_commons.plugin_manager.unregister(logger)


@pytest.fixture
def line(attempt: Callable[..., AttemptLine]) -> AttemptLine:
    return attempt(ts=TS, seconds={"page": 0.4, "blocked": 21.5, "queue": 0.1, "rate": 2.0, "submit": 0.3})


def times(step: object) -> list[tuple[str, int, int]]:
    return [(one.name, one.start - MOMENT, one.stop - MOMENT) for one in step.steps]  # type: ignore[attr-defined]


def test_the_phases_follow_each_other_from_the_start_of_the_attempt(line: AttemptLine) -> None:
    assert times(step_of(line, TS)) == [
        ("open", 0, 400),
        ("obtain", 400, 21900),
        ("wait for the form's rate", 21900, 23900),
        ("submit", 23900, 24200),
        ("verify", 24200, 24200),
    ]


def test_without_a_start_they_end_when_the_record_was_written(line: AttemptLine) -> None:
    assert times(step_of(line, None))[0] == ("open", -24200, -23800)
    assert times(step_of(line, None))[-1] == ("verify", 0, 0)


def test_an_attempt_that_ended_early_shows_where(line: AttemptLine) -> None:
    ended = replace(
        line, seconds={"page": 0.4, "blocked": 9.0}, verify_status="skipped", outcome="indeterminate",
        fault="provider", error={"code": "unsolvable", "message": "the service gave up"},
    )  # fmt: skip
    step = step_of(ended, TS)

    assert [(one.name, one.status) for one in step.steps] == [("open", "passed"), ("obtain", "broken")]
    assert step.steps[-1].statusDetails.message == "the service gave up (fault provider)"


def test_nothing_reached_is_a_step_without_phases(line: AttemptLine) -> None:
    refused = replace(line, seconds={}, verify_status="skipped", outcome="indeterminate", fault="scope", error={})
    step = step_of(refused, TS)

    assert (step.steps, step.status, step.start, step.stop) == ([], "broken", MOMENT, MOMENT)


@pytest.mark.parametrize("fault", Fault)
def test_failed_is_the_product_and_broken_anybody_else(line: AttemptLine, fault: Fault) -> None:
    failed = replace(line, outcome="failed", verify_status="fail", fault=str(fault))

    assert status_of(failed) == ("failed" if fault is Fault.PRODUCT else "broken")


def test_one_that_was_only_opened_is_skipped(line: AttemptLine) -> None:
    left = replace(line, outcome="indeterminate", verify_status="skipped", fault=None, error=None, seconds={"page": 1})
    step = step_of(left, TS)

    assert (step.status, [one.status for one in step.steps]) == ("skipped", ["passed"])


def test_the_record_that_is_attached_is_the_redacted_one(line: AttemptLine, written: dict[str, str]) -> None:
    step = step_of(replace(line, token_prefix="03AGdBq24PBCqLmOx"), TS)
    (attachment,) = step.attachments

    assert json.loads(written[attachment.source])["token_prefix"] == "03AGdB"
    assert {parameter.excluded for parameter in step.parameters} == {True}
