"""`captcha-qa state`: the keys in the store by state, with ages and owners; no token, and nothing is freed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.reporting.numbers import seconds
from pytest_captcha_qa.state.listing import KeyView
from pytest_captcha_qa.state.sqlite import default_path
from pytest_captcha_qa.wiring.stores import StorePlace, keys_in

_MOST_LINES = 100


def state(
    env: Annotated[str | None, typer.Option(metavar="NAME", help="the environment whose store is shown")] = None,
    only: Annotated[str | None, typer.Option("--state", metavar="STATE", help="only keys in this state")] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help=option("captcha_config").help)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Show where the keys in the store stand; without --env, those in the file of this machine."""
    with refusals_as_json(as_json, store=None, keys=[]):
        place = _place(env, config)
        found = [one for one in keys_in(place) if only in (None, one.state)]
    if as_json:
        print_json({"store": str(place), "keys": [asdict(one) for one in found]})
        return
    for line in _report(place, found):
        typer.echo(line)


def _place(env: str | None, config: str | None) -> StorePlace:
    settings = settings_here(captcha_env=env, captcha_config=config)
    shared = settings.environment().store_address if settings.run.env is not None else None
    return shared or default_path("state")


def _report(place: StorePlace, found: list[KeyView]) -> Iterator[str]:
    yield f"Store: {place}"
    if not found:
        yield "no keys"
        return
    counts = Counter(one.state for one in found)
    yield ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    for one in found[:_MOST_LINES]:
        yield f"  {one.key}  {one.state:<9}  generation {one.generation}  {', '.join(_told(one))}"
    if len(found) > _MOST_LINES:
        yield f"  and {len(found) - _MOST_LINES} more; --state narrows, --json lists all"


def _told(one: KeyView) -> Iterator[str]:
    if one.lease is not None:
        yield f"owner {one.owner} for {seconds(one.lease)}" if one.lease > 0 else f"owner {one.owner}, lease lapsed"
    if one.tries:
        yield f"{one.tries} tries failed"
    if one.task_id is not None and one.task_age is not None:
        yield f"task {one.task_id} of {seconds(one.task_age)} ago"
    if one.token is not None:
        yield f"token for {seconds(one.token)}"
    for name, said in (("verdict", one.verdict), ("outcome", one.outcome)):
        if said is not None:
            yield f"{name} {said}"
    yield f"forgotten in {seconds(one.forgotten_in)}"
