"""A Redis that dies under a run: the run goes on, or ends, as it was told; counted at the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

CONFIG = """\
accounts.local = {{ provider = "sandbox", url_env = "SANDBOX_PROVIDER_URL", time_scale = 0.02 }}
[env.staging]
kind = "staging"
origins = ["{origin}"]
account = "local"
store_env = "STORE"
on_store_loss = "{on_loss}"
[forms.login]
path = "/turnstile"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""
TESTS = """\
import json, os, signal, subprocess, time

def test_with_it(captcha_form):
    assert captcha_form("login").submit()

def test_without_it(captcha_form, captcha_token):
    page, token = captcha_form("login"), captcha_token("login")
    os.kill(int(os.environ["REDIS_PID"]), signal.SIGKILL)
    assert page.submit(token=token)
    assert captcha_form("login").submit()

def test_with_it_again(captcha_form):
    subprocess.Popen(json.loads(os.environ["REDIS"]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2.5)
    assert captcha_form("login").submit()
"""
ASKED = """\
def test_it(captcha_form):
    assert captcha_form("login").submit()
"""


@pytest.fixture
def run_on(run_pytest: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses) -> Callable[..., Any]:
    """`run_on(server, tests, on_loss)` runs tests of the sandbox's login with their state on a Redis."""

    def run(server: Any, tests: str, on_loss: str) -> Any:
        ask(f"{sandbox.audit}/reset", {})
        files = {"captcha-qa.toml": CONFIG.format(origin=sandbox.site, on_loss=on_loss), "test_it.py": tests}
        env = {"SANDBOX_PROVIDER_URL": sandbox.provider, "STORE": server.url}
        env |= {"REDIS_PID": str(server.process.pid), "REDIS": json.dumps(server.command)}
        return run_pytest("--captcha-env=staging", "--captcha-budget=20", files=files, env=env)

    return run


def test_a_run_goes_on_without_its_store_and_finds_it_again(
    run_on: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses, own_redis: Any
) -> None:
    try:
        run = run_on(own_redis, TESTS, "continue")
    finally:
        own_redis.shut_down()

    assert run.code == 0, run.output
    events = [line["name"] for line in run.of_type("event") if line["name"].startswith(("store", "submitted"))]
    # The token in hand may be in the store still, so it is not sent: two submits alone, for two posts.
    assert events == ["store_degraded", "submitted_alone", "submitted_alone", "store_back"]
    assert "the state store was out of reach" in run.output
    audit = ask(sandbox.audit)
    assert audit["provider"]["submits"] == 5
    assert list(audit["site"]["posts_by_token"].values()) == [1, 1, 1, 1]


def test_a_run_that_is_to_stop_says_so_and_sends_nothing(
    run_on: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses, own_redis: Any
) -> None:
    own_redis.kill()
    run = run_on(own_redis, ASKED, "stop")
    assert run.code == 12, run.output
    assert f"the shared store unix://{own_redis.socket} cannot be reached; check that it runs" in run.output
    assert ask(sandbox.audit)["provider"]["submits"] == 0
