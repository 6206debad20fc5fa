from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_captcha_qa.config.options import (
    DEFAULT,
    OPTIONS,
    ExitCodes,
    Kind,
    Option,
    Outage,
    choose,
    markdown_table,
    option,
)
from pytest_captcha_qa.errors import ConfigError

README = Path(__file__).parents[3] / "README.md"


def test_importing_the_table_imports_no_third_party_library() -> None:
    script = (
        "import sys; before = set(sys.modules); import pytest_captcha_qa.config.options;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    foreign = set(answer.stdout.split()) - sys.stdlib_module_names
    assert foreign == {"pytest_captcha_qa"}


def test_the_readme_shows_the_table() -> None:
    text = README.read_text("utf-8")
    between = text.partition("<!-- options -->")[2].partition("<!-- /options -->")[0]
    assert between.strip() == markdown_table().strip()


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: row.dest)
def test_names_follow_from_the_flag(row: Option) -> None:
    name = row.flag.removeprefix("--captcha-").replace("-", "_")
    assert row.flag.startswith("--captcha-")
    assert row.dest == f"captcha_{name}"
    assert row.ini in (None, row.dest)
    assert row.variable in (None, f"CAPTCHA_QA_{name.upper()}")
    assert bool(row.choices) == (row.kind is Kind.CHOICE)
    assert row.help
    assert row.shown_default


def test_production_is_allowed_on_the_command_line_only() -> None:
    row = option("captcha_allow_production")
    assert (row.ini, row.variable, row.path) == (None, None, None)
    elsewhere = choose(
        row,
        command_line={},
        ini={"captcha_allow_production": "shop.example"},
        environ={"CAPTCHA_QA_ALLOW_PRODUCTION": "shop.example"},
    )
    assert elsewhere is None


def test_ini_holds_pytest_behaviour_only() -> None:
    assert [row.ini for row in OPTIONS if row.ini] == [
        "captcha_env",
        "captcha_required",
        "captcha_suite",
        "captcha_config",
        "captcha_records",
        "captcha_metrics",
        "captcha_outage",
        "captcha_exit_codes",
    ]


@pytest.mark.parametrize(
    ("command_line", "environ", "ini", "value", "source"),
    [
        ({"captcha_env": "a"}, {"CAPTCHA_QA_ENV": "b"}, {"captcha_env": "c"}, "a", "--captcha-env"),
        ({"captcha_env": None}, {"CAPTCHA_QA_ENV": "b"}, {"captcha_env": "c"}, "b", "CAPTCHA_QA_ENV"),
        ({}, {"CAPTCHA_QA_ENV": ""}, {"captcha_env": "c"}, "c", "ini captcha_env"),
    ],
)
def test_the_strongest_source_wins(
    command_line: dict[str, object],
    environ: dict[str, str],
    ini: dict[str, object],
    value: str,
    source: str,
) -> None:
    chosen = choose(option("captcha_env"), command_line=command_line, ini=ini, environ=environ)
    assert chosen is not None
    assert (chosen.value, chosen.source) == (value, source)


def test_nothing_said_is_none_so_that_the_default_can_be_told_apart() -> None:
    assert choose(option("captcha_records"), command_line={}, ini={}, environ={}) is None
    assert DEFAULT == "default"


@pytest.mark.parametrize(
    ("dest", "raw", "value"),
    [
        ("captcha_required", "yes", True),
        ("captcha_required", False, False),
        ("captcha_required", "0", False),
        ("captcha_budget", "12", 12),
        ("captcha_budget", 12, 12),
        ("captcha_outage", "skip", Outage.SKIP),
        ("captcha_exit_codes", "pytest", ExitCodes.PYTEST),
        ("captcha_allow_production", ["a.example", "b.example"], ("a.example", "b.example")),
    ],
)
def test_values_are_read_by_their_kind(dest: str, raw: object, value: object) -> None:
    chosen = choose(option(dest), command_line={dest: raw}, ini={}, environ={})
    assert chosen is not None
    assert chosen.value == value


@pytest.mark.parametrize(
    ("dest", "raw", "sentence"),
    [
        ("captcha_required", "perhaps", "CAPTCHA_QA_REQUIRED: 'perhaps' is neither yes nor no"),
        ("captcha_budget", "0", "CAPTCHA_QA_BUDGET: '0' is not a whole number from 1"),
        ("captcha_budget", "many", "CAPTCHA_QA_BUDGET: 'many' is not a whole number from 1"),
        ("captcha_budget", "²", "is not a whole number"),
        ("captcha_outage", "skp", "CAPTCHA_QA_OUTAGE: 'skp' is not one of skip, error; did you mean 'skip'?"),
    ],
)
def test_a_value_that_does_not_fit_names_its_source(dest: str, raw: str, sentence: str) -> None:
    row = option(dest)
    assert row.variable
    with pytest.raises(ConfigError) as caught:
        choose(row, command_line={}, ini={}, environ={row.variable: raw})
    assert sentence in caught.value.message


def test_a_command_line_without_the_prefix_is_named_as_it_is_written() -> None:
    chosen = choose(option("captcha_env"), command_line={"captcha_env": "qa"}, ini={}, environ={}, prefix="--")
    assert chosen is not None
    assert chosen.source == "--env"
