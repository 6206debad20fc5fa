"""From record files to the gate's answer: what is read, and which baseline is meant; for pytest and commands alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.gate import GateRules
from pytest_captcha_qa.reporting.comparison.references import known_releases, records_meant
from pytest_captcha_qa.reporting.gate.results import GateResult
from pytest_captcha_qa.reporting.gate.subject import Asked

EXTRA = ("duckdb", "numpy", "scipy")


def missing_extra() -> str | None:
    """Return in a sentence that the extra is not installed, None if it is; nothing is imported."""
    if all(find_spec(name) is not None for name in EXTRA):
        return None
    return "the gate needs the extra `gate`; install it with: pip install 'pytest-captcha-qa[gate]'"


def run_gate(
    sources: Sequence[Path],
    rules: GateRules,
    ask: Callable[[Sequence[str]], Asked],
    *,
    baseline: str | None = None,
    folder: Path | None = None,
) -> GateResult:
    """Return what the rules say of the records in files, folders and patterns.

    `ask` returns the question once it is told which environments the records have. `baseline` is what `records_meant`
    takes it for; files are looked for below `folder`.

    Raises:
        ConfigError: the extra is missing, a file cannot be read, or `ask` finds nothing to ask about.
    """
    from pytest_captcha_qa.reporting.dataset import open_dataset
    from pytest_captcha_qa.reporting.gate.judging import judge_gate

    with ExitStack() as opened:
        dataset = opened.enter_context(open_dataset(sources))
        found = dataset.rows("SELECT DISTINCT env FROM runs WHERE env IS NOT NULL ORDER BY env")
        asked = replace(ask([str(env) for (env,) in found]), baseline=baseline)
        path = records_meant(baseline, folder or Path(), lambda: known_releases(dataset))
        problems: tuple[str, ...] = dataset.problems
        if path is not None:
            try:
                records = opened.enter_context(open_dataset([path]))
            except ConfigError as error:
                asked = replace(asked, baseline_fault=error.message)
            else:
                asked, problems = replace(asked, baseline_records=records), (*problems, *records.problems)
        result = judge_gate(dataset, rules, asked)
        return replace(result, notes=(*result.notes, *problems))
