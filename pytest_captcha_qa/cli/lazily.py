"""A group of commands that imports a command when it is asked for: one needs little of what all of them need."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """A group of the commands `names`, in the order of `--help`; each is a function in the module of its name.

    The list in `--help` shows the first sentence of each, so it imports all of them; a misspelt name imports none.
    """

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Imported(dict.fromkeys(self.names))


class _Imported(UserDict[str, Any]):
    """The commands by name; one that is still None is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _command(name)
        return self.data[name]


def _command(name: str) -> Any:
    # Typer makes commands for a program only; that of one command is the command.
    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.command()(getattr(import_module(f"{__package__}.{name}"), name))
    return typer.main.get_command(program)
