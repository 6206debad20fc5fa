"""`captcha-qa cleanup`: removes what the accepted submits of a run have left on the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.ownership import KEY_VARIABLE
from pytest_captcha_qa.records.reading import Run, read
from pytest_captcha_qa.reporting.codes import strongest
from pytest_captcha_qa.wiring.cleaning import Cleaned, Cleaner, created_in


def cleanup(
    run: Annotated[str, typer.Argument(metavar="RUN", help="the id of the run, as its records name it")],
    records: Annotated[
        str | None, typer.Option(metavar="DIR", help="folder of the records; default as for a run")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help=option("captcha_config").help)] = None,
    allow_production: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="production host that may be asked; repeatable")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Call the `cleanup` function of each form for what the run RUN created; without one, list it."""
    with refusals_as_json(as_json, run=run, created=[]):
        settings = settings_here(
            captcha_records=records, captcha_config=config, captcha_allow_production=allow_production
        )
        found = list(_cleaned(settings, _run(settings, run)))
    if as_json:
        print_json({"run": run, "created": [_summary(one) for one in found], "problems": _problems(found)})
    else:
        for line in _report(run, found):
            typer.echo(line)
        for problem in _problems(found):
            typer.echo(f"error: {problem}", err=True)
    raise typer.Exit(strongest(one.error.exit_code for one in found if one.error is not None))


def _run(settings: Settings, run_id: str) -> Run:
    folder = settings.run.records
    if not folder.is_dir():
        raise ConfigError(f"there are no records in {folder}; name their folder with --records DIR")
    runs = {run.run_id: run for run in read([folder])}
    if run_id not in runs:
        raise UnknownName.among("run", run_id, runs, where=str(folder))
    return runs[run_id]


def _cleaned(settings: Settings, run: Run) -> Iterator[Cleaned]:
    for env, events in _by_environment(run).items():
        created = created_in(events)
        if not created:
            continue
        cleaner = Cleaner(
            settings.environment(env),
            run.run_id,
            proof_key=settings.variables.get(KEY_VARIABLE),
            allow_production=settings.run.allow_production,
        )
        with closing(cleaner):
            yield from cleaner.clean(created)


def _by_environment(run: Run) -> Mapping[str, list[EventLine]]:
    found: dict[str, list[EventLine]] = {}
    for file in run.files:
        if file.header is not None:
            found.setdefault(file.header.env, []).extend(file.events)
    return found


def _summary(one: Cleaned) -> dict[str, object]:
    error = one.error.message if one.error is not None else None
    return {**one.created, "cleaned": one.by is not None and error is None, "by": one.by, "error": error}


def _problems(found: list[Cleaned]) -> list[str]:
    return [one.error.message for one in found if one.error is not None]


def _report(run: str, found: list[Cleaned]) -> Iterator[str]:
    for one in found:
        made = one.created
        what = f"{made.get('slug')}: {made.get('effects')} of {made.get('email') or made.get('identity')}"
        if one.by is None:
            yield f"{what}: left, the form names no cleanup"
        else:
            yield f"{what}: {'cleaned' if one.error is None else 'not cleaned'} by {one.by}"
    done = sum(one.by is not None and one.error is None for one in found)
    yield f"run {run}: {done} of {len(found)} cleaned" if found else f"run {run} created nothing"
