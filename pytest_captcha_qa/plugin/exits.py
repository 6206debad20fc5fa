"""Collects what test reports say and gives pytest the exit code that `reporting` decides on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import timestamp
from pytest_captcha_qa.plugin import dashboard, gate, reports
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.records.jsonl import file_stem, safe_name
from pytest_captcha_qa.records.reading import Run, read
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.sarif import write_sarif
from pytest_captcha_qa.reporting.shown import SummaryLine
from pytest_captcha_qa.reporting.verdict import Verdict, decide
from pytest_captcha_qa.reporting.verdict_file import relative, write_verdict


def verdict_beside(records: Path, shard: str | None) -> Path:
    """Return where the verdict of a run goes whose records go to this folder."""
    return records.parent / f"{file_stem('verdict', shard)}.json"


def findings_beside(verdict: Path) -> Path:
    """Return where the findings of probes go of a run with this verdict: `conformance.sarif`, `conformance-1.sarif`."""
    return verdict.with_name(f"{verdict.stem.replace('verdict', 'conformance', 1)}.sarif")


def forget_earlier(verdict: Path, *, findings: bool = False) -> None:
    """Remove the verdict of an earlier run; where it cannot be removed, writing the new one will say why.

    `findings`: those of its probes, too, so that a run that is killed leaves none that look like its own.
    """
    for path in (verdict, *([findings_beside(verdict)] if findings else [])):
        with suppress(OSError):
            path.unlink(missing_ok=True)


class Exits:
    """Lives in the process that decides; sees every report, also those of xdist workers."""

    def __init__(self, run: CaptchaRun) -> None:
        self._run = run
        self._causes: list[Cause] = []
        self._tests: set[str] = set()
        self._skipped: set[str] = set()
        self._excused: set[str] = set()
        self._reran: set[str] = set()
        self._passed: set[str] = set()
        self._failed_parts: set[str] = set()
        self._expected_files: set[str] = set()
        self._forms: dict[str, None] = {}
        self._budget: int | None = None
        self._left: list[object] = []
        self._uncollected = False
        self._unwritten = False
        self._deselected = 0
        self._gate: GateAnswer | None = None
        self._selected = 0
        self.ended_by_user = self.broke = False
        self._began = time.time()
        self.verdict: Verdict | None = None
        self.listeners: list[Callable[[Verdict], str | None]] = []
        self.said: list[str] = []
        self.dashboard: SummaryLine | None = None

    def see(self, report: pytest.TestReport) -> None:
        """Take one report into account."""
        if reports.is_captcha_report(report):
            self._tests.add(report.nodeid)
            self._forms.update(dict.fromkeys(reports.forms_in(report)))
            if report.skipped:
                self._skipped.add(report.nodeid)
        if hasattr(report, "wasxfail"):
            self._excused.add(report.nodeid)
        if reports.is_a_try(report):
            self._reran.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        cause = None if reports.worker_of_crash(report) in self._left else reports.cause_of(report)
        if cause is not None:
            self._causes.append(self._not_told_twice(cause, report))

    def _not_told_twice(self, cause: Cause, report: pytest.TestReport) -> Cause:
        """Return the cause; a test that failed only because parts of it did has no reason besides theirs."""
        if reports.is_part(report):
            self._failed_parts.add(report.nodeid)
            return cause
        only_parts = report.nodeid in self._failed_parts and not reports.says_why(report)
        return replace(cause, code=0) if only_parts else cause

    def see_collection(self, report: pytest.CollectReport) -> None:
        """Take one module or folder into account: it counts if it cannot be collected."""
        cause = reports.cause_of_collection(report)
        if cause is not None:
            self._causes.append(cause)
            self._uncollected = True

    def note_left(self, worker: object) -> None:
        """Note that a worker ended as by Ctrl-C: its test did not fail, though xdist will say that it crashed."""
        self.ended_by_user = True
        self._left.append(worker)

    def expect_tests(self, selected: int) -> None:
        """Note how many captcha tests are about to run in this process: none of them need ever report anything."""
        self._selected = selected

    def note_deselected(self, count: int) -> None:
        """Note how many captcha tests were left out of the run, so that its gate says nothing about the whole."""
        self._deselected = max(self._deselected, count)

    def expect_records(self, name: str, *, budget: int) -> None:
        """Note a record file that must be there in the end, and how many submits its writer knew as the run's most."""
        self._expected_files.add(name)
        self._budget = budget

    @property
    def concerned(self) -> bool:
        """Whether any captcha test was to run, or may hide in what could not be collected or broke, or was recorded.

        --collect-only, --setup-only and --setup-plan run no test.
        """
        option = self._run.config.option
        if option.setuponly or option.collectonly:
            return False
        return bool(self._tests or self._selected) or self._run.started or self._uncollected or self.broke

    @property
    def skipped(self) -> int:
        """How many captcha tests were skipped."""
        return len(self._skipped)

    @property
    def _flaky(self) -> set[str]:
        """The captcha tests that failed, were run again and passed."""
        return (self._tests & self._reran & self._passed) - {cause.nodeid for cause in self._causes}

    def decide(self, session: pytest.Session) -> int:
        """Return the exit code of the run; the verdict is kept for the summary and written to verdict.json.

        Then it is told to whoever listens; what they have to say is `said`, for the summary.
        """
        pytest_exit = int(session.exitstatus)
        since = datetime.fromtimestamp(int(self._began), UTC)
        self._gate = gate.answer(self._run, list(self._forms), since=since, deselected=self._deselected)
        self.verdict = self._decided(session, pytest_exit)
        try:
            write_verdict(self.verdict, self.verdict_path, self._run.config.rootpath)
            if self.verdict.probes:
                write_sarif(self.verdict.probes, findings_beside(self.verdict_path), self._anchor)
        except RecordError as error:
            self._unwritten = True
            self._causes.append(Cause(error.exit_code, error.message))
            self.verdict = self._decided(session, pytest_exit)
        self.said = [said for tell in self.listeners if (said := tell(self.verdict))]
        self.dashboard = dashboard.write(self._run, self._gate)
        return self.verdict.exit

    @property
    def _anchor(self) -> str:
        """The file that findings point at: the one that configures the forms."""
        file = self._run.settings.file
        return relative(file, self._run.config.rootpath) if file is not None else "captcha-qa.toml"

    def _decided(self, session: pytest.Session, pytest_exit: int) -> Verdict:
        account, records = self._run.environment.account, self._records()
        return decide(
            Session(
                pytest_exit=pytest_exit,
                causes=[*self._causes, *self._vanished(records)],
                selected_forms=list(self._forms),
                captcha_tests=max(len(self._tests), self._selected),
                environment=self._run.environment.name,
                mode=self._run.settings.run.exit_codes.value,
                stopped_by_failures=bool(session.shouldfail) and not self.ended_by_user,
                tests_failed=session.testsfailed,
                excused=self._excused,
                flaky=self._flaky,
                prices={account.name: account.price_per_1000} if account.price_per_1000 is not None else {},
                waivers=self._run.environment.waivers,
                day=datetime.fromtimestamp(self._began, UTC).date(),
                budget=self._run.settings.run.budget or self._budget,
                budget_given=self._run.settings.run.budget is not None,
                owners={form.slug: form.owner for form in self._run.environment.forms.values()},
                gate=self._gate,
            ),
            records,
        )

    def _vanished(self, records: Run | None) -> list[Cause]:
        found = {file.path.name for file in records.files} if records is not None else set()
        gone = sorted(self._expected_files - found)
        return [Cause(12, f"the record file {name} has vanished during the run") for name in gone]

    @property
    def written_verdict(self) -> Path | None:
        """Where the verdict of this run stands, None if it could not be written."""
        return None if self._unwritten else self.verdict_path

    @property
    def verdict_path(self) -> Path:
        """Where the verdict goes: beside the folder of the records; that of a shard has its name in it."""
        return verdict_beside(self._run.settings.run.records, self._run.identity.shard)

    def _records(self) -> Run | None:
        """Return what this shard of this run has recorded, over all its workers.

        Its other shards may write to the same folder, and a CI retry may have used its name before.
        """
        run_id, shard = self._run.identity.run_id, self._run.identity.shard
        folder = self._run.settings.run.records / safe_name(self._run.environment.name)
        paths = sorted(folder.glob(f"{file_stem(run_id, shard)}*.jsonl"))
        runs = read(paths, since=timestamp(self._began))
        files = tuple(file for run in runs for file in run.files if file.is_of(run_id, shard))
        return Run(run_id, files) if files else None
