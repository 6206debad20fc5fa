"""What can be switched on is told in docs/sandbox.md."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.calls import LoggedCall
from pytest_captcha_qa.sandbox.dialects import DIALECTS
from pytest_captcha_qa.sandbox.effects import KINDS
from pytest_captcha_qa.sandbox.faults import Filter
from pytest_captcha_qa.sandbox.issuing import Wish
from pytest_captcha_qa.sandbox.lab.table import LAB
from pytest_captcha_qa.sandbox.outcomes import Body, Outcome
from pytest_captcha_qa.sandbox.provider_api import ACTIONS
from pytest_captcha_qa.sandbox.switches import Switches

ROOT = Path(__file__).parents[3]
TEXT = ROOT.joinpath("docs", "sandbox.md").read_text("utf-8")
NAMES = [
    *(spec.name for cls in (KeyState, Switches, Filter) for spec in fields(cls) if spec.name != "given"),
    *(spec.name for cls in (Outcome, Wish, LoggedCall) for spec in fields(cls)),
    *Body,
    *(form.slug for form in LAB),
    *DIALECTS,
    *KINDS,
    *ACTIONS,
]


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_it_is_in_the_page(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_the_environment_for_conformance_has_every_form_of_the_lab() -> None:
    text = ROOT.joinpath("fixtures", "environments", "conformance.toml").read_text("utf-8")
    told = {slug: form["path"] for slug, form in tomllib.loads(text)["forms"].items()}
    assert told == {form.slug: form.path for form in LAB}
