"""What can be switched on is told in docs/sandbox.md."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.dialects import DIALECTS
from pytest_captcha_qa.sandbox.effects import KINDS
from pytest_captcha_qa.sandbox.faults import Filter
from pytest_captcha_qa.sandbox.provider_api import ACTIONS
from pytest_captcha_qa.sandbox.switches import Switches

TEXT = Path(__file__).parents[3].joinpath("docs", "sandbox.md").read_text("utf-8")
NAMES = [
    *(spec.name for cls in (KeyState, Switches, Filter) for spec in fields(cls) if spec.name != "given"),
    *DIALECTS,
    *KINDS,
    *ACTIONS,
]


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_it_is_in_the_page(name: str) -> None:
    assert f"`{name}`" in TEXT
