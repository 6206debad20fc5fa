"""Tests that have the vendor answer as they say: in the demo, and with an account of a stand-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_captcha_qa.sandbox.server import SandboxAddresses

IN_DEMO = """\
def test_a_low_score_is_refused(captcha_form, captcha_standin):
    page = captcha_form("contact")
    token = captcha_standin.token(page, score=0.1)
    assert page.submit(token=token, expect="refuse")
    (call,) = (it for it in captcha_standin.calls() if it["vendor"] == "recaptcha")
    assert (call["accepted"], call["scripted"]) == (True, True)

def test_an_old_token_is_refused(captcha_form, captcha_standin):
    page = captcha_form("login")
    assert page.submit(token=captcha_standin.token(page, age=301), expect="refuse")
"""
WITH_ACCOUNT = """\
def test_good(captcha_attempt):
    assert captcha_attempt("login")

def test_scripted(captcha_token, captcha_form, captcha_standin):
    token = captcha_token("login")
    captcha_standin.script(token, code="internal-error")
    assert captcha_form("login").submit(token=token.reveal(), expect="refuse")
    assert [call["accepted"] for call in captcha_standin.calls()][-1:] == [False]
"""


def test_the_demo_answers_as_a_test_says(new_project: Callable[..., Any]) -> None:
    ran = new_project({"test_vendor.py": IN_DEMO}).run("--captcha-env=demo")
    assert (ran.code, ran.counts) == (0, "2 passed"), ran.output


def test_an_account_of_a_stand_in_is_scripted_and_told_of_at_the_end(
    staging: Callable[..., Any], plugin_sandbox: SandboxAddresses, prove: Callable[..., dict[str, str]]
) -> None:
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
