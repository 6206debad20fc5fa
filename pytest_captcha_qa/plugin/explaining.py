"""What the report of a captcha test says besides pass or fail: why each attempt failed, and properties for JUnit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.attempt import Outcome
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.plugin.reports import ATTRIBUTE, CASE
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.records.failures import EXCHANGE, kept_of
from pytest_captcha_qa.records.jsonl import file_stem, safe_name
from pytest_captcha_qa.records.reading import read
from pytest_captcha_qa.reporting.codes import exit_code_of, rank
from pytest_captcha_qa.reporting.explain import Failure, explained, last_passes
from pytest_captcha_qa.reporting.verdict_file import relative

SECTION = "captcha"
ATTACHMENTS = "attachments"
MOST_TEXTS = 3
MOST_FILES = 20
_PREFIX = "captcha."


class Explainer:
    """Lives in each process that runs tests."""

    def __init__(self, run: CaptchaRun) -> None:
        self._run = run
        self._told: set[str] = set()

    def note_properties(self, item: pytest.Item) -> None:
        """Put form, outcome, fault, task id and evidence among the properties of the test; none of them is secret."""
        case = item.stash.get(CASE, None)
        if case is None or not case.recorded:
            return
        others = [(name, value) for name, value in item.user_properties if not name.startswith(_PREFIX)]
        item.user_properties[:] = [*others, *self._properties(case.recorded).items()]

    def explain(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Add to the report of a failed test why each of its attempts failed; what was told is not told again.

        So it does of attempts that no single test has made, such as a login that tests share: the first one that fails
        after them tells.
        """
        if not report.failed:
            return
        case = item.stash.get(CASE, None)
        shared = [(replace(line, nodeid=item.nodeid), outcome) for line, outcome in self._run.shared.failed]
        made = [*shared, *(case.failed if case is not None else ())]
        new = [failed for failed in made if failed[0].id not in self._told]
        self._told.update(line.id for line, _ in new)
        if not new:
            return
        _add_section(report, self._text(new))
        folders = [self._evidence(line) for line, _ in new]
        carried: dict[str, object] = getattr(report, ATTRIBUTE)
        carried[ATTACHMENTS] = [self._relative(folder / EXCHANGE) for folder in folders if folder is not None]

    def _properties(self, recorded: Sequence[AttemptLine]) -> dict[str, str]:
        telling = min(recorded, key=lambda line: rank(exit_code_of(line)))
        evidence = self._evidence(telling)
        found = {
            "form": ",".join(dict.fromkeys(line.slug for line in recorded)),
            "outcome": telling.outcome,
            "fault": telling.fault,
            "task_id": telling.task_id,
            "evidence": self._relative(evidence) if evidence is not None else None,
        }
        return {_PREFIX + name: str(value) for name, value in found.items() if value is not None}

    def _text(self, failed: Sequence[tuple[AttemptLine, Outcome]]) -> str:
        texts = ["\n".join(explained(self._failure(*one), self._root)) for one in failed[:MOST_TEXTS]]
        if len(failed) > MOST_TEXTS:
            texts.append(f"... and {len(failed) - MOST_TEXTS} more failed attempts of this test, see the records")
        return "\n\n".join(texts)

    def _failure(self, line: AttemptLine, outcome: Outcome) -> Failure:
        return Failure(
            attempt=line,
            owner=self._owners.get(line.slug),
            tokens_tried=outcome.tokens_tried,
            control=outcome.control,
            evidence=self._evidence(line),
            last_pass=self._last_passes.get(line.slug),
        )

    def _evidence(self, line: AttemptLine) -> Path | None:
        return kept_of(self._run.engine.record_path, line.id)

    def _relative(self, path: Path) -> str:
        return relative(path, self._root)

    @property
    def _root(self) -> Path:
        return self._run.config.rootpath

    @cached_property
    def _owners(self) -> Mapping[str, str | None]:
        return {form.slug: form.owner for form in self._run.environment.forms.values()}

    @cached_property
    def _last_passes(self) -> Mapping[str, AttemptLine]:
        """The last good attempt of each form in earlier runs on the environment; only the newest files are read."""
        run_id, env = self._run.identity.run_id, self._run.environment.name
        folder = self._run.settings.run.records / safe_name(env)
        with suppress(OSError, ConfigError):
            earlier = [path for path in folder.glob("*.jsonl") if not path.name.startswith(file_stem(run_id))]
            newest = sorted(earlier, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST_FILES]
            return last_passes(read(newest), env, but=run_id)
        return {}


def _add_section(report: pytest.TestReport, text: str) -> None:
    """Put a text below the traceback, where terminal, JUnit and HTML show it whatever they capture."""
    add = getattr(report.longrepr, "addsection", None)
    if add is not None:
        add(SECTION, text)
    else:
        report.sections.append((SECTION, text))
