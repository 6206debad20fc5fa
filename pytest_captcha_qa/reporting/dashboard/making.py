"""From record files to the page on disk, for pytest and `captcha-qa report` alike."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.writing import write_whole

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.dashboard.model import Dashboard

EXTRA = ("altair", "duckdb", "jinja2", "numpy", "scipy", "vl_convert")


def missing_extra() -> str | None:
    """Return in a sentence that the extra is not installed, None if it is; nothing is imported."""
    if all(find_spec(name) is not None for name in EXTRA):
        return None
    return "the dashboard needs the extra `dashboard`; install it with: pip install 'pytest-captcha-qa[dashboard]'"


@dataclass(frozen=True, slots=True)
class Made:
    """The page that was written: where, how large, and what it says first."""

    path: Path
    size: int
    page: Dashboard


def make_dashboard(sources: Sequence[Path], asked: Asked) -> Made:
    """Write the page about the records in files, folders and patterns to `asked.page`.

    Raises:
        ConfigError: the extra is missing, a file cannot be read, or what is asked for has no record.
        RecordError: the page cannot be made of these records, or not be written there.
    """
    import duckdb

    from pytest_captcha_qa.reporting.dashboard.data import choose, gathered
    from pytest_captcha_qa.reporting.dashboard.page import bundle, render
    from pytest_captcha_qa.reporting.dataset import open_dataset

    try:
        with open_dataset(sources) as dataset:
            about = choose(dataset, asked)
            # Vega's script takes a second to put together, and what does it leaves Python free meanwhile.
            with ThreadPoolExecutor(1) as beside:
                beside.submit(bundle)
                page = gathered(dataset, about, asked)
    except duckdb.Error as failure:
        raise RecordError(f"the dashboard cannot be made of these records ({type(failure).__name__})") from None
    text = render(page).encode("utf-8", "backslashreplace")
    write_whole(text, asked.page, what="the dashboard")
    return Made(asked.page, len(text), page)
