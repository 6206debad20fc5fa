"""The command line `captcha-qa`: its commands, and how errors become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from pytest_captcha_qa import __version__
from pytest_captcha_qa.cli.lazily import LazyGroup
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.reporting.wording import one_line

USAGE_ERROR = ConfigError.exit_code
_USAGE_ERROR_OF_TYPER = 2


class Commands(LazyGroup):
    """The commands there are; a new one is a module here and a line below."""

    names = (
        "authorise",
        "check",
        "cleanup",
        "compact",
        "compare",
        "explain",
        "forget",
        "gate",
        "report",
        "sandbox",
        "state",
        "standin",
    )


# Markup and rich tracebacks off: a traceback with local variables could show a secret.
app = typer.Typer(
    name="captcha-qa",
    cls=Commands,
    help="QA of the CAPTCHA integration of your own staging forms.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"captcha-qa {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """QA of the CAPTCHA integration of your own staging forms."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 4 for wrong usage, else that of the error."""
    try:
        app(args=arguments, prog_name="captcha-qa")
    except CaptchaQAError as error:
        # Names from records may stand in it, and a terminal must not obey them.
        for line in error.message.splitlines():
            typer.echo(f"error: {line if line.isprintable() else one_line(line)}", err=True)
        return error.exit_code
    except SystemExit as ended:
        return USAGE_ERROR if ended.code == _USAGE_ERROR_OF_TYPER else int(ended.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
