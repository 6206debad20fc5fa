"""`captcha-qa compact`: turns record files into history, one Parquet file an environment and release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.reporting.compacting import Compacted
from pytest_captcha_qa.reporting.compacting import compact as compacted


def compact(
    records: Annotated[Path, typer.Argument(metavar="RECORDS", help="folder of the records, as --captcha-records")],
    delete: Annotated[
        bool, typer.Option("--delete", help="delete record files that history, read back, tells whole")
    ] = False,
    cleaned: Annotated[
        bool, typer.Option("--cleaned", help="delete also those that list what a run created on the site")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Write the complete runs of RECORDS to `<env>/<release>.parquet` there; others stay as they are."""
    with refusals_as_json(as_json, written={}, left=[], deleted=[]):
        done = compacted(records, delete=delete, cleaned=cleaned)
    if as_json:
        written = {str(path): runs for path, runs in done.written.items()}
        print_json({"written": written, "left": done.left, "deleted": [str(path) for path in done.deleted]})
    else:
        for line in _report(done):
            typer.echo(line)


def _report(done: Compacted) -> Iterator[str]:
    for path, runs in done.written.items():
        yield f"{path}: {len(runs)} runs"
    yield from (f"left as it is: {why}" for why in done.left)
    yield from (f"deleted {path}" for path in done.deleted)
    if not done.written:
        yield "nothing new to compact"
