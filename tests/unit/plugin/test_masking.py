from __future__ import annotations

from typing import Any

import pytest

from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.plugin.masking import MaskingHooks

SECRET = "0x4AAAsecretsecretsecret"


@pytest.fixture
def hooks() -> MaskingHooks:
    scrubber = Scrubber()
    scrubber.learn([SECRET])
    return MaskingHooks(scrubber)


def failing(text: str) -> pytest.ExceptionInfo[BaseException]:
    try:
        raise ValueError(text)
    except ValueError:
        return pytest.ExceptionInfo.from_current()


@pytest.mark.parametrize("style", ["long", "short", "native", "line", "value"])
def test_known_secrets_are_masked_wherever_a_report_shows_them(hooks: MaskingHooks, style: Any) -> None:
    shown = failing(f"sent {SECRET} in vain").getrepr(showlocals=True, style=style)
    report = pytest.TestReport(
        "test_it.py::test_it", ("test_it.py", 6, "test_it"), {}, "failed", shown, "call",
        sections=[("Captured stdout call", f"token={SECRET}")], user_properties=[("token", SECRET)],
    )  # fmt: skip
    hooks.pytest_runtest_logreport(report)
    assert SECRET not in f"{report.longreprtext}{report._to_json()}"
    assert "in vain" in report.longreprtext
    assert report.sections == [("Captured stdout call", "***")]
    assert report.user_properties == [("token", "***")]


def test_a_report_without_anything_to_show_stays_as_it_is(hooks: MaskingHooks) -> None:
    report = pytest.TestReport("test_it.py::test_it", ("test_it.py", 6, "test_it"), {}, "passed", None, "call")
    before = report._to_json()
    hooks.pytest_runtest_logreport(report)
    assert report._to_json() == before
