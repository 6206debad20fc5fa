"""Tests that have the vendor answer as they say, with an account of a stand-in; test_suites.py does it in the demo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_captcha_qa.sandbox.server import SandboxAddresses

WITH_ACCOUNT = """\
def test_good(captcha_attempt):
    assert captcha_attempt("login")

def test_scripted(captcha_token, captcha_form, captcha_standin):
    token = captcha_token("login")
    captcha_standin.script(token, code="internal-error")
    assert captcha_form("login").submit(token=token.reveal(), expect="refuse")
    assert [call["accepted"] for call in captcha_standin.calls()][-1:] == [False]
"""


def test_an_account_of_a_stand_in_is_scripted_and_told_of_at_the_end(
    staging: Callable[..., Any],
    plugin_sandbox: SandboxAddresses,
    prove: Callable[..., dict[str, str]],
    ask: Callable[..., Any],
) -> None:
    before = ask(f"{plugin_sandbox.vendor}/standin")["sessions"]
    project = staging({"test_vendor.py": WITH_ACCOUNT})
    path = project.folder / "captcha-qa.toml"
    text = path.read_text().replace('"sandbox"', '"standin"').replace("time_scale = 0.02\n", "")
    path.write_text(text)
    ran = project.run("--captcha-env=staging", env={"PROVIDER_URL": plugin_sandbox.vendor, **prove()})
    assert (ran.code, ran.counts) == (0, "2 passed"), ran.output
    assert {(it["provider"], it["key_mode"]) for it in ran.attempts} == {("standin", "standin")}
    assert "A BACKEND ASKS THE STAND-IN: point it back" in ran.output
    [event] = [it for it in ran.of_type("event") if it["name"] == "standin_in_use"]
    assert event["data"]["calls"] >= 2
    assert ask(f"{plugin_sandbox.vendor}/standin")["sessions"].keys() <= before.keys()
