"""`--captcha-suite`: the built-in suite beside a team's own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_captcha_qa

ROOT = Path(__file__).parents[2]
OWN = "def test_own(): pass\n"
ENV = "--captcha-env=staging"
SUITE = "--captcha-suite"
LISTED = ("--co", "-q")
OF_THE_SUITE = 5  # tests for the one form that `staging` configures


def listed(ran: Any) -> tuple[int, int]:
    """Return how many tests of the suite and how many others were collected."""
    nodeids = [line for line in ran.output.splitlines() if "::" in line]
    ours = [nodeid for nodeid in nodeids if "test_turnstile.py::" in nodeid]
    return len(ours), len(nodeids) - len(ours)


@pytest.fixture(scope="module")
def project(staging: Callable[..., Any]) -> Any:
    return staging({"test_own.py": OWN, "unit/test_unit.py": OWN, "e2e/test_e2e.py": OWN})


@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        ((), 3),
        (("unit",), 1),
        (("unit/test_unit.py::test_own", "e2e"), 2),
        (("-o", "testpaths=unit"), 1),
        (("--pyargs", "pytest_captcha_qa.suites"), 0),
        (("--pyargs", "unit"), 1),
        (("-p", "xdist", "-o", "python_files=check_*.py", "unit/test_unit.py"), 1),
        (("--import-mode=importlib",), 3),
        (("--import-mode=append",), 3),
    ],
    ids=str,
)
def test_the_suite_is_collected_beside_what_was_asked_for(
    project: Any, arguments: tuple[str, ...], others: int
) -> None:
    ran = project.run(ENV, SUITE, *LISTED, *arguments)
    assert (ran.code, listed(ran)) == (0, (OF_THE_SUITE, others)), ran.output


def test_types_without_a_form_are_deselected_and_nothing_is_skipped(project: Any) -> None:
    ran = project.run(ENV, SUITE)
    assert (ran.code, ran.counts) == (0, f"{OF_THE_SUITE + 3} passed, 50 deselected"), ran.output
    assert ran.verdict["forms"]["login"]["verdict"] == "ok"


def test_workers_collect_the_same(project: Any) -> None:
    ran = project.run(ENV, SUITE, "-n", "2")
    assert (ran.code, ran.counts) == (0, f"{OF_THE_SUITE + 3} passed"), ran.output


@pytest.mark.parametrize(
    ("arguments", "env"),
    [(("-o", "captcha_suite=true"), {}), ((), {"CAPTCHA_QA_SUITE": "1"})],
    ids=["ini", "variable"],
)
def test_it_is_asked_for_in_other_ways_too(project: Any, arguments: tuple[str, ...], env: dict[str, str]) -> None:
    assert listed(project.run(ENV, *LISTED, *arguments, env=env)) == (OF_THE_SUITE, 3)


def test_a_selection_holds_for_the_suite_too(project: Any) -> None:
    ran = project.run(ENV, SUITE, *LISTED, "-k", "garbage or made_up or own")
    assert listed(ran) == (1, 3)


def test_the_conftest_of_the_root_reaches_it(staging: Callable[..., Any]) -> None:
    conftest = """\
import pytest

@pytest.fixture
def captcha_form_args():
    raise RuntimeError("the team's own")
"""
    ran = staging({"conftest.py": conftest, "test_own.py": OWN}).run(ENV, SUITE)
    assert (ran.code, ran.counts) == (1, f"1 passed, 50 deselected, {OF_THE_SUITE} errors"), ran.output
    assert "the team's own" in ran.output


def test_without_an_environment_it_is_skipped_and_said(project: Any) -> None:
    ran = project.run(SUITE, "-rs")
    assert (ran.code, ran.counts) == (0, "3 passed, 55 skipped"), ran.output
    assert "no captcha environment was chosen" in ran.output


def test_without_an_environment_it_is_refused_where_one_is_required(project: Any) -> None:
    ran = project.run(SUITE, "--captcha-required")
    assert ran.code == 4, ran.output
    assert "needs an environment" in ran.output


def test_it_is_found_in_a_virtual_environment_inside_the_project(staging: Callable[..., Any]) -> None:
    project = staging({"test_own.py": OWN, ".venv/pyvenv.cfg": "home = /nowhere\n"})
    packages = project.folder / ".venv" / "lib" / "python3.11" / "site-packages"
    shutil.copytree(Path(pytest_captcha_qa.__file__).parent, packages / "pytest_captcha_qa")
    ran = project.run(ENV, SUITE, *LISTED, env={"PYTHONPATH": str(packages)})
    assert listed(ran) == (OF_THE_SUITE, 1), ran.output
    assert ".venv/lib/python3.11/site-packages/pytest_captcha_qa/suites/test_turnstile.py::" in ran.output


def test_this_repository_collects_its_suite_once() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--captcha-env=demo", SUITE, *LISTED]
    ran = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout
    assert sum("::" in line for line in ran.stdout.splitlines()) == 55


@pytest.mark.parametrize(
    "asked", [("--pyargs", "pytest_captcha_qa.suites"), ("--pyargs", "pytest_captcha_qa.suites.conformance")]
)
def test_probes_are_collected_wherever_the_suite_is_asked_for(project: Any, asked: tuple[str, ...]) -> None:
    ran = project.run(ENV, "--captcha-probes=page", *asked, "--co", "-q")
    assert ran.code == 0, ran.output
    assert "suites/conformance/probes.py::test_the_form_refuses_what_it_must[" in ran.output
