"""`captcha-qa check`: the merged settings, their sources, and what would leave the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.config.disclosure import Disclosure
from pytest_captcha_qa.config.explaining import Explained, explain
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.rows import Row, gate_rows, run_rows
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.wiring.extensions import Extension, extension_or_fault
from pytest_captcha_qa.wiring.probing import unusable_waivers
from pytest_captcha_qa.wiring.providers import unsolvable_forms
from pytest_captcha_qa.wiring.stores import unusable_store

_WIDEST = 44


def check(
    env: Annotated[str | None, typer.Option(metavar="NAME", help="show this environment; default all")] = None,
    form: Annotated[str | None, typer.Option(metavar="SLUG", help="show this form; default all")] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help=option("captcha_config").help)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Show the merged configuration and everything that would leave the network, without touching it."""
    with refusals_as_json(as_json, file=None, run=[], environments=[]):
        settings = settings_here(captcha_env=env, captcha_config=config)
        explained = _explained(settings, form)
        extensions = {name: extension_or_fault(name, settings.folder) for name in settings.catalog.extensions}
    found = [*_problems(settings, explained), *extensions.values()]
    problems = list(dict.fromkeys(problem for problem in found if isinstance(problem, str)))
    run = [*run_rows(settings), *gate_rows(settings), *_extension_rows(settings, extensions)]
    if as_json:
        print_json(_summary(settings, run, explained, problems))
    else:
        for line in _report(settings, run, explained):
            typer.echo(line)
        for problem in problems:
            typer.echo(f"error: {problem}", err=True)
    raise typer.Exit(ConfigError.exit_code if problems else 0)


def _problems(settings: Settings, explained: list[Explained]) -> Iterator[str]:
    for each in explained:
        yield from each.problems
        environment = settings.environment(each.name)
        yield from unsolvable_forms(environment, [leaving.form for leaving in each.leaves])
        yield from _missing_extra(environment)
        yield from unusable_waivers(environment.waivers)


def _missing_extra(environment: EnvironmentConfig) -> Iterator[str]:
    """Yield what the shared store lacks here; it is not touched."""
    with suppress(ConfigError):  # an address that cannot be read is told as such
        if environment.store_address is not None:
            yield from unusable_store(environment.store_address)


def _explained(settings: Settings, form: str | None) -> list[Explained]:
    """Return the chosen environment in words, else all that have the form."""
    if settings.run.env is not None:
        return [explain(settings, settings.run.env, form=form)]
    names = list(settings.catalog.environments) or list(settings.names)
    forms = {name: settings.environment(name).forms for name in names}
    if form is not None and not any(form in known for known in forms.values()):
        raise UnknownName.among("form", form, {slug for known in forms.values() for slug in known})
    return [explain(settings, name, form=form) for name in names if form is None or form in forms[name]]


def _extension_rows(settings: Settings, extensions: Mapping[str, Extension | str]) -> Iterator[Row]:
    """Yield what each extension offers, its file, and where it is named."""
    named = settings.catalog.document.where(("extensions",))
    for name, one in extensions.items():
        if isinstance(one, str):
            yield Row("extensions", f"{name} (cannot be used)", named)
        else:
            place = relative(Path(one.place), settings.folder)
            yield Row("extensions", f"{name} ({', '.join(one.functions)})", f"{place}, named in {named}")


def _summary(settings: Settings, run: list[Row], explained: list[Explained], problems: list[str]) -> dict[str, object]:
    file = str(settings.file) if settings.file else None
    environments = [asdict(environment) for environment in explained]
    return {"file": file, "run": [asdict(row) for row in run], "environments": environments, "problems": problems}


def _report(settings: Settings, run: list[Row], explained: list[Explained]) -> Iterator[str]:
    yield f"Configuration: {settings.catalog.document.label}"
    yield ""
    yield typer.style("Every run", bold=True)
    yield from _table(run)
    for environment in explained:
        yield ""
        yield typer.style(f"Environment {environment.name}", bold=True)
        yield from _table(environment.rows)
        yield ""
        yield typer.style("  What leaves the network", bold=True)
        for leaving in environment.leaves:
            yield from _leaving(leaving)
        yield f"    to the store: {environment.store}"
        yield from _section("A run also needs", environment.needs)


def _table(rows: Iterable[Row]) -> Iterator[str]:
    rows = list(rows)
    keys = max(len(row.key) for row in rows)
    values = min(_WIDEST, max(len(row.text) for row in rows))
    for row in rows:
        yield f"  {row.key:<{keys}}  {row.text:<{values}}  {row.source}"


def _leaving(leaving: Disclosure) -> Iterator[str]:
    yield f"    {leaving.form}: {leaving.page}"
    for receiver, what in (
        (f"to {leaving.solver}", leaving.provider),
        ("to the site", leaving.site),
        ("to verify", (leaving.verify,)),
    ):
        for number, part in enumerate(what):
            yield f"      {receiver if number == 0 else '':<16} {part}"


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield ""
            yield typer.style(f"  {heading}", bold=True)
        yield f"    {line}"
