"""What acceptance tests share: a sandbox, and a team's folder in which pytest runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

# A team has few plugins; which of them get along is the matter of tests/integration.
FEW_PLUGINS = ("-ppytest_captcha_qa.plugin", "-pxdist", "-ppytest_rerunfailures", "-ppytest_timeout")
ONE_FORM = """\
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = ["{site}"]
account = "local"
[forms.login]
path = "/{path}"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    """A sandbox of this module's own, fifty times as fast as life."""
    process = SandboxProcess()
    try:
        yield process.start(time_scale=0.02, seed=7)
    finally:
        process.stop()


@pytest.fixture(scope="session")
def one_form() -> Callable[..., str]:
    """`one_form(site, path="turnstile")` returns a captcha-qa.toml whose one form, `login`, stands at that path."""

    def settings(site: str, path: str = "turnstile") -> str:
        return ONE_FORM.format(site=site, path=path)

    return settings


@pytest.fixture
def run_pytest(
    tmp_path: Path, run_child: Callable[..., Any], write_files: Callable[[Path, Mapping[str, str]], None]
) -> Callable[..., Any]:
    """`run_pytest(*arguments, files=..., env=...)` runs pytest in a folder of the test's own."""

    def run(*arguments: str, files: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> Any:
        write_files(tmp_path, files or {})
        if not (tmp_path / "pytest.ini").exists():
            (tmp_path / "pytest.ini").write_text("[pytest]\n")
        few = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(env or {})}
        return run_child(tmp_path, *FEW_PLUGINS, *arguments, env=few, without=("cacheprovider",))

    return run
