from __future__ import annotations

from typing import Any

import pytest

from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.plugin.masking import InnermostMaskingHooks, MaskingHooks

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


@pytest.mark.parametrize(
    "said", [ValueError(SECRET), pytest.fail.Exception(f"with {SECRET}"), KeyError({"t": [SECRET]})]
)
def test_what_an_exception_says_is_masked_before_any_plugin_sees_its_report(
    hooks: MaskingHooks, said: BaseException
) -> None:
    with pytest.raises(RuntimeError) as failed:
        raise RuntimeError(f"sent {SECRET}") from said
    call: pytest.CallInfo[None] = pytest.CallInfo(
        None, failed, start=0, stop=0, duration=0, when="call", _ispytest=True
    )
    made = InnermostMaskingHooks(hooks).pytest_runtest_makereport(call)
    next(made)
    assert failed.exconly() == "RuntimeError: sent ***"
    assert SECRET not in f"{said} {said.args} {getattr(said, 'msg', '')}"
    report = pytest.TestReport(
        "test_it.py::test_it", ("test_it.py", 6, "test_it"), {}, "failed", None, "call", sections=[("out", SECRET)]
    )
    with pytest.raises(StopIteration):
        made.send(report)
    assert report.sections == [("out", "***")]


def test_grouped_exceptions_are_masked_each(hooks: MaskingHooks) -> None:
    inner = ValueError(f"with {SECRET}")
    hooks.clean_error(BaseExceptionGroup("two", [inner, KeyboardInterrupt()]))
    assert str(inner) == "with ***"


def test_an_exception_without_a_secret_keeps_what_it_was_raised_with(hooks: MaskingHooks) -> None:
    kept = object()
    error = ValueError(kept, 7)
    error.__context__ = error
    hooks.clean_error(error)
    assert error.args == (kept, 7)
