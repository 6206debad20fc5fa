"""`captcha-qa gate`: the rules of `[gate]` held against records, of all shards of a run or all runs of a release."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json, unread_or_not
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.cli.values import BASELINE, not_empty, one_of
from pytest_captcha_qa.errors import ConfigError, RecordError, UnknownName
from pytest_captcha_qa.model.gate import GateMode, GateRules
from pytest_captcha_qa.reporting.gate import github, gitlab
from pytest_captcha_qa.reporting.gate.results import Place, RuleResult
from pytest_captcha_qa.reporting.gate.running import missing_extra, run_gate
from pytest_captcha_qa.reporting.gate.subject import Asked
from pytest_captcha_qa.reporting.gate.telling import GateAnswer, answer_json, answer_lines
from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.reporting.writing import write_json

if TYPE_CHECKING:
    from pytest_captcha_qa.config.settings import Settings

_MODES = (GateMode.REPORT.value, GateMode.ENFORCE.value)


def gate(
    records: Annotated[list[str], typer.Argument(help="record files, folders or patterns")],
    baseline: Annotated[str | None, typer.Option(metavar="REF", help=f"compare with {BASELINE}")] = None,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="the environment; default the only one there")] = None,
    release: Annotated[
        str | None, typer.Option(metavar="TEXT", help="judge all runs of this release; default the newest run")
    ] = None,
    mode: Annotated[str, typer.Option(metavar="report|enforce", help="tell, or also answer 10 to 16")] = "enforce",
    code_quality: Annotated[
        str | None, typer.Option(metavar="FILE", help="also write a GitLab Code Quality report")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help="configuration file with the table [gate]")] = None,
    as_object: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Judge recorded runs by the rules of [gate]: the newest run with all its shards, or all runs of a release."""
    with refusals_as_json(as_object, codes=[], rules=[]):
        chosen = GateMode(one_of("--mode", mode, _MODES))
        env, release = not_empty("--env", env), not_empty("--release", release)
        settings = settings_here(captcha_config=config, captcha_baseline=baseline)
        sources, ask = [Path(record) for record in records], _asking(settings, env, release)
        answer = GateAnswer(chosen, run_gate(sources, _rules(settings), ask, baseline=settings.run.baseline))
        if code_quality is not None and answer.result is not None:
            found = gitlab.code_quality(answer.result, _locate(settings))
            write_json(found, Path(code_quality), what="the Code Quality report")
        _tell_github(answer, settings, os.environ)
    with unread_or_not():
        _tell(answer, as_object=as_object)
    raise typer.Exit(answer.exit if answer.counts else 0)


def _tell(answer: GateAnswer, *, as_object: bool) -> None:
    if as_object:
        print_json(answer_json(answer))
        return
    for line in answer_lines(answer):
        typer.echo(github.plain(line.text))


def _rules(settings: Settings) -> GateRules:
    missing = missing_extra()
    if missing is not None:
        raise ConfigError(missing)
    if settings.gate is None:
        label = settings.catalog.document.label
        raise ConfigError(f"there is no table [gate] in {label}, so no rule to judge by (docs/gate.md)")
    return settings.gate


def _asking(settings: Settings, env: str | None, release: str | None) -> Callable[[Sequence[str]], Asked]:
    """Return what is asked once it is known which environments the records have."""

    def ask(there: Sequence[str]) -> Asked:
        name = _environment(there, env, settings)
        known = settings.environment(name) if name in settings.names else None
        selected = {slug: str(form.type) for slug, form in known.forms.items()} if known is not None else None
        waivers = known.waivers if known is not None else ()
        form_waivers = tuple(waiver for waiver in waivers if waiver.rule is None)
        return Asked(env=name, release=release, selected=selected, waivers=(*form_waivers, *settings.rule_waivers))

    return ask


def _environment(there: Sequence[str], asked: str | None, settings: Settings) -> str:
    """Return the environment that is meant.

    Raises:
        ConfigError: neither records nor configuration know it, or none was named and none or several are there.
    """
    if asked is not None:
        if asked not in there and asked not in settings.names:
            raise UnknownName.among("environment", asked, {*there, *settings.names})
        return asked
    chosen = settings.run.env
    if len(there) == 1:
        return there[0]
    if chosen is not None and (chosen in there or not there):
        return chosen
    if not there:
        raise ConfigError("the records hold no run of any environment; name one with --env")
    named = github.plain(", ".join(map(repr, there)))
    raise ConfigError(f"the records hold runs of {named}; choose one with --env")


def _locate(settings: Settings) -> Callable[[RuleResult], Place]:
    """Return what tells where in the configuration file a rule stands."""
    from pytest_captcha_qa.config.gate import line_of

    document = settings.catalog.document
    path = relative(document.path, Path.cwd()) if document.path is not None else "captcha-qa.toml"

    def locate(one: RuleResult) -> Place:
        pool = one.pool
        project, captcha = (pool.project, pool.type) if pool is not None else (None, None)
        form = one.forms[0] if len(one.forms) == 1 else None
        line = line_of(document, (one.rule, one.metric), form=form, project=project, captcha=captcha)
        return Place(path, line)

    return locate


def _tell_github(answer: GateAnswer, settings: Settings, environ: Mapping[str, str]) -> None:
    """Write annotations and the job's summary where this runs in GitHub Actions.

    Raises:
        RecordError: the summary cannot be written.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        for command in github.commands(answer, _locate(settings)):
            typer.echo(command, err=True)
    summary = environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as stream:
                stream.write(github.job_summary(answer))
        except OSError as failure:
            raise RecordError(f"GITHUB_STEP_SUMMARY names {summary}: {failure.strerror}") from None
