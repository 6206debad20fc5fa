"""How a command answers a script: one JSON object, also when it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from pytest_captcha_qa.errors import CaptchaQAError


def print_json(said: object) -> None:
    """Print one object."""
    typer.echo(json.dumps(said, indent=2))


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
