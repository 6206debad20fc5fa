"""The dashboard of a session: whether it can be made, and what the summary says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.model.gate import ALPHA, MIN_EFFECT
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.records.jsonl import safe_name
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.dashboard.baseline import find_baseline
from pytest_captcha_qa.reporting.dashboard.making import make_dashboard, missing_extra
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.shown import BAD, PLAIN, SummaryLine
from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.reporting.wording import one_line
from pytest_captcha_qa.reporting.writing import forget_earlier


def check(run: CaptchaRun) -> None:
    """Look whether the page can be made, where one is asked for.

    Raises:
        ConfigError: the extra is missing.
    """
    if run.settings.run.dashboard is not None and run.decides and (missing := missing_extra()) is not None:
        raise ConfigError(f"{run.settings.source('captcha_dashboard')}: {missing}")


def forget(run: CaptchaRun) -> None:
    """Remove the page of an earlier run, so that a crash leaves none that looks like this run's."""
    if run.settings.run.dashboard is not None:
        forget_earlier(run.settings.run.dashboard)


def write(run: CaptchaRun, gate: GateAnswer | None) -> SummaryLine | None:
    """Write the page about this environment's records, of earlier runs too; return what to say of it.

    None: no page is asked for. A page that cannot be made is told in red; the verdict stands, it does not hang on it.
    """
    path = run.settings.run.dashboard
    if path is None:
        return None
    try:
        own = run.settings.run.records / safe_name(run.environment.name)
        records = [own] if own.is_dir() else []
        asked = _asked(run, gate, records)
        made = make_dashboard([*records, *asked.baseline.records], asked)
    except CaptchaQAError as error:
        return SummaryLine(one_line(f"NO DASHBOARD: {error.message}"), BAD)
    return SummaryLine(one_line(f"dashboard: {relative(made.path, run.config.rootpath)}"), PLAIN)


def _asked(run: CaptchaRun, gate: GateAnswer | None, records: Sequence[Path]) -> Asked:
    """Return what the page is about: this environment, with the answer that the gate has given.

    Raises:
        BaselineMissing: record files that were named as baseline cannot be read.
    """
    settings, name, path = run.settings, run.environment.name, run.settings.run.dashboard
    assert path is not None
    rules = settings.gate
    result = gate.result if gate is not None else None
    return Asked(
        page=path,
        env=name,
        baseline=find_baseline(settings.run.baseline, run.config.invocation_params.dir, records),
        alpha=(rules.all.alpha if rules else None) or ALPHA,
        min_effect=(rules.all.min_effect if rules else None) or MIN_EFFECT,
        own_rule_forms=rules.own_forms if rules else (),
        judge=lambda dataset, judged: result,
        waivers=(*run.environment.waivers, *settings.rule_waivers),
        notes=[f"the gate was not judged: {gate.fault}"] if gate is not None and gate.fault else [],
    )
