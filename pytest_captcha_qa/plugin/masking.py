"""The hooks that mask secrets in what pytest shows: a backstop, since a test may print or compare what it was given."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from pytest_captcha_qa.model.redact import Scrubber

_SHOWN = ("sections", "longrepr", "user_properties", "wasxfail", "context")
_SHOWING = ("_pytest.", "allure_commons.")
_PLAIN = (str, list, tuple, dict)
_LOG_HANDLERS = ("log_cli_handler", "log_file_handler")


class MaskingHooks:
    """Cleans reports, warnings and live logs, in the process where they are made: first of all who look at them."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._terminal: object = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Clean what is logged to the terminal and to a file while tests run."""
        plugins = session.config.pluginmanager
        self._terminal = plugins.getplugin("terminalreporter")
        log_plugin = plugins.getplugin("logging-plugin")
        for name in _LOG_HANDLERS:
            handler: logging.Handler | None = getattr(log_plugin, name, None)
            if handler is not None and handler.formatter is not None:
                handler.setFormatter(_CleanFormatter(handler.formatter, self._scrubber))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Clean why a module could not be collected."""
        self.clean(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Clean a test's report before other plugins take it over."""
        report = yield
        self.clean(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Clean what was added to the report since it was made, and reports that were made in other ways."""
        self.clean(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Clean a warning."""
        said = str(warning_message.message)
        cleaned = self._scrubber.clean(said)
        if cleaned != said:
            warning_message.message = cleaned

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        """Clean the traceback of a broken plugin."""
        cleaned(excrepr, self._scrubber)

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Clean the traceback of Ctrl-C, which the terminal keeps to the end and shows with --full-trace."""
        cleaned(getattr(self._terminal, "_keyboardinterrupt_memo", None), self._scrubber)

    def clean(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        """Clean all that is shown of a report."""
        for name in _SHOWN:
            value = getattr(report, name, None)
            if value:
                setattr(report, name, cleaned(value, self._scrubber))

    def clean_error(self, error: BaseException | None) -> None:
        """Clean the texts that an exception was raised with, and those of what caused it; its class says the rest."""
        for one in _chain(error):
            one.args = tuple(self._said(part) for part in one.args)
            if isinstance(said := getattr(one, "msg", None), str):  # pytest.fail, skip and xfail keep it there too
                with suppress(AttributeError):
                    one.msg = self._scrubber.clean(said)  # type: ignore[attr-defined]

    def _said(self, part: Any) -> Any:
        return cleaned(part, self._scrubber) if type(part) in _PLAIN else part


class InnermostMaskingHooks:
    """Cleans a failure and its report as they are made, for plugins that read them before all others are through."""

    def __init__(self, masking: MaskingHooks) -> None:
        self._masking = masking

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Clean what an exception says, which some plugins show beside the report; then the new report."""
        if call.excinfo is not None:
            self._masking.clean_error(call.excinfo.value)
        report = yield
        self._masking.clean(report)
        return report


class _CleanFormatter(logging.Formatter):
    """Formats as another formatter does, and cleans the result; the log record stays as it is."""

    def __init__(self, inner: logging.Formatter, scrubber: Scrubber) -> None:
        super().__init__()
        self._inner = inner
        self._scrubber = scrubber

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a log record without secrets."""
        return self._scrubber.clean(self._inner.format(record))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, those it groups, and what each came from, once each."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            grouped = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            left += [one.__cause__, one.__context__, *grouped]


def cleaned(value: Any, scrubber: Scrubber) -> Any:
    """Return what pytest or Allure shows with every text in it cleaned, whatever its classes are."""
    match value:
        case str():
            return scrubber.clean(value)
        case list():
            return [cleaned(one, scrubber) for one in value]
        case tuple():
            return tuple(cleaned(one, scrubber) for one in value)
        case Mapping():
            return {name: cleaned(one, scrubber) for name, one in value.items()}
    if type(value).__module__.startswith(_SHOWING):
        for name in _attributes(value):
            # Some of these classes are frozen.
            object.__setattr__(value, name, cleaned(getattr(value, name), scrubber))
    return value


def _attributes(value: Any) -> list[str]:
    if hasattr(value, "__dict__"):
        return list(vars(value))
    return [field.name for field in fields(value)] if is_dataclass(value) else []
