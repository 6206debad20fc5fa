from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.setup import RunSetup

SETTINGS = """\
{first}
[accounts.local]
provider = "{provider}"
url_env = "PROVIDER_URL"
[accounts.paid]
provider = "captchaai"
api_key_env = "PAID_KEY"
[env.staging]
kind = "staging"
origins = ["http://127.0.0.1:9"]
base_url = "http://127.0.0.1:9"
account = "local"
{more}
[forms.login]
path = "/login"
type = "turnstile"
success = {{ status = 303 }}
[forms.by_endpoint]
path = "/login"
type = "turnstile"
success = {{ status = 303 }}
verify = {{ via = "endpoint", url = "/check", success = {{ status = 200 }} }}
[forms.by_lookup]
path = "/login"
type = "turnstile"
success = {{ status = 303 }}
verify = {{ via = "lookup", url = "/seen", success = {{ status = 200 }} }}
[forms.by_vendor]
path = "/login"
type = "turnstile"
success = {{ status = 303 }}
verify = {{ via = "siteverify", secret_env = "VENDOR_SECRET", url_env = "VENDOR_URL" }}
"""

VARIABLES = {
    "PROVIDER_URL": "http://127.0.0.1:9",
    "VENDOR_URL": "http://127.0.0.1:9",
    "VENDOR_SECRET": "a-secret-of-the-vendor",
    "PAID_KEY": "0123456789abcdef0123456789abcdef",
}


_NUMBERS = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """`module(text)` writes a module of the team and returns its name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    made: list[str] = []

    def write(text: str) -> str:
        made.append(f"flows_{next(_NUMBERS)}")
        (tmp_path / f"{made[-1]}.py").write_text(text)
        return made[-1]

    yield write
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., EnvironmentConfig]:
    """`environment(more="", provider="sandbox", first="")` reads an environment whose addresses nobody serves."""

    def read(more: str = "", *, provider: str = "sandbox", first: str = "", **options: object) -> EnvironmentConfig:
        (tmp_path / "captcha-qa.toml").write_text(SETTINGS.format(more=more, provider=provider, first=first))
        said = {f"captcha_{name}": value for name, value in options.items()}
        settings = load(tmp_path, tmp_path, options={"captcha_env": "staging", **said}, ini={}, environ=VARIABLES)
        return settings.environment()

    return read


@pytest.fixture
def setup(tmp_path: Path) -> RunSetup:
    return RunSetup(
        "run-1", "session-1", "boundary", records=tmp_path / "records", store=tmp_path / "state.sqlite", budget=5
    )


@pytest.fixture
def engine(environment: Callable[..., EnvironmentConfig], setup: RunSetup) -> Iterator[Callable[..., Engine]]:
    """`engine(environment, **setup)` builds an engine and closes it when the test ends."""
    with ExitStack() as built:

        def build(given: EnvironmentConfig | None = None, **changes: Any) -> Engine:
            made = Engine(given or environment(), replace(setup, **changes))
            built.callback(made.close, complete=True)
            return made

        yield build
