"""Where the evidence of a run's failed attempts is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.failures import kept_of
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.codes import fault_of

MOST_PER_FORM = 5


def evidence_by_form(run: Run, attempts: Iterable[AttemptLine]) -> dict[str, tuple[Path, ...]]:
    """Return the folders with the evidence of each form's first failed attempts; `attempts` are those of the run."""
    folders = evidence_by_attempt(run)
    found: dict[str, list[Path]] = {}
    for attempt in attempts:
        if fault_of(attempt) is not None and attempt.id in folders:
            found.setdefault(attempt.slug, []).append(folders[attempt.id])
    return {slug: tuple(kept[:MOST_PER_FORM]) for slug, kept in found.items()}


def evidence_by_attempt(run: Run) -> dict[str, Path]:
    """Return the folder with the evidence of each failed attempt, by its id."""
    recorded = ((file.path, attempt) for file in run.files for attempt in file.attempts)
    folders = {attempt.id: kept_of(path, attempt.id) for path, attempt in recorded if fault_of(attempt) is not None}
    return {id: folder for id, folder in folders.items() if folder is not None}
