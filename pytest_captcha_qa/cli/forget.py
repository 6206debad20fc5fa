"""`captcha-qa forget`: erases everything that a run has left in the records and beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.reporting.forgetting import Traces, erase, traces
from pytest_captcha_qa.wiring.cleaning import created_in

_STILL_THERE = 1


def forget(
    run: Annotated[str, typer.Argument(metavar="RUN", help="the id of the run, as its records name it")],
    records: Annotated[
        str | None, typer.Option(metavar="DIR", help="folder of the records; default as for a run")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help=option("captcha_config").help)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be erased and change nothing")] = False,
    cleaned: Annotated[
        bool, typer.Option("--cleaned", help="what the run created on the site is removed, or need not be")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="also if the run may still be going on")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Erase the run RUN: its records and history, the evidence of its failures, its verdict; asks nothing."""
    with refusals_as_json(as_json, run=run, erased={}):
        folder = settings_here(captcha_records=records, captcha_config=config).run.records
        found = traces(folder, run)
        _refuse(found, folder, cleaned=cleaned or dry_run, force=force or dry_run)
        if not dry_run:
            erase(folder, found)
    if as_json:
        print_json({"run": run, "dry_run": dry_run, "erased": _erased(found), "left": [str(p) for p in found.left]})
    else:
        for line in _report(found, "would erase" if dry_run else "erased"):
            typer.echo(line)
    raise typer.Exit(_STILL_THERE if found.left else 0)


def _refuse(found: Traces, folder: Path, *, cleaned: bool, force: bool) -> None:
    if found.nothing:
        raise ConfigError(
            f"no record in {folder} tells of a run {found.run_id!r}; name their folder with --records DIR"
        )
    if found.open and not force:
        raise ConfigError(
            f"run {found.run_id} may still be going on: {found.open[0]} has no footer and was written to within ten"
            " minutes; wait for its end, or erase it all the same with --force"
        )
    created = len(created_in(found.events))
    if created and not cleaned:
        raise ConfigError(
            f"run {found.run_id} created {created} things on the site, and only its records list them; run"
            f" `captcha-qa cleanup {found.run_id}` first, then erase it with --cleaned"
        )


def _erased(found: Traces) -> dict[str, object]:
    return {
        "lines": {str(path): len(numbers) for path, numbers in found.lines.items()},
        "history": {str(path): rows for path, rows in found.history.items()},
        "evidence": [str(place) for place in found.evidence],
        "verdict": str(found.verdict) if found.verdict else None,
    }


def _report(found: Traces, done: str) -> Iterator[str]:
    yield from (f"{done} {len(numbers)} lines in {path}" for path, numbers in found.lines.items())
    yield from (f"{done} {rows} rows in {path}" for path, rows in found.history.items())
    if found.evidence:
        yield f"{done} the evidence of {len(found.evidence)} attempts in {found.evidence[0].parent}"
    if found.verdict:
        yield f"{done} {found.verdict}"
    yield from (f"the id {found.run_id} still stands in {path}: look at it by hand" for path in found.left)
