"""The hooks of a run with an environment; registered only then."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config import ci, sources
from pytest_captcha_qa.config.options import Outage
from pytest_captcha_qa.errors import ConfigError, RecordError
from pytest_captcha_qa.plugin import (
    boundary,
    collection,
    dashboard,
    gate,
    junit,
    limits,
    options,
    probes,
    rendezvous,
    reports,
)
from pytest_captcha_qa.plugin.beside import BesideHooks
from pytest_captcha_qa.plugin.exits import Exits, forget_earlier, verdict_beside
from pytest_captcha_qa.plugin.explaining import Explainer
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.masking import InnermostMaskingHooks, MaskingHooks
from pytest_captcha_qa.plugin.others import is_loaded
from pytest_captcha_qa.plugin.reruns import PLUGIN, RerunHooks
from pytest_captcha_qa.plugin.session import RUN, CaptchaRun
from pytest_captcha_qa.plugin.signals import Sigterm
from pytest_captcha_qa.plugin.suite import is_unused, named
from pytest_captcha_qa.reporting.verdict import Verdict
from pytest_captcha_qa.wiring.functions import let_pass

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

    # xdist, in the process that decides.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each worker the names of the run."""
        node.workerinput[rendezvous.WORKER_INPUT] = self._run.for_workers(node.workerinput["workercount"])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Any) -> None:
        """Start the demo's sandbox before the first test is scheduled, if a worker asked for it."""
        if self._run.demo is not None:
            self._run.demo.start_if_asked()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Note which record file a worker that is done has written, and whether it was left by a user or a test."""
        told = (getattr(node, "workeroutput", None) or {}).get(rendezvous.WORKER_INPUT)
        if self._exits is not None and told is not None:
            self._exits.note_deselected(told["deselected"])
            if told["left"]:
                self._exits.note_left(node)
            if "records" in told:
                self._exits.expect_records(told["records"], budget=told["budget"])

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
        except BaseException:
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
        self._tell_records(session)
        if self._exits is not None and self._exits.concerned:
            session.exitstatus = self._exits.decide(session)

    def _tell_records(self, session: pytest.Session) -> None:
        """Say which file holds this process's records, so that one that vanishes is missed, and what was deselected."""
        told: dict[str, Any] = {"deselected": self._deselected}
        if self._run.started:
            told |= {"records": self._run.engine.record_path.name, "budget": self._run.budget}
        if self._exits is None:
            output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
            output[rendezvous.WORKER_INPUT] = told | {"left": self._left}
            if self._left:  # of any other code xdist knows nothing and breaks over the test that is not over
                output["exitstatus"] = int(pytest.ExitCode.INTERRUPTED)
            return
        self._exits.note_deselected(self._deselected)
        if self._run.started:
            self._exits.expect_records(told["records"], budget=told["budget"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the section `captcha`."""
        if self._exits is not None:
            from pytest_captcha_qa.plugin.terminal import print_summary

            print_summary(terminalreporter, self._exits)

    def pytest_unconfigure(self) -> None:
        """End the sandbox."""
        self._run.clean_up()
        self._sigterm.is_itself()


def activate(config: pytest.Config) -> None:
    """Read the settings and register the hooks.

    Raises:
        pytest.UsageError: the settings cannot work.
    """
    try:
        run = CaptchaRun(config)
        gate.check(run)
        dashboard.check(run)
    except ConfigError as error:
        _forget_verdict(config)
        raise pytest.UsageError(error.message) from None
    probes.select(config)
    let_pass(pytest.exit.Exception)  # it is an ordinary Exception, unlike pytest's other outcomes
    config.stash[RUN] = run
    exits = Exits(run) if run.decides else None
    config.pluginmanager.register(ActiveHooks(run, exits), "captcha-qa-active")
    if probes.has_destructive(config):
        config.pluginmanager.register(BesideHooks(run), "captcha-qa-beside")
    masking = MaskingHooks(run.scrubber)
    config.pluginmanager.register(masking, "captcha-qa-masking")
    config.pluginmanager.register(InnermostMaskingHooks(masking), "captcha-qa-masking-innermost")
    if getattr(config.option, "allure_report_dir", None):
        _show_in_allure(run, exits)
    if exits is not None and run.settings.run.metrics is not None:
        exits.listeners.append(_textfile(run.settings.run.metrics, config.rootpath))
    if is_loaded(config, PLUGIN):
        config.pluginmanager.register(RerunHooks(), "captcha-qa-reruns")


def _show_in_allure(run: CaptchaRun, exits: Exits | None) -> None:
    """Register what completes Allure's results; a team's own allure-pytest may be too old for that."""
    try:
        from pytest_captcha_qa.plugin import allure
    except ImportError:
        if exits is not None:
            exits.listeners.append(lambda verdict: _ALLURE_TOO_OLD)
        return
    allure.register(run, exits)


def _textfile(path: Path, root: Path) -> Callable[[Verdict], str | None]:
    """Return what writes the metrics of the run.

    Raises:
        pytest.UsageError: the extra is missing.
    """
    try:
        from pytest_captcha_qa.plugin.metrics import Textfile
    except ModuleNotFoundError as missing:
        if missing.name != "prometheus_client":
            raise
        raise pytest.UsageError("--captcha-metrics needs its extra: pip install 'pytest-captcha-qa[metrics]'") from None
    return Textfile(path, root)


def _forget_verdict(config: pytest.Config) -> None:
    """Remove the verdict of an earlier run where this one would have put its own, as far as that can be known."""
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    with suppress(ConfigError):
        folders = config.invocation_params.dir, config.rootpath
        given, ini = options.given(config), options.ini(config)
        records = sources.records_without_file(*folders, options=given, ini=ini, environ=os.environ)
        forget_earlier(verdict_beside(records, ci.shard_of(os.environ)))
