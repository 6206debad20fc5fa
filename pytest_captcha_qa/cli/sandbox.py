"""`captcha-qa sandbox`: serves the local stand-in for provider, vendor and site."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_captcha_qa.cli.values import factor, whole

_HIGHEST_PORT = 65535


def sandbox(
    port: Annotated[str, typer.Option(metavar="PORT", help="first of five ports in a row; 0 takes free ones")] = "0",
    time_scale: Annotated[str, typer.Option(metavar="FACTOR", help="factor for solve times; 0 solves at once")] = "1.0",
    seed: Annotated[str | None, typer.Option(metavar="N", help="makes solve times repeatable")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the addresses as one JSON object")] = False,
) -> None:
    """Serve the sandbox; print its addresses once they answer; stop at Ctrl-C or the end of a piped stdin."""
    first = whole("--port", port, least=0, most=_HIGHEST_PORT)
    scale = factor("--time-scale", time_scale)
    number = None if seed is None else whole("--seed", seed, least=0)

    from pytest_captcha_qa.sandbox.server import serve

    serve(first, json_line=as_json, time_scale=scale, seed=number, https=True)
