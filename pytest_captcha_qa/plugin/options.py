"""Mounts the option table as `--captcha-*` and `captcha_*`, and reads the little that decides about loading."""

from __future__ import annotations

import os
from typing import Literal

import pytest

from pytest_captcha_qa.config.options import OPTIONS, Kind, choose, option
from pytest_captcha_qa.errors import ConfigError

_STORED = {Kind.FLAG: "store_true", Kind.APPEND: "append"}
_INI_TYPES: dict[Kind, Literal["bool"]] = {Kind.FLAG: "bool"}  # `true` in [tool.pytest] is no text


def mount(parser: pytest.Parser) -> None:
    """Add every row of the table to pytest's command line and ini file."""
    group = parser.getgroup("captcha-qa", "QA of the CAPTCHA integration of your own forms")
    for row in OPTIONS:
        told = f"{row.help} (default: {row.shown_default})" if row.shown_default else row.help
        if row.kind is Kind.FLAG:
            group.addoption(row.flag, dest=row.dest, action="store_true", default=None, help=told)
        else:
            action = _STORED.get(row.kind, "store")
            group.addoption(
                row.flag, dest=row.dest, action=action, metavar=_metavar(row.metavar, row.choices), help=told
            )
        if row.ini:
            parser.addini(row.ini, told, type=_INI_TYPES.get(row.kind), default=None)


def given(config: pytest.Config) -> dict[str, object]:
    """Return what the command line says, by dest."""
    return {row.dest: config.getoption(row.dest, default=None) for row in OPTIONS}


def ini(config: pytest.Config) -> dict[str, str]:
    """Return what the ini file says, by ini name.

    Raises:
        ConfigError: pytest cannot read one of them.
    """
    values = {row.ini: _ini_value(config, row.ini) for row in OPTIONS if row.ini}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _ini_value(config: pytest.Config, name: str) -> object:
    try:
        return config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as why:
        raise ConfigError(f"ini {name}: {why}") from None


def early(config: pytest.Config, dest: str) -> object:
    """Return the value of an option that is needed before any configuration is read.

    Raises:
        pytest.UsageError: the value does not fit the option.
    """
    row = option(dest)
    try:
        chosen = choose(row, command_line=given(config), ini=ini(config), environ=os.environ)
    except ConfigError as error:
        raise pytest.UsageError(error.message) from None
    return chosen.value if chosen else row.default


def _metavar(metavar: str, choices: tuple[str, ...]) -> str | None:
    return "|".join(choices) or metavar or None
