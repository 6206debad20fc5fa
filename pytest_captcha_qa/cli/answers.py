"""How a command answers a script: one JSON object, also when it refuses."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from pytest_captcha_qa.errors import CaptchaQAError, RecordError


def print_json(said: object) -> None:
    """Print one object."""
    typer.echo(json.dumps(said, indent=2))


@contextmanager
def unread_or_not() -> Iterator[None]:
    """Go on where nobody reads what is printed, as in `captcha-qa gate ... | head -3`: the exit code is the answer.

    Raises:
        RecordError: it cannot be printed, such as into a file on a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as failure:
        # The interpreter would try what is left once more at its end, and complain.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if not isinstance(failure, BrokenPipeError):
            raise RecordError(f"the answer cannot be printed: {failure.strerror}") from None


@contextmanager
def refusals_as_json(wanted: bool, **empty: object) -> Iterator[None]:
    """Turn an error into `{"problems": [...]}` with the keys of `empty` before it, and its exit code, if wanted."""
    try:
        yield
    except CaptchaQAError as error:
        if not wanted:
            raise
        print_json({**empty, "problems": error.message.splitlines()})
        raise typer.Exit(error.exit_code) from None
