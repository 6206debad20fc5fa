from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.config.sources import load

Loader = Callable[..., Settings]

FIXTURES = Path(__file__).parents[3] / "fixtures" / "environments"


@pytest.fixture
def load_text(tmp_path: Path) -> Loader:
    """Return a loader of a configuration text, as if it stood in captcha-qa.toml at the root."""

    def loader(
        text: str,
        *,
        options: Mapping[str, object] | None = None,
        ini: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        dotenv: str | None = None,
    ) -> Settings:
        (tmp_path / "captcha-qa.toml").write_text(text, "utf-8")
        if dotenv is not None:
            (tmp_path / ".env").write_text(dotenv, "utf-8")
        return load(tmp_path, tmp_path, options=options or {}, ini=ini or {}, environ=environ or {})

    return loader


@pytest.fixture
def full() -> str:
    """Return the sample with every key."""
    return (FIXTURES / "full.toml").read_text("utf-8")


@pytest.fixture
def small() -> str:
    """Return the smallest useful configuration: one account, one environment, one form."""
    return (FIXTURES / "small.toml").read_text("utf-8")
