"""docs/types.md says of every type what the tables of the code say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_captcha_qa.config.disclosure import FETCHED, TOLD
from pytest_captcha_qa.forms.widget import Widget
from pytest_captcha_qa.forms.widgets import WIDGETS
from pytest_captcha_qa.model.captcha import FACTS, CaptchaType
from pytest_captcha_qa.provider.dialects import DIALECTS
from pytest_captcha_qa.scope import TokenSource
from pytest_captcha_qa.verify.fields import FIELDS

PAGE = (Path(__file__).parents[2] / "docs" / "types.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
(HEAD,) = [cells for cells in ROWS if cells[0] == "type" and "bound to" in cells]
TYPES = {cells[0].strip("`"): dict(zip(HEAD, cells, strict=True)) for cells in ROWS if len(cells) == len(HEAD)}
OFFICIAL = {cells[0].strip("`"): cells for cells in ROWS if len(cells) == 4}


def test_the_table_has_every_type_and_every_live_service() -> None:
    live = {name for name, dialect in DIALECTS.items() if dialect.source is TokenSource.LIVE}
    assert set(TYPES) - {"type", "---"} == set(CaptchaType)
    assert {name.strip("`") for name in HEAD if name.startswith("`")} == live


@pytest.mark.parametrize("kind", CaptchaType)
def test_a_row_says_what_the_code_does(kind: CaptchaType) -> None:
    row, known, facts = TYPES[kind], FACTS[kind], WIDGETS[kind]
    assert facts is not None
    fields = facts.fields(Widget(kind, "key"), ())
    solved_by = {name for name, dialect in DIALECTS.items() if dialect.methods[kind] is not None}

    assert row["provider is told"] == ", ".join(TOLD[kind])
    assert re.findall(r"`([\w-]+)`", row["fields that take the solution"]) == list(fields)
    assert list(FIELDS[kind] or {}) == list(fields)
    assert row["kept"] == f"{known.keep:g} s"
    assert row["bound to"] == known.binding
    assert (row["test keys"] == "yes") is (known.test_keys is not None)
    assert {name.strip("`") for name in HEAD if name.startswith("`") and row[name] == "yes"} == solved_by - {"sandbox"}
    assert "sandbox" in solved_by


@pytest.mark.parametrize("kind", [kind for kind, known in FACTS.items() if known.test_keys])
def test_the_official_keys_are_named(kind: CaptchaType) -> None:
    keys = FACTS[kind].test_keys
    assert keys is not None
    _, sitekeys, secret, _ = OFFICIAL[kind]
    assert set(re.findall(r"`([\w-]+)`", sitekeys)) == set(keys.tokens)
    assert secret.strip("`") in keys.secrets


def test_every_type_bound_to_a_page_has_something_that_each_load_shows_anew() -> None:
    for kind in (kind for kind, known in FACTS.items() if known.binding == "page"):
        facts = WIDGETS[kind]
        assert facts is not None
        assert facts.page_data or facts.linked


def test_what_is_fetched_beside_the_page_is_disclosed() -> None:
    fetched = {kind: facts.linked.called for kind, facts in WIDGETS.items() if facts and facts.linked}
    assert {kind: what for kind, what in FETCHED.items() if what} == fetched
