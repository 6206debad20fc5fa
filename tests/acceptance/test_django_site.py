"""The harness against a site whose framework the project did not write, with ten lines of configuration."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

CONFIG = """\
accounts.local = {{ provider = "sandbox", url_env = "SANDBOX_PROVIDER_URL", time_scale = 0.02 }}
[env.staging]
kind = "staging"
origins = ["http://127.0.0.1:{port}"]
account = "local"
[forms.signup]
path = "/signup/"
type = "recaptcha_v2"
fields = {{ email = "{{identity.email}}", full_name = "{{identity.name}}" }}
success = {{ status = 302, location = "/welcome/" }}
"""


@pytest.fixture(scope="module")
def django_port(sandbox: SandboxAddresses) -> Iterator[int]:
    siteverify = f"{sandbox.vendor}/recaptcha/api/siteverify"
    script = Path(__file__).parent / "django_site" / "site_app.py"
    command = [sys.executable, "-W", "ignore", str(script), "0", siteverify]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as site:
        assert site.stdout is not None
        yield int(site.stdout.readline())
        site.terminate()


def test_a_django_site_is_tested_with_ten_lines_of_configuration(
    run_pytest: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses, django_port: int
) -> None:
    config = CONFIG.format(port=django_port)
    assert len(config.splitlines()) == 10

    run = run_pytest(
        "--captcha-env=staging", "--pyargs", "pytest_captcha_qa.suites", "-v",
        files={"captcha-qa.toml": config}, env={"SANDBOX_PROVIDER_URL": sandbox.provider},
    )  # fmt: skip

    assert run.code == 0, run.output
    assert run.verdict["forms"]["signup"]["verdict"] == "ok"
    assert [a["outcome"] for a in run.attempts] == ["ok"] * 6
    accepted = [a for a in run.attempts if a["expect"] == "accept"]
    assert [a["http_status"] for a in accepted] == [302, 302]
    site = ask(f"http://127.0.0.1:{django_port}/audit/")
    assert len(site["created"]) == len(set(site["created"])) == 2
    assert site["subscribed"] == []
    assert "measured 1/1" in run.output


def test_a_site_that_stops_checking_is_found(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, django_port: int
) -> None:
    """The same site, but what counts as a success is so wide that a refusal meets it too."""
    config = CONFIG.format(port=django_port).replace('status = 302, location = "/welcome/"', "status = [200, 302]")
    run = run_pytest(
        "--captcha-env=staging", "--pyargs", "pytest_captcha_qa.suites", "-k", "missing",
        files={"captcha-qa.toml": config}, env={"SANDBOX_PROVIDER_URL": sandbox.provider},
    )  # fmt: skip

    assert run.code == 1, run.output
    assert run.verdict["forms"]["signup"] | {"fault": "product"} == run.verdict["forms"]["signup"]
    assert "the site accepted (200) the form with no token, which it must refuse" in run.output
