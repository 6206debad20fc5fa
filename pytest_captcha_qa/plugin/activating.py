"""Begins a run with an environment: reads the settings and registers the hooks that it needs, no others."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_captcha_qa.config import ci, sources
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.plugin import dashboard, gate, options, probes
from pytest_captcha_qa.plugin.active import ActiveHooks
from pytest_captcha_qa.plugin.beside import BesideHooks
from pytest_captcha_qa.plugin.exits import Exits, forget_earlier, verdict_beside
from pytest_captcha_qa.plugin.masking import InnermostMaskingHooks, MaskingHooks
from pytest_captcha_qa.plugin.others import is_loaded
from pytest_captcha_qa.plugin.reruns import PLUGIN, RerunHooks
from pytest_captcha_qa.plugin.session import RUN, CaptchaRun
from pytest_captcha_qa.plugin.workers import WorkerHooks
from pytest_captcha_qa.reporting.verdict import Verdict
from pytest_captcha_qa.wiring.functions import let_pass

_ALLURE_TOO_OLD = "allure: its results lack captcha steps; they need pip install -U 'pytest-captcha-qa[allure]'"


def activate(config: pytest.Config) -> None:
    """Read the settings and register the hooks.

    Raises:
        pytest.UsageError: the settings cannot work.
    """
    try:
        run = CaptchaRun(config)
        gate.check(run)
        dashboard.check(run)
    except ConfigError as error:
        _forget_verdict(config)
        raise pytest.UsageError(error.message) from None
    probes.select(config)
    let_pass(pytest.exit.Exception)  # it is an ordinary Exception, unlike pytest's other outcomes
    config.stash[RUN] = run
    exits = Exits(run) if run.decides else None
    config.pluginmanager.register(ActiveHooks(run, exits), "captcha-qa-active")
    if exits is not None:
        config.pluginmanager.register(WorkerHooks(run, exits), "captcha-qa-workers")
    if probes.has_destructive(config):
        config.pluginmanager.register(BesideHooks(run), "captcha-qa-beside")
    masking = MaskingHooks(run.scrubber)
    config.pluginmanager.register(masking, "captcha-qa-masking")
    config.pluginmanager.register(InnermostMaskingHooks(masking), "captcha-qa-masking-innermost")
    if getattr(config.option, "allure_report_dir", None):
        _show_in_allure(run, exits)
    if exits is not None and run.settings.run.metrics is not None:
        exits.listeners.append(_textfile(run.settings.run.metrics, config.rootpath))
    if is_loaded(config, PLUGIN):
        config.pluginmanager.register(RerunHooks(), "captcha-qa-reruns")


def _show_in_allure(run: CaptchaRun, exits: Exits | None) -> None:
    """Register what completes Allure's results; a team's own allure-pytest may be too old for that."""
    try:
        from pytest_captcha_qa.plugin import allure
    except ImportError:
        if exits is not None:
            exits.listeners.append(lambda verdict: _ALLURE_TOO_OLD)
        return
    allure.register(run, exits)


def _textfile(path: Path, root: Path) -> Callable[[Verdict], str | None]:
    """Return what writes the metrics of the run.

    Raises:
        pytest.UsageError: the extra is missing.
    """
    try:
        from pytest_captcha_qa.plugin.metrics import Textfile
    except ModuleNotFoundError as missing:
        if missing.name != "prometheus_client":
            raise
        raise pytest.UsageError("--captcha-metrics needs its extra: pip install 'pytest-captcha-qa[metrics]'") from None
    return Textfile(path, root)


def _forget_verdict(config: pytest.Config) -> None:
    """Remove the verdict of an earlier run where this one would have put its own, as far as that can be known."""
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    with suppress(ConfigError):
        folders = config.invocation_params.dir, config.rootpath
        given, ini = options.given(config), options.ini(config)
        records = sources.records_without_file(*folders, options=given, ini=ini, environ=os.environ)
        forget_earlier(verdict_beside(records, ci.shard_of(os.environ)))
