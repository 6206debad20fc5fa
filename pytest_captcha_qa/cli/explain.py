"""`captcha-qa explain`: why the attempts on a form failed, from the records of any number of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.records.reading import Run, read
from pytest_captcha_qa.reporting.explain import (
    Failure,
    PastRun,
    as_json,
    explained,
    failures_of,
    history,
    history_line,
)

_MOST_GAPS = 5


def explain(
    records: Annotated[list[str], typer.Argument(help="record files, folders or patterns")],
    form: Annotated[str, typer.Option(metavar="SLUG", help="the form that failed")],
    config: Annotated[str | None, typer.Option(metavar="PATH", help="configuration that names the owners")] = None,
    as_object: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Tell why each failed attempt on a form failed, and what its last runs said; the newest failure comes last."""
    with refusals_as_json(as_object, form=form, failures=[], history=[]):
        runs = read(records)
        gaps = [gap for run in runs for gap in run.gaps]
        _check_known(form, runs, gaps)
        failures = failures_of(runs, form, owners=_owners(config))
        past = history(runs, form)
    if as_object:
        print_json(_summary(form, failures, past) | {"incomplete": gaps})
    else:
        for line in [*_report(form, failures, past), *_reservations(gaps)]:
            typer.echo(line)


def _check_known(form: str, runs: Sequence[Run], gaps: Sequence[str]) -> None:
    known = {attempt.slug for run in runs for attempt in run.attempts}
    if form not in known:
        reservation = f", which are incomplete ({gaps[0]})" if gaps else ""
        raise UnknownName.among("form", form, known, where=f"these records{reservation}")


def _owners(config: str | None) -> dict[tuple[str, str], str]:
    """Return who answers for a form in an environment; nothing without a configuration that can be read."""
    try:
        settings = settings_here(captcha_config=config)
        environments = [settings.environment(name) for name in settings.catalog.environments]
    except ConfigError:
        if config is not None:
            raise
        return {}
    forms = ((environment.name, form) for environment in environments for form in environment.forms.values())
    return {(env, form.slug): form.owner for env, form in forms if form.owner is not None}


def _summary(form: str, failures: Sequence[Failure], past: Sequence[PastRun]) -> dict[str, object]:
    said = [as_json(failure, Path.cwd()) for failure in failures]
    return {"form": form, "failures": said, "history": [asdict(run) | {"verdict": run.word} for run in past]}


def _reservations(gaps: Sequence[str]) -> Iterator[str]:
    yield from (f"incomplete: {gap}" for gap in gaps[:_MOST_GAPS])
    if len(gaps) > _MOST_GAPS:
        yield f"incomplete: … and {len(gaps) - _MOST_GAPS} more"


def _report(form: str, failures: Sequence[Failure], past: Sequence[PastRun]) -> Iterator[str]:
    for failure in failures:
        yield from explained(failure, Path.cwd())
        yield ""
    if not failures:
        yield f"no failed attempt on form {form!r} in these records"
    yield history_line(past)
