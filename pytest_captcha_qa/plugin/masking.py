"""The hooks that mask secrets in what pytest shows: a backstop, since a test may print or compare what it was given."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from pytest_captcha_qa.model.redact import Scrubber

_SHOWN = ("sections", "longrepr", "user_properties", "wasxfail", "context")
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
        self._clean(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Clean a test's report before other plugins take it over."""
        report = yield
        self._clean(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Clean what was added to the report since it was made, and reports that were made in other ways."""
        self._clean(report)

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
        _cleaned(excrepr, self._scrubber)

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Clean the traceback of Ctrl-C, which the terminal keeps to the end and shows with --full-trace."""
        _cleaned(getattr(self._terminal, "_keyboardinterrupt_memo", None), self._scrubber)

    def _clean(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        for name in _SHOWN:
            value = getattr(report, name, None)
            if value:
                setattr(report, name, _cleaned(value, self._scrubber))


class _CleanFormatter(logging.Formatter):
    """Formats as another formatter does, and cleans the result; the log record stays as it is."""

    def __init__(self, inner: logging.Formatter, scrubber: Scrubber) -> None:
        super().__init__()
        self._inner = inner
        self._scrubber = scrubber

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a log record without secrets."""
        return self._scrubber.clean(self._inner.format(record))


def _cleaned(value: Any, scrubber: Scrubber) -> Any:
    """Return what pytest shows with every text in it cleaned, whatever its classes are."""
    match value:
        case str():
            return scrubber.clean(value)
        case list():
            return [_cleaned(one, scrubber) for one in value]
        case tuple():
            return tuple(_cleaned(one, scrubber) for one in value)
        case Mapping():
            return {name: _cleaned(one, scrubber) for name, one in value.items()}
    if type(value).__module__.startswith("_pytest."):
        for name in _attributes(value):
            # Some of these classes are frozen.
            object.__setattr__(value, name, _cleaned(getattr(value, name), scrubber))
    return value


def _attributes(value: Any) -> list[str]:
    if hasattr(value, "__dict__"):
        return list(vars(value))
    return [field.name for field in fields(value)] if is_dataclass(value) else []
