"""What docs/configuration.md shows loads, and it names all that a configuration may say."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

import pytest

from pytest_captcha_qa.config import sources
from pytest_captcha_qa.config.accounts import ProviderName
from pytest_captcha_qa.config.catalog import RunTable
from pytest_captcha_qa.config.options import ExitCodes, Outage
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.config.table import Table
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.forms.widgets import WIDGETS
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Effect, EnvKind, VerifyVia
from pytest_captcha_qa.model.gate import GateMode, Rule
from pytest_captcha_qa.model.identity import PLACEHOLDERS
from pytest_captcha_qa.model.policy import OnStoreLoss

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TITLES = [example.partition("\n")[0] + f" #{number}" for number, example in enumerate(EXAMPLES)]
ACCOUNT = EXAMPLES[0].partition("\n\n")[0] + "\n\n"
WORDS = set(re.findall(r"`\{?([a-z0-9_.]+)\}?`", PAGE))
CHOICES: tuple[type[StrEnum], ...] = (
    EnvKind, ProviderName, CaptchaType, VerifyVia, Effect, OnStoreLoss, Outage, ExitCodes, GateMode, Rule,
)  # fmt: skip


def loaded(text: str, folder: Path) -> Settings:
    (folder / "captcha-qa.toml").write_text(text, "utf-8")
    return sources.load(folder, folder, options={}, ini={}, environ={})


def tables() -> list[type[Table]]:
    return [RunTable, *(model for model in _below(Table) if model is not RunTable)]


def _below(model: type[Table]) -> list[type[Table]]:
    return [found for direct in model.__subclasses__() for found in (direct, *_below(direct))]


@pytest.mark.parametrize("example", EXAMPLES, ids=TITLES)
def test_every_example_loads(example: str, tmp_path: Path) -> None:
    text = example if "[accounts.main]" in example else ACCOUNT + example
    settings = loaded(text, tmp_path)
    for name in settings.catalog.environments:
        assert settings.environment(name).origins


def test_there_is_an_example_of_each_way_to_verify() -> None:
    assert set(re.findall(r'via = "(\w+)"', "".join(EXAMPLES))) == set(VerifyVia)


def test_an_override_merges_and_replaces_as_the_page_says(tmp_path: Path) -> None:
    (example,) = [example for example in EXAMPLES if "extends" in example]
    live = loaded(ACCOUNT + example, tmp_path).environment("live")
    signup = live.form("signup")
    assert signup.fields == {"email": "{identity.email}", "newsletter": "no"}
    assert (signup.success.status, signup.success.location) == ((303,), "/hello*")
    assert list(live.forms) == ["signup"]
    assert live.http.basic_auth_ref is not None


@pytest.mark.parametrize("model", tables(), ids=lambda model: model.__name__)
def test_every_key_is_on_the_page(model: type[Table]) -> None:
    keys = {field.alias or name for name, field in model.model_fields.items()} | set(model.later)
    assert not keys - WORDS


@pytest.mark.parametrize("choices", CHOICES, ids=lambda choices: choices.__name__)
def test_every_value_to_choose_from_is_on_the_page(choices: type[StrEnum]) -> None:
    assert not {choice.value for choice in choices} - WORDS


def test_every_placeholder_is_on_the_page() -> None:
    assert not set(PLACEHOLDERS) - WORDS


def test_what_this_version_speaks_and_drives_is_said_as_it_is() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    assert {cells[0].strip("`") for cells in rows} >= set(ProviderName)
    (driven,) = [cells[0] for cells in rows if cells[-1] == "over HTTP"]
    assert set(re.findall(r"`(\w+)`", driven)) == {kind for kind, facts in WIDGETS.items() if facts is not None}


def test_later_keys_are_refused_by_name(tmp_path: Path) -> None:
    assert "probes" in WORDS
    with pytest.raises(ConfigError, match=r"env.staging.probes: is not in this version yet"):
        loaded(ACCOUNT + '[env.staging]\nkind = "staging"\nprobes = {}\n', tmp_path)
