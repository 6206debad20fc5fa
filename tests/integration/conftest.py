"""What the plugin's tests share: a project folder in which pytest runs as a child, and a sandbox to run it against."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

_SECONDS = 150
_NOT_OURS = ("CAPTCHA_QA_", "CI", "GITHUB_", "GITLAB_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")

SETTINGS = """\
[accounts.local]
provider = "sandbox"
url_env = "PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = {origins}
base_url_env = "SITE_URL"
account = "local"
[forms.login]
path = "/turnstile"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""


@dataclass(frozen=True)
class Ran:
    """What one run of pytest left behind."""

    code: int
    output: str
    folder: Path
    verdict: dict[str, Any]

    @property
    def record_files(self) -> list[Path]:
        return sorted(self.folder.glob("reports/records/*/*.jsonl"))

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for path in self.record_files for line in path.read_text().splitlines()]
        return [line for line in lines if line["$type"] == kind]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self.of_type("attempt")

    @property
    def counts(self) -> str:
        """Return pytest's last line without its time, such as `1 failed, 2 passed`."""
        last = self.output.strip().splitlines()[-1]
        return last.strip("= ").split(" in ")[0]


@dataclass(frozen=True)
class Project:
    """A team's folder."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, files: dict[str, str]) -> Project:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def run(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        python: str = sys.executable,
        without: tuple[str, ...] = ("cacheprovider", "randomly", "asyncio"),
    ) -> Ran:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        cache = {"XDG_CACHE_HOME": str(self.folder / ".cache"), "COLUMNS": "120", "NO_COLOR": "1"}
        done = subprocess.run(
            [python, "-m", "pytest", *(f"-pno:{name}" for name in without), *arguments],
            cwd=self.folder,
            env=kept | cache | self.env | (env or {}),
            timeout=_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        verdict = self.folder / "reports" / "verdict.json"
        return Ran(
            done.returncode, done.stdout, self.folder, json.loads(verdict.read_text()) if verdict.exists() else {}
        )


@pytest.fixture(scope="session")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Project]:
    """`new_project(files, env=...)` makes a folder of its own that is a pytest root."""

    def new(files: dict[str, str] | None = None, *, env: dict[str, str] | None = None) -> Project:
        compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "compiled")}
        folder = tmp_path_factory.mktemp("project")
        return Project(folder, compiled | (env or {})).write({"pytest.ini": "[pytest]\n", **(files or {})})

    return new


@pytest.fixture(scope="session")
def plugin_sandbox() -> Iterator[SandboxAddresses]:
    """A sandbox, fifty times as fast as life."""
    with SandboxProcess() as process:
        yield process.start(time_scale=0.02, seed=11)


@pytest.fixture(scope="session")
def staging(new_project: Callable[..., Project], plugin_sandbox: SandboxAddresses) -> Callable[..., Project]:
    """`staging(files, settings="")` makes a project whose environment `staging` is the sandbox's site.

    `settings` are added to its captcha-qa.toml, `also` to its origins.
    """

    def new(files: dict[str, str], *, settings: str = "", also: tuple[str, ...] = ()) -> Project:
        addresses = {
            "PROVIDER_URL": plugin_sandbox.provider,
            "SITE_URL": plugin_sandbox.site,
            "VENDOR_URL": plugin_sandbox.vendor,
        }
        toml = SETTINGS.format(origins=json.dumps([plugin_sandbox.site, *also])) + settings
        return new_project({"captcha-qa.toml": toml, **files}, env=addresses)

    return new


@pytest.fixture
def requests_at_site(plugin_sandbox: SandboxAddresses) -> Callable[[], Any]:
    """`requests_at_site()` returns the sandbox's counts of what reached its site and its provider."""

    def count() -> Any:
        with urllib.request.urlopen(plugin_sandbox.audit, timeout=10) as reply:
            counts = json.load(reply)
        return {"site": counts["site"], "provider": counts["provider"]}

    return count
