"""What the plugin's tests share: a project folder in which pytest runs as a child, and a sandbox to run it against."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.ownership import ProofKey
from pytest_captcha_qa.ownership.proof import ProofTerms, render
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from pytest_captcha_qa.scope import OriginPattern, Probes

PROOF_KEY = "0123456789abcdef0123456789abcdef"
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
class Project:
    """A team's folder; `run(*arguments)` runs pytest in it."""

    folder: Path
    child: Callable[..., Any]
    writer: Callable[[Path, Mapping[str, str]], None]
    env: Mapping[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> Project:
        self.writer(self.folder, files)
        return self

    def run(self, *arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> Any:
        return self.child(self.folder, *arguments, env={**self.env, **(env or {})}, **options)


@pytest.fixture(scope="session")
def new_project(
    tmp_path_factory: pytest.TempPathFactory,
    run_child: Callable[..., Any],
    write_files: Callable[[Path, Mapping[str, str]], None],
) -> Callable[..., Project]:
    """`new_project(files, env=...)` makes a folder of its own that is a pytest root."""

    def new(files: dict[str, str] | None = None, *, env: dict[str, str] | None = None) -> Project:
        compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "compiled")}
        folder = tmp_path_factory.mktemp("project")
        project = Project(folder, run_child, write_files, compiled | (env or {}))
        return project.write({"pytest.ini": "[pytest]\n", **(files or {})})

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
def requests_at_site(plugin_sandbox: SandboxAddresses, ask: Callable[..., Any]) -> Callable[[], Any]:
    """`requests_at_site()` returns the sandbox's counts of what reached its site and its provider."""

    def count() -> Any:
        counts = ask(plugin_sandbox.audit)
        return {"site": counts["site"], "provider": counts["provider"]}

    return count


@pytest.fixture
def prove(plugin_sandbox: SandboxAddresses) -> Iterator[Callable[..., dict[str, str]]]:
    """`prove(kind)` has the sandbox's site serve a proof until the test ends; it returns the variable with its key."""

    def serve(text: str) -> None:
        body = json.dumps({"proofs": {ProofKey(PROOF_KEY).id: text}}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{plugin_sandbox.audit}/control", body), timeout=10).close()

    def prove(kind: EnvKind = EnvKind.STAGING) -> dict[str, str]:
        origins = (OriginPattern.parse(plugin_sandbox.site),)
        terms = ProofTerms(origins, kind, time.time() + 86400, probes=Probes.ALL)
        serve(render(terms, ProofKey(PROOF_KEY)))
        return {"CAPTCHA_QA_PROOF_KEY": PROOF_KEY}

    yield prove
    serve("none")
