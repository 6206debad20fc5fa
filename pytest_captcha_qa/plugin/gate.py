"""The gate in a session: whether it is judged, how far it counts, and what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.model.gate import GateMode
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.records.jsonl import safe_name
from pytest_captcha_qa.reporting.gate.running import missing_extra, run_gate
from pytest_captcha_qa.reporting.gate.subject import Asked, nothing_recorded
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.wording import counted


def mode_of(run: CaptchaRun) -> GateMode:
    """Return what was chosen, by default `report` where there are rules."""
    given = run.settings.run.gate
    if given is not None:
        return given
    return GateMode.OFF if run.settings.gate is None else GateMode.REPORT


def check(run: CaptchaRun) -> None:
    """Look whether the gate can be judged as it was asked for.

    Raises:
        ConfigError: there are no rules, or the extra is missing.
    """
    if not run.decides or run.settings.run.gate is GateMode.OFF:
        return
    if run.settings.gate is None:
        # The dashboard compares with the baseline, too.
        needing = ("captcha_gate", "captcha_baseline") if run.settings.run.dashboard is None else ("captcha_gate",)
        for dest in needing:
            if dest in run.settings.chosen:
                label = run.settings.catalog.document.label
                raise ConfigError(
                    f"{run.settings.source(dest)}: there is no table [gate] in {label}, so no rule to judge by"
                )
        return
    missing = missing_extra()
    if missing is not None:
        raise ConfigError(f"[gate]: {missing}, or switch it off with --captcha-gate=off")


def answer(run: CaptchaRun, forms: Sequence[str], *, since: datetime, deselected: int) -> GateAnswer | None:
    """Return what the gate says of this run, None where it is off; records of earlier runs are its history.

    `forms` are the selected ones, `since` is when the run began.
    """
    rules, mode = run.settings.gate, mode_of(run)
    if rules is None or mode is GateMode.OFF:
        return None
    held_back = _held_back(run, deselected) if mode is GateMode.ENFORCE else None
    mode = GateMode.REPORT if held_back else mode
    folder, asked = run.settings.run.records / safe_name(run.environment.name), _asked(run, forms, since)
    if not folder.is_dir() or not any(folder.iterdir()):
        return GateAnswer(mode, nothing_recorded(asked), held_back=held_back)
    here, baseline = run.config.invocation_params.dir, run.settings.run.baseline
    try:
        found = run_gate([folder], rules, lambda environments: asked, baseline=baseline, folder=here)
    except CaptchaQAError as error:
        return GateAnswer(mode, fault=error.message, fault_code=error.exit_code, held_back=held_back)
    return GateAnswer(mode, found, held_back=held_back)


def _asked(run: CaptchaRun, forms: Sequence[str], since: datetime) -> Asked:
    known = run.environment.forms
    return Asked(
        env=run.environment.name,
        run_id=run.identity.run_id,
        since=since,
        selected={slug: str(known[slug].type) for slug in forms if slug in known},
        waivers=(*(one for one in run.environment.waivers if one.rule is None), *run.settings.rule_waivers),
    )


def _held_back(run: CaptchaRun, deselected: int) -> str | None:
    """Return why the run says too little about the whole for its gate to decide."""
    config = run.config
    if run.identity.shard is not None:
        return f"this is shard {run.identity.shard}; judge all of them with `captcha-qa gate`"
    if deselected:
        return f"{counted(deselected, 'captcha test')} deselected"
    if config.getoption("lf", default=False):
        return "--lf runs only what failed"
    if any("::" in argument for argument in config.args):
        return "only some tests were named"
    return None
