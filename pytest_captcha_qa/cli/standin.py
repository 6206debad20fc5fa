"""`captcha-qa standin`: plays the captcha vendors for a backend of one's own."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pytest_captcha_qa.cli.values import whole

_HIGHEST_PORT = 65535


def standin(
    port: Annotated[str, typer.Option(metavar="PORT", help="http, and the next one https; 0 takes free ones")] = "0",
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="serve https there, too, for who has CAPTCHA_QA_STANDIN_KEY")
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="what backends call it; may be given several times")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the addresses as one JSON object")] = False,
) -> None:
    """Play the vendors for a backend under test; stop at Ctrl-C, at the end of a piped stdin, or after 8 hours."""
    first = whole("--port", port, least=0, most=_HIGHEST_PORT)

    from pytest_captcha_qa.sandbox.alone import KEY_VARIABLE, Listening, serve

    place = Listening(listen, tuple(host or ()), os.environ.get(KEY_VARIABLE, ""))
    serve(first, listening=place, json_line=as_json)
