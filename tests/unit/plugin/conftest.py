"""What the plugin's unit tests share: real items and reports of a real session, collected in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


class Collected:
    """A plugin that keeps the items of a session."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.metafuncs: dict[str, pytest.Metafunc] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        self.metafuncs[metafunc.definition.name] = metafunc

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


@pytest.fixture
def collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Collected]:
    """`collect(source)` returns what pytest makes of a test file."""

    def collected(source: str, *arguments: str) -> Collected:
        monkeypatch.delenv("CAPTCHA_QA_ENV", raising=False)
        path = tmp_path / f"test_{tmp_path.name}.py"
        path.write_text(source)
        found = Collected()
        options = [
            "--co",
            "-qq",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:asyncio",
            "-c",
            "/dev/null",
            "--import-mode=importlib",
        ]
        assert pytest.main([*options, "--rootdir", str(tmp_path), str(path), *arguments], plugins=[found]) == 0
        return found

    return collected
