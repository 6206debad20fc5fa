"""What a baseline's name means, for gate, comparison and dashboard alike: a release goes before files of its name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import BaselineMissing, ConfigError

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.dataset import Dataset
    from pytest_captcha_qa.reporting.figures import Rows

PREVIOUS = "previous"
_SIGNS_OF_A_PATH = ("/", "\\", "*", "?", "[", ".jsonl", ".parquet")


def records_meant(reference: str | None, folder: Path, on_record: Callable[[], Collection[str]]) -> Path | None:
    """Return the record files that a baseline names, below `folder`; None where it is something else, or not given.

    `previous` is the release before, whatever else has that name; then a release that is on record is meant; then what
    lies there or is written like a path. `on_record` is only asked where it decides.
    """
    if reference is None or reference == PREVIOUS:
        return None
    path = folder / reference
    return path if _may_be_records(path, reference) and reference not in on_record() else None


def known_releases(dataset: Rows) -> set[str]:
    """Return the releases of all environments that are on record."""
    return {release for (release,) in dataset.rows("SELECT DISTINCT release FROM attempts") if release}


def open_baseline(reference: str, path: Path) -> Dataset:
    """Return the records of a baseline; close them.

    Raises:
        BaselineMissing: they cannot be read.
    """
    from pytest_captcha_qa.reporting.dataset import open_dataset

    try:
        return open_dataset([path])
    except ConfigError as error:
        raise BaselineMissing(f"the baseline {reference} cannot be read: {error.message}") from None


def _may_be_records(path: Path, reference: str) -> bool:
    try:
        there = path.exists()
    except OSError:
        # Too long for a name of a file, say.
        there = False
    return there or any(sign in reference for sign in _SIGNS_OF_A_PATH)
