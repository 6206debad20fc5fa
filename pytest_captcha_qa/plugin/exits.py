"""Collects what test reports say and gives pytest the exit code that `reporting` decides on."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import timestamp
from pytest_captcha_qa.plugin import reports
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.records.jsonl import file_stem, safe_name
from pytest_captcha_qa.records.reading import Run, read
from pytest_captcha_qa.reporting.verdict import Cause, Session, Verdict, decide
from pytest_captcha_qa.reporting.verdict_file import write_verdict


class Exits:
    """Lives in the process that decides; sees every report, also those of xdist workers."""

    def __init__(self, run: CaptchaRun) -> None:
        self._run = run
        self._causes: list[Cause] = []
        self._tests: set[str] = set()
        self._skipped: set[str] = set()
        self._excused: set[str] = set()
        self._expected_files: set[str] = set()
        self._forms: dict[str, None] = {}
        self._began = time.time()
        self.verdict: Verdict | None = None

    def see(self, report: pytest.TestReport) -> None:
        """Take one report into account."""
        if reports.is_captcha_report(report):
            self._tests.add(report.nodeid)
            self._forms.update(dict.fromkeys(reports.forms_in(report)))
            if report.skipped:
                self._skipped.add(report.nodeid)
        if hasattr(report, "wasxfail"):
            self._excused.add(report.nodeid)
        cause = reports.cause_of(report)
        if cause is not None:
            self._causes.append(cause)

    def expect_records(self, name: str) -> None:
        """Note a record file that must be there in the end."""
        self._expected_files.add(name)

    @property
    def concerned(self) -> bool:
        """Whether any captcha test was to run or anything was recorded; --setup-only and --setup-plan run no test."""
        if self._run.config.option.setuponly:
            return False
        return bool(self._tests) or self._run.started

    @property
    def skipped(self) -> int:
        """How many captcha tests were skipped."""
        return len(self._skipped)

    def decide(self, session: pytest.Session) -> int:
        """Return the exit code of the run; the verdict is kept for the summary and written to verdict.json."""
        pytest_exit = int(session.exitstatus)
        self.verdict = self._decided(session, pytest_exit)
        try:
            write_verdict(self.verdict, self.verdict_path, self._run.config.rootpath)
        except RecordError as error:
            self._causes.append(Cause(error.exit_code, error.message))
            self.verdict = self._decided(session, pytest_exit)
        return self.verdict.exit

    def _decided(self, session: pytest.Session, pytest_exit: int) -> Verdict:
        account, records = self._run.environment.account, self._records()
        return decide(
            Session(
                pytest_exit=pytest_exit,
                causes=[*self._causes, *self._vanished(records)],
                selected_forms=list(self._forms),
                captcha_tests=len(self._tests),
                environment=self._run.environment.name,
                mode=self._run.settings.run.exit_codes.value,
                stopped_by_failures=bool(session.shouldfail),
                tests_failed=session.testsfailed,
                excused=self._excused,
                prices={account.name: account.price_per_1000} if account.price_per_1000 is not None else {},
            ),
            records,
        )

    def _vanished(self, records: Run | None) -> list[Cause]:
        found = {file.path.name for file in records.files} if records is not None else set()
        gone = sorted(self._expected_files - found)
        return [Cause(12, f"the record file {name} has vanished during the run") for name in gone]

    @property
    def verdict_path(self) -> Path:
        """Where verdict.json goes: beside the folder of the records."""
        return self._run.settings.run.records.parent / "verdict.json"

    def forget_earlier_verdict(self) -> None:
        """Remove the verdict of an earlier run; where it cannot be removed, writing the new one will say why."""
        with suppress(OSError):
            self.verdict_path.unlink(missing_ok=True)

    def _records(self) -> Run | None:
        """Return what this run has recorded, over all its workers; a CI retry may have used its name before."""
        run_id = self._run.identity.run_id
        folder = self._run.settings.run.records / safe_name(self._run.environment.name)
        files = sorted(folder.glob(f"{file_stem(run_id)}*.jsonl"))
        found = [run for run in read(files, since=timestamp(self._began)) if run.run_id == run_id]
        return found[0] if found else None
