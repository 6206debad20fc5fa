"""What everybody pays who has the plugin installed and tests no captcha, and whoever calls a command."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_captcha_qa.cli.main import Commands

ALLOWED = {
    "pytest_captcha_qa",
    "pytest_captcha_qa.config",
    "pytest_captcha_qa.config.options",
    "pytest_captcha_qa.errors",
    "pytest_captcha_qa.plugin",
    "pytest_captcha_qa.plugin.fixtures",
    "pytest_captcha_qa.plugin.markers",
    "pytest_captcha_qa.plugin.newhooks",
    "pytest_captcha_qa.plugin.options",
}
MOST_MILLISECONDS = 5.0
RUNS = 7

COLLECT_AND_LIST = """\
import json, sys, pytest
pytest.main(["--co", "-q", "-p", "no:cacheprovider"] + sys.argv[1:])
print("\\n" + json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    "altair",
    "dotenv",
    "duckdb",
    "jinja2",
    "lxml",
    "numpy",
    "pydantic",
    "pytest",
    "redis",
    "requests",
    "rich",
    "scipy",
    "starlette",
    "urllib3",
    "pytest_captcha_qa.config.sources",
    "pytest_captcha_qa.wiring",
}
# Typer itself makes of every value, of `--help`'s too, what pydantic says.
OF_TYPER = {"pydantic"}
CALL_AND_LIST = """\
import json, sys
from pytest_captcha_qa.cli.main import main
assert main(sys.argv[1:]) == 0
print("\\n" + json.dumps(sorted(sys.modules)))
"""
# The module pytest loads by its entry point is not timed by -X importtime, so it is imported here by a statement.
IMPORT = "import pytest; import pytest_captcha_qa.plugin"


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("CAPTCHA_QA_", "PYTEST_", "PYTHONDONTWRITE"))}
    environ = kept | {"PYTHONPYCACHEPREFIX": str(cwd / ".pyc")}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, check=True, timeout=60
    )


def modules(*arguments: str, cwd: Path, code: str = COLLECT_AND_LIST) -> set[str]:
    return set(json.loads(run("-c", code, *arguments, cwd=cwd).stdout.splitlines()[-1]))


@pytest.mark.parametrize("with_a_test", [False, True], ids=["empty folder", "with a test"])
def test_nothing_but_options_markers_and_fixtures_is_imported(tmp_path: Path, with_a_test: bool) -> None:
    if with_a_test:
        (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    with_us, without = modules(cwd=tmp_path), modules("-p", "no:captcha-qa", cwd=tmp_path)
    assert with_us - without == ALLOWED


def test_the_version_is_told_without_any_command(tmp_path: Path) -> None:
    there = modules("--version", cwd=tmp_path, code=CALL_AND_LIST)
    assert HEAVY & there == set()
    assert {name for name in there if name.startswith("pytest_captcha_qa.cli.")} == {
        "pytest_captcha_qa.cli.lazily",
        "pytest_captcha_qa.cli.main",
    }


@pytest.mark.parametrize("command", ["compare", "gate", "report"])
def test_the_help_of_a_command_needs_no_heavy_library_and_no_other_command(tmp_path: Path, command: str) -> None:
    there = modules(command, "--help", cwd=tmp_path, code=CALL_AND_LIST)
    assert (HEAVY - OF_TYPER) & there == set()
    assert {name for name in Commands.names if f"pytest_captcha_qa.cli.{name}" in there} == {command}


@pytest.mark.bench
def test_importing_the_plugin_takes_milliseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("-c", IMPORT, cwd=tmp_path)  # compiles once
    costs = [milliseconds(run("-X", "importtime", "-c", IMPORT, cwd=tmp_path).stderr) for _ in range(RUNS)]
    best, median = min(costs), statistics.median(costs)
    with capsys.disabled():
        print(
            f"\nimport of the plugin without an environment: {best:.1f} ms at best, median {median:.1f} of {RUNS} runs"
        )
    # What else this machine does can only add to it.
    assert best < MOST_MILLISECONDS


def milliseconds(importtime: str) -> float:
    """Return what the plugin's import took with all that only it has pulled in."""
    [cumulative] = re.findall(r"\|\s+(\d+) \|\s+pytest_captcha_qa\.plugin$", importtime, re.MULTILINE)
    return int(cumulative) / 1000
