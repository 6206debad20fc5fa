"""`--captcha-metrics`: adds what a run has recorded to a Prometheus textfile, over all its workers."""

from __future__ import annotations

import time
from pathlib import Path

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.token import OWN_SOLVES
from pytest_captcha_qa.observe.exposing import write_textfile
from pytest_captcha_qa.observe.metrics import Metrics
from pytest_captcha_qa.records.reading import read
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.blaming import settled
from pytest_captcha_qa.reporting.verdict import Verdict
from pytest_captcha_qa.reporting.verdict_file import relative

_NO_VERDICT = 12


class Textfile:
    """Where the figures of a run go once it is decided.

    They are made of its record files, by the same listener that a scrape would read: one meaning of each metric, and
    every worker in it. Whose fault an attempt is, the whole run tells.
    """

    def __init__(self, path: Path, root: Path) -> None:
        """Write to `path`; the summary names it relative to `root`."""
        self._path = path
        self._shown = relative(path, root)

    def __call__(self, verdict: Verdict) -> str | None:
        """Add the run to the file; return a line for the summary. Whether it can be written decides nothing."""
        if verdict.environment is None:
            return None
        metrics = Metrics()
        try:
            for run in read(verdict.records):
                _tell(metrics, verdict.environment, run, verdict.time_scale)
                if verdict.exit != _NO_VERDICT:
                    _tell_providers(metrics, run)
            metrics.tell_run(verdict.environment, exit_code=verdict.exit, at=time.time())
            write_textfile(metrics, self._path)
        except ConfigError as error:
            return f"metrics: {error.message}"
        except OSError as failure:
            return f"metrics: {self._shown} cannot be written: {failure.strerror}"
        return f"metrics: {self._shown}"


def _tell(metrics: Metrics, env: str, run: Run, time_scale: float) -> None:
    listen = metrics.listener(env, time_scale=time_scale)
    for attempt in settled(run.attempts):
        listen(attempt)
    for event in run.events:
        listen(event)


def _tell_providers(metrics: Metrics, run: Run) -> None:
    """Say that a service is there which has served a run well enough, though its last answer may have been a failure.

    A gauge of a run stands until the next one, so an unlucky last attempt would look like a day's outage.
    """
    for attempt in run.attempts:
        if attempt.source in OWN_SOLVES:
            metrics.tell_provider(attempt.env, attempt.provider, up=True)
