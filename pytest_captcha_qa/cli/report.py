"""`captcha-qa report`: the dashboard, one HTML file about any number of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.cli.values import BASELINE
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.gate import ALPHA, MIN_EFFECT
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.dashboard.asking import Asked, Judged, no_gate
from pytest_captcha_qa.reporting.dashboard.baseline import find_baseline
from pytest_captcha_qa.reporting.dashboard.making import Made, make_dashboard, missing_extra
from pytest_captcha_qa.reporting.gate import subject
from pytest_captcha_qa.reporting.gate.results import GateResult
from pytest_captcha_qa.reporting.wording import one_line

if TYPE_CHECKING:
    from pytest_captcha_qa.config.settings import Settings
    from pytest_captcha_qa.reporting.dataset import Dataset


def report(
    records: Annotated[list[str], typer.Argument(help="record files, folders or patterns")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="the page to write")],
    baseline: Annotated[
        str | None, typer.Option(metavar="REF", help=f"compare with {BASELINE}; default `previous`")
    ] = None,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="only this environment; default all")] = None,
    release: Annotated[str | None, typer.Option(metavar="TEXT", help="judge this release; default the newest")] = None,
    config: Annotated[
        str | None, typer.Option(metavar="PATH", help="configuration with [gate] and waivers; default found upwards")
    ] = None,
    as_object: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Write one HTML file that says what changed since the last release; it needs no network and can be sent about."""
    with refusals_as_json(as_object, page=None, verdicts=[]):
        missing = missing_extra()
        if missing is not None:
            raise ConfigError(missing)
        made = make_dashboard(
            *_asked(_settings(config), [Path(one) for one in records], Path(output), (env, release, baseline))
        )
    if as_object:
        print_json(_summary(made))
    else:
        for line in _lines(made):
            typer.echo(line)


def _settings(config: str | None) -> Settings | None:
    """Return the team's settings; None where none was named and what lies about cannot be used."""
    try:
        return settings_here(captcha_config=config)
    except ConfigError:
        if config is not None:
            raise
        return None


def _asked(
    settings: Settings | None, records: list[Path], page: Path, wanted: tuple[str | None, str | None, str | None]
) -> tuple[list[Path], Asked]:
    """Return the records to read and what is asked of them."""
    env, release, reference = wanted
    named = find_baseline(reference, Path.cwd(), records)
    rules = settings.gate if settings is not None else None
    common = rules.all if rules is not None else None
    asked = Asked(
        page=page,
        env=env,
        candidate=release,
        baseline=named,
        alpha=(common.alpha if common else None) or ALPHA,
        min_effect=(common.min_effect if common else None) or MIN_EFFECT,
        own_rule_forms=rules.own_forms if rules is not None else (),
        judge=_judge(settings) if settings is not None else no_gate,
        waivers=_waivers(settings),
    )
    return [*records, *named.records], asked


def _waivers(settings: Settings | None) -> list[Waiver]:
    return [table.waiver() for table in settings.catalog.waivers.values()] if settings is not None else []


def _judge(settings: Settings) -> Callable[[Dataset, Judged], GateResult | None]:
    """Return what asks the gate of these settings about a release; it says nothing where there are no rules."""

    def judge(dataset: Dataset, judged: Judged) -> GateResult | None:
        from pytest_captcha_qa.reporting.gate.judging import judge_gate

        if settings.gate is None or judged.candidate is None:
            return None
        question = subject.Asked(
            env=judged.env,
            release=judged.candidate,
            selected=_selected(settings, judged.env),
            baseline=judged.baseline,
            baseline_fault=judged.fault,
            waivers=tuple(_waivers(settings)),
        )
        return judge_gate(dataset, settings.gate, question)

    return judge


def _selected(settings: Settings, env: str) -> dict[str, str] | None:
    if env not in settings.names:
        return None
    return {slug: str(form.type) for slug, form in settings.environment(env).forms.items()}


def _summary(made: Made) -> dict[str, object]:
    verdicts = [
        {"env": h.env, "level": h.level.value, "word": h.word, "sentence": h.sentence} for h in made.page.headlines
    ]
    return {"page": str(made.path), "bytes": made.size, "verdicts": verdicts, "problems": list(made.page.problems)}


def _lines(made: Made) -> Sequence[str]:
    said = [one_line(head.sentence) for head in made.page.headlines] or ["these records hold no attempt"]
    reservations = [f"note: {one_line(problem)}" for problem in made.page.problems]
    return [*said, *reservations, f"{made.path}: {made.size / 1e6:.2f} MB, open it in a browser"]
