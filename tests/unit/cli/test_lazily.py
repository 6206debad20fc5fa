from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from pytest_captcha_qa.cli import lazily
from pytest_captcha_qa.cli.main import Commands, app, main


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of commands that are asked for, each as often as it is."""
    asked: list[str] = []

    def note(module: str) -> ModuleType:
        asked.append(module.rpartition(".")[2])
        return import_module(module)

    monkeypatch.setattr(lazily, "import_module", note)
    return asked


def test_the_command_that_was_asked_for_is_imported_and_no_other(imported: list[str]) -> None:
    assert main(["standin", "--help"]) == 0
    assert imported == ["standin"]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["--nope"], 4), (["chek"], 4)], ids=lambda it: str(it)
)
def test_what_needs_no_command_imports_none(arguments: list[str], code: int, imported: list[str]) -> None:
    assert main(arguments) == code
    assert imported == []


def test_a_misspelt_command_is_told_with_the_nearest_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compar"]) == 4
    assert "No such command 'compar'. Did you mean 'compare', 'compact'?" in capsys.readouterr().err


def test_help_lists_every_command_in_order_with_what_it_does(imported: list[str]) -> None:
    answer = CliRunner().invoke(app, ["--help"])
    listed = re.findall(r"^  (\w+) +[A-Z]", answer.output.partition("Commands:")[2], re.MULTILINE)
    assert (answer.exit_code, tuple(listed)) == (0, Commands.names)
    assert tuple(imported) == Commands.names


@pytest.mark.parametrize("name", Commands.names)
def test_every_name_is_a_command_that_says_what_it_does(name: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, Commands)
    command = group.commands[name]
    assert command.name == name
    assert command.help
