"""What Allure's results say of captcha tests; registered where `--alluredir` is given.

The environment is a label and an excluded parameter, so it is no part of a test's history id: the same test on another
environment is the same test, and a trend goes on when a pipeline moves from one environment to the next.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import allure_commons
import pytest
from allure_commons.model2 import GlobalError, Globals, Label, Parameter, Status, TestResult, TestStepResult
from allure_commons.types import LabelType, Severity
from allure_commons.utils import md5, now
from allure_pytest.utils import get_history_id

from pytest_captcha_qa.model.attempt import Expect
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.plugin import reports
from pytest_captcha_qa.plugin.allure_files import about_run, marked, write_categories, write_environment
from pytest_captcha_qa.plugin.allure_steps import attach_file, step_of
from pytest_captcha_qa.plugin.exits import Exits
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.masking import cleaned
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.plugin.suite import module_name
from pytest_captcha_qa.records.failures import EXCHANGE, kept_of
from pytest_captcha_qa.reporting.verdict import Verdict

_SEVERITIES = frozenset(severity.value for severity in Severity)
_STORIES = {Expect.ACCEPT: "accepts a good token", Expect.REFUSE: "refuses what it must refuse"}


class AllureHooks:
    """Lives in each process that runs tests. pytest tells it which test is under way, Allure when a result is written.

    It listens to Allure beside pytest: a result is complete when it is written, after the test's fixtures have ended.
    """

    def __init__(self, run: CaptchaRun, exits: Exits | None) -> None:
        """`exits`: where this process decides what the run comes to."""
        self._run = run
        self._exits = exits
        self._folder = Path(run.config.option.allure_report_dir).absolute()
        self._item: pytest.Item | None = None
        self._fault: str | None = None
        self._skipped = False
        self._shared_told = 0

    # What pytest tells.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note which test the next results are of."""
        self._item, self._fault, self._skipped = item, None, False
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note whose fault a failure is, after others have said it on the report."""
        report = yield
        carried: Mapping[str, Any] = getattr(report, reports.ATTRIBUTE, None) or {}
        self._fault = self._fault or carried.get("fault")
        self._skipped |= bool(report.skipped and carried.get("outage"))
        return report

    # What Allure tells.

    @allure_commons.hookimpl(tryfirst=True)
    def report_result(self, result: TestResult) -> None:
        """Complete the result of a captcha test before it is written; of any test, show no secret of the run."""
        item = self._item
        if item is not None and (is_captcha_test(item) or reports.has_case(item)):
            self._complete(item, result)
        cleaned(result, self._run.scrubber)
        self._fault, self._skipped = None, False  # the test may be run again

    @allure_commons.hookimpl(tryfirst=True)
    def report_container(self, container: object) -> None:
        """Show no secret in what Allure says of fixtures: it looks at their errors before anybody else does."""
        cleaned(container, self._run.scrubber)

    @allure_commons.hookimpl(trylast=True)
    def report_attached_data(self, file_name: str) -> None:
        """Clean an attachment that a test has made."""
        self._clean_file(file_name)

    @allure_commons.hookimpl(trylast=True)
    def report_attached_file(self, file_name: str) -> None:
        """Clean a file that a test has attached."""
        self._clean_file(file_name)

    def _clean_file(self, name: str) -> None:
        path = self._folder / name
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):  # a picture; nobody can read a token there
            return
        if (clean := self._run.scrubber.clean(text)) != text:
            path.write_bytes(clean.encode())

    # How a result is completed.

    def _complete(self, item: pytest.Item, result: TestResult) -> None:
        case = item.stash.get(reports.CASE, None)
        shared = self._run.shared.recorded[self._shared_told :]
        self._shared_told += len(shared)
        own = case.recorded if case is not None else ()
        started = {**self._run.shared.started, **(case.started if case is not None else {})}
        made = (*shared, *own)
        steps = [self._step(line, started.get(line.id)) for line in made]
        findings = item.stash.get(reports.FINDINGS, ())
        result.steps += [*steps, *map(_probe_step, findings)]
        self._label(item, result, made)
        self._blame(result)
        _name_everywhere_alike(item, result)

    def _step(self, line: AttemptLine, started: str | None) -> TestStepResult:
        step = step_of(line, started)
        kept = kept_of(self._run.engine.record_path, line.id)
        if kept is not None:
            attach_file(step, "what was sent and answered", str(kept / EXCHANGE))
        return step

    def _blame(self, result: TestResult) -> None:
        if self._skipped:
            result.status = Status.SKIPPED
        if self._fault is not None and result.statusDetails is not None:
            result.statusDetails.message = marked(result.statusDetails.message, self._fault)
            result.labels.append(Label(name="fault", value=self._fault))

    def _label(self, item: pytest.Item, result: TestResult, attempts: Sequence[AttemptLine]) -> None:
        own = {label.name for label in result.labels} - {LabelType.TAG}
        names = dict.fromkeys((*reports.forms_of(item), *(attempt.slug for attempt in attempts)))
        forms = [form for name in names if (form := self._run.environment.targets.get(name))]
        known = {(label.name, label.value) for label in result.labels}
        for name, value in dict.fromkeys((*self._about(), *_of_forms(forms), *_of_attempts(attempts))):
            if name not in own and (name, value) not in known:  # what a test says of itself stands
                result.labels.append(Label(name=name, value=value))
        given = {parameter.name for parameter in result.parameters}
        shown = {"environment": self._run.environment.name, "release": attempts[0].release if attempts else None}
        result.parameters += [
            Parameter(name=name, value=value, excluded=True)
            for name, value in shown.items()
            if value is not None and name not in given
        ]

    def _about(self) -> Iterator[tuple[str, str]]:
        environment = self._run.environment
        yield "env", environment.name
        yield "provider", environment.account.provider
        yield "key_mode", str(environment.account.key_mode)

    def tell_run(self, verdict: Verdict) -> str | None:
        """Write what concerns the run as a whole; return why that was not possible."""
        account = self._run.environment.account
        try:
            write_environment(self._folder, about_run(verdict, account=account.name, provider=account.provider))
            write_categories(self._folder)
        except OSError as failure:
            return f"allure: {failure.filename} cannot be written: {failure.strerror}"
        hook = allure_commons.plugin_manager.hook
        if self._exits is not None and self._exits.written_verdict is not None:
            source, name = str(self._exits.written_verdict), "verdict.json"
            hook.global_attach_file(source=source, name=name, attachment_type="application/json", extension="json")
        if verdict.exit:
            hook.report_globals(globals_item=Globals(errors=[GlobalError(message=verdict.sentence, timestamp=now())]))
        return None


def register(run: CaptchaRun, exits: Exits | None) -> None:
    """Let pytest and Allure tell about this run; until the session ends."""
    hooks = AllureHooks(run, exits)
    run.config.pluginmanager.register(hooks, "captcha-qa-allure")
    manager = allure_commons.plugin_manager
    manager.register(hooks, "captcha-qa")
    if exits is not None:
        exits.listeners.append(hooks.tell_run)
    run.config.add_cleanup(lambda: manager.unregister(hooks))


def _of_forms(forms: Sequence[FormSpec]) -> Iterator[tuple[str, str]]:
    for form in forms:
        yield LabelType.FEATURE, form.slug
        yield "form", form.slug
        yield "captcha_type", str(form.type)
        if form.owner:
            yield "owner", form.owner
        yield from ((LabelType.TAG, tag) for tag in form.tags)
        yield from ((LabelType.SEVERITY, tag) for tag in form.tags if tag in _SEVERITIES)


def _of_attempts(attempts: Sequence[AttemptLine]) -> Iterator[tuple[str, str]]:
    for expect in dict.fromkeys(attempt.expect for attempt in attempts):
        yield LabelType.STORY, _STORIES[Expect(expect)]


def _probe_step(finding: Any) -> TestStepResult:
    status = Status.FAILED if finding.fails else Status.PASSED if finding.judged.safe else Status.SKIPPED
    moment = now()
    return TestStepResult(name=f"{finding.form}: {finding}", status=status, start=moment, stop=moment)


def _name_everywhere_alike(item: pytest.Item, result: TestResult) -> None:
    """Name a test of the built-in suite by its module and not by the folder in which a machine has installed it.

    Allure makes a test's history id of its full name: with the folder in it, another Python would begin a new history.
    """
    module = module_name(item.path)
    if module is None or result.fullName is None:
        return
    package, _, name = module.rpartition(".")
    result.fullName = f"{module}#{result.fullName.partition('#')[2]}"
    result.titlePath = module.split(".")
    result.testCaseId = md5(result.fullName)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    result.historyId = get_history_id(result.fullName, result.parameters, original_values=parameters)
    for label in result.labels:
        renamed = {LabelType.PARENT_SUITE: package, LabelType.SUITE: name, "package": module}
        label.value = renamed.get(label.name, label.value)
