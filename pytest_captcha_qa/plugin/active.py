"""The hooks of a run with an environment; registered only then."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.options import Outage
from pytest_captcha_qa.errors import ConfigError, RecordError
from pytest_captcha_qa.plugin import (
    boundary,
    collection,
    dashboard,
    junit,
    limits,
    probes,
    reports,
)
from pytest_captcha_qa.plugin.exits import Exits, forget_earlier
from pytest_captcha_qa.plugin.explaining import Explainer
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.plugin.signals import Sigterm
from pytest_captcha_qa.plugin.suite import is_unused, named
from pytest_captcha_qa.plugin.workers import Told

_ALLURE_TOO_OLD = "allure: its results lack captcha steps; they need pip install -U 'pytest-captcha-qa[allure]'"


class ActiveHooks:
    """Forwards pytest's hooks to the run and, in the process that decides, to its exits."""

    def __init__(self, run: CaptchaRun, exits: Exits | None) -> None:
        self._run = run
        self._exits = exits
        self._explainer = Explainer(run)
        self._sigterm = Sigterm()
        self._interrupted = self._left = self._internal_error = False
        self._deselected = 0

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remove the verdict of an earlier run, and what its probes found, so that a crash leaves none."""
        if self._exits is not None and not session.config.option.collectonly:
            forget_earlier(self._exits.verdict_path, findings=probes.asked_for(session.config))
            dashboard.forget(self._run)

    # Collection.

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
        """Call a module of the built-in suites by the name under which it can be run again."""
        return named(module_path, parent)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrise over forms, and over families of probes."""
        collection.parametrise(metafunc, self._run)
        probes.parametrise(metafunc)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Check what the markers name, and see that pytest-timeout leaves enough time for a solve."""
        collection.prepare(items, self._run)
        limits.give_limits(items, self._run)
        probes.put_destructive_last(items)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count the captcha tests that somebody has left out."""
        self._deselected += sum(is_captcha_test(item) and not is_unused(item) for item in items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say in a worker that the demo's sandbox is wanted; xdist reports the collection after this."""
        self._run.note_selected(session.items)
        running = not session.config.option.collectonly and self._run.captcha_tests
        if running and not self._run.decides and self._run.demo is not None:
            self._run.demo.ask()

    def pytest_exception_interact(self, call: pytest.CallInfo[Any], report: pytest.CollectReport) -> None:
        """Let the report of a module that cannot be collected say so, if the fault is one of ours."""
        if isinstance(report, pytest.CollectReport):
            reports.annotate_collection(call, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take a module that cannot be collected into account."""
        if self._exits is not None:
            self._exits.see_collection(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget what the test did before it is run again; fail one whose marker is wrong, where nobody said so."""
        reports.forget(item)
        boundary.call(collection.raise_problem, item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Before any test say what would keep the captcha tests from working; let SIGTERM end them in good order."""
        option = session.config.option
        if self._run.captcha_tests and not (option.collectonly or option.setuponly):
            self._check(session.items)
        if self._exits is not None:
            self._exits.expect_tests(self._run.captcha_tests)
        self._sigterm.interrupts()
        try:
            return (yield)
        finally:
            self._sigterm.waits()

    def _check(self, items: list[pytest.Item]) -> None:
        try:
            self._run.check({form for item in items for form in item.stash.get(reports.FORMS, ())})
        except ConfigError as error:
            if self._run.decides:
                raise pytest.UsageError(error.message) from None

    # Reports and the end.

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that not all tests were run; `pytest.exit` comes here too, whatever its exit code.

        So does xdist after -x or --maxfail, with an exception of its own.
        """
        self._interrupted = True
        self._left = excinfo.type in (KeyboardInterrupt, pytest.exit.Exception)
        if self._exits is not None:
            self._exits.ended_by_user |= self._left

    def pytest_internalerror(self) -> None:
        """Remember it: xdist tells of one in a worker here, and may then end the run as if there had been none."""
        self._internal_error = True
        if self._exits is not None:
            self._exits.broke = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report of a captcha test say whose fault its failure is."""
        self._explainer.note_properties(item)
        report = yield
        if is_captcha_test(item) or reports.has_case(item):
            reports.annotate(item, call, report)
            self._explainer.explain(item, report)
            if self._run.settings.run.outage is Outage.SKIP:
                reports.show_outage_as_skip(report)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report into account."""
        if self._exits is not None:
            self._exits.see(report)
            junit.attach(self._run.config, report)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Close the records and decide, after xdist has ended its workers, and also if another plugin fails here."""
        try:
            result = yield
        except pytest.exit.Exception as left:
            # pytest takes its code after this: without one its own stays, and so does then what is decided here.
            session.exitstatus = session.exitstatus if left.returncode is None else left.returncode
            self._end(session)
            left.returncode = int(session.exitstatus)
            raise
        except BaseException:  # whatever another plugin ends with, Ctrl-C too, records and verdict are written
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            self._end(session)
            raise
        self._end(session)
        return result

    def _end(self, session: pytest.Session) -> None:
        if self._internal_error:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        broken_off = self._interrupted or session.exitstatus == pytest.ExitCode.INTERNAL_ERROR
        with suppress(RecordError):  # a file without its footer says itself that it is incomplete
            self._run.finish(complete=not broken_off)
        if self._exits is None:
            self._told().tell(session)
            return
        self._told().heard_by(self._exits)
        if self._exits.concerned:
            session.exitstatus = self._exits.decide(session)

    def _told(self) -> Told:
        """Return what is known of the tests of this process, and of their records."""
        records = self._run.engine.record_path.name if self._run.started else None
        return Told(self._deselected, records, budget=self._run.budget, left=self._left)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the section `captcha`."""
        if self._exits is not None:
            from pytest_captcha_qa.plugin.terminal import print_summary

            print_summary(terminalreporter, self._exits)

    def pytest_unconfigure(self) -> None:
        """End the sandbox."""
        self._run.clean_up()
        self._sigterm.is_itself()
