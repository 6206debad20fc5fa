from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from history.team import Team, write_history
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.dashboard.data import collect
from pytest_captcha_qa.reporting.dashboard.model import Dashboard
from pytest_captcha_qa.reporting.dataset import open_dataset

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MakePage = Callable[..., Dashboard]


@pytest.fixture
def page_of(tmp_path: Path) -> MakePage:
    """Write the records of these teams and return what the page shows of them; keywords go to what is asked."""

    def make(*teams: Team, **asked: Any) -> Dashboard:
        folder = tmp_path / "records"
        folder.mkdir(exist_ok=True)
        for number, team in enumerate(teams):
            write_history(folder, team, seed=number + 1)
        with open_dataset([folder]) as dataset:
            return collect(dataset, Asked(page=tmp_path / "page.html", now=NOW, **asked))

    return make
