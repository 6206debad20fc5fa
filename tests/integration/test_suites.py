"""The built-in suites, run in this repository as its reader does."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.captcha import CaptchaType

ROOT = Path(__file__).parents[2]
VENDOR = Path(__file__).parent / "programs" / "vendor_in_demo.py"
FORMS = {
    "signup": "recaptcha_v2",
    "feedback": "recaptcha_v2_invisible",
    "contact": "recaptcha_v3",
    "transfer": "recaptcha_enterprise",
    "login": "turnstile",
    "review": "hcaptcha",
    "order": "geetest_v3",
    "booking": "geetest_v4",
    "support": "friendly_v2",
    "comment": "altcha",
    "guestbook": "image",
}


def test_the_demo_has_a_form_and_a_suite_for_every_type() -> None:
    modules = {path.stem.removeprefix("test_") for path in (ROOT / "suites").glob("test_*.py")}
    assert set(FORMS.values()) == modules == set(map(str, CaptchaType))


@pytest.fixture(scope="module")
def demo(new_project: Callable[..., Any]) -> Any:
    """The suites against the demo site, and beside them tests that script its vendor."""
    project = new_project({"test_vendor.py": VENDOR.read_text()})
    return project.run("--captcha-env=demo", "--pyargs", "pytest_captcha_qa.suites", "test_vendor.py", "-v")


def test_every_form_of_the_demo_passes(demo: Any) -> None:
    assert demo.code == demo.verdict["exit"] == 0, demo.output
    assert {slug: form["verdict"] for slug, form in demo.verdict["forms"].items()} == dict.fromkeys(FORMS, "ok")


@pytest.mark.parametrize(("form", "type"), FORMS.items())
def test_each_form_is_seen_to_accept_and_to_refuse(demo: Any, form: str, type: str) -> None:
    attempts = [a for a in demo.attempts if a["slug"] == form and "test_vendor" not in a["nodeid"]]
    expected = [(a["expect"], a["verify_status"]) for a in attempts]
    assert {a["type"] for a in attempts} == {type}
    assert expected.count(("accept", "pass")) == 2
    assert expected.count(("refuse", "fail")) == 4
    assert sum(a["submits"] for a in attempts) == 2, "garbage and replays cost nothing"


def test_the_vendor_of_the_demo_answers_as_a_test_says(demo: Any) -> None:
    told = [line for line in demo.output.splitlines() if line.startswith("test_vendor.py::")]
    assert [line.split()[1] for line in told] == ["PASSED", "PASSED"], demo.output


def test_a_flawed_site_fails_by_what_it_does_wrong(staging: Callable[..., Any]) -> None:
    flawed = """
[forms.open]
path = "/unprotected"
type = "recaptcha_v2"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
"""
    project = staging({}, settings=flawed)
    ran = project.run("--captcha-env=staging", "--pyargs", "pytest_captcha_qa.suites", "-rf")
    assert ran.code == 1, ran.output
    assert ran.verdict["forms"]["open"] | {"fault": "product", "verdict": "failed"} == ran.verdict["forms"]["open"]
    assert ran.verdict["forms"]["login"]["verdict"] == "ok"
    failed = [line.split()[1] for line in ran.output.splitlines() if line.startswith("FAILED ")]
    assert {nodeid.split("::")[1].split("[")[0] for nodeid in failed} == {
        "test_a_missing_token_is_refused",
        "test_an_empty_token_is_refused",
        "test_a_made_up_token_is_refused",
        "test_a_used_token_is_refused",
    }
    assert ran.output.count("no configured form matches this test") == 0
    again = [shlex.split(line)[3:] for line in ran.output.splitlines() if line.startswith("run again ")]
    assert len(again) == len(failed)
    found = project.run(*(argument for command in again for argument in command), "--co", "-q")
    assert sorted(line for line in found.output.splitlines() if "::" in line) == sorted(failed), found.output


def test_a_test_has_one_name_however_it_is_asked_for(new_project: Callable[..., Any]) -> None:
    path = ROOT / "pytest_captcha_qa" / "suites" / "test_image.py"
    asked = ("--pyargs", "pytest_captcha_qa.suites.test_turnstile", str(path), "pytest_captcha_qa.suites.test_altcha")
    project = new_project({})
    ran = project.run("--captcha-env=demo", "--co", "-q", *asked, "-k", "missing")
    assert [line for line in ran.output.splitlines() if "::" in line] == [
        f"pytest_captcha_qa/suites/test_{kind}.py::test_a_missing_token_is_refused[{form}]"
        for kind, form in (("turnstile", "login"), ("image", "guestbook"), ("altcha", "comment"))
    ], ran.output


def test_types_without_a_form_are_skipped_with_a_sentence(staging: Callable[..., Any]) -> None:
    ran = staging({}).run("--captcha-env=staging", "-rs", "--pyargs", "pytest_captcha_qa.suites")
    assert (ran.code, ran.counts) == (0, "5 passed, 50 skipped"), ran.output
    assert "no configured form matches this test" in ran.output


def test_the_repository_collects_its_suites_without_arguments() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "PYTEST_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--captcha-env=demo", "--co", "-q"],
        cwd=ROOT, env=kept, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    collected = [line for line in ran.stdout.splitlines() if "::" in line]
    assert (ran.returncode, len(collected)) == (0, 55), ran.stdout
    assert all(line.startswith("suites/test_") for line in collected)
