"""A thousand ordinary tests with the plugin installed: the same order, exit code and output, and as fast."""

from __future__ import annotations

import re
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

MODULE = """\
import pytest

@pytest.fixture
def number(request):
    return request.node.name.removeprefix("test_")

@pytest.mark.parametrize("number", range(50))
def test_counts(number):
    assert number < {most}
"""
SOUND = {f"test_{number:02}.py": MODULE.format(most=50) for number in range(20)}
FAILING = SOUND | {
    "test_03.py": MODULE.format(most=49),
    "test_more.py": """\
import pytest, warnings

@pytest.fixture
def broken(): raise RuntimeError("does not start")

def test_in_error(broken): pass

@pytest.mark.skip(reason="not today")
def test_skipped(): pass

@pytest.mark.xfail
def test_expected(): assert 0

def test_warns(): warnings.warn("old")
""",
}
PAIRS = 20
MOST_PERCENT = 2.0


def without_times(output: str) -> str:
    """Return what pytest printed without its times, and without the lines that list the plugins."""
    lines = [line for line in output.splitlines() if not line.startswith(("plugins: ", "metadata: "))]
    return re.sub(r"\b\d+\.\d+s\b", "_s", "\n".join(lines)).replace("=", "")


@pytest.mark.parametrize(
    ("files", "arguments", "code"),
    [
        (SOUND, ("-v",), 0),
        (FAILING, ("-rA", "--junitxml=out.xml"), 1),
        (FAILING, ("-x", "-q"), 1),
        (FAILING, ("--co", "-q"), 0),
        (SOUND, ("-k", "nothing"), 5),
        (SOUND, ("--setup-plan", "test_00.py"), 0),
    ],
    ids=["sound", "failing", "-x", "--co", "-k of nothing", "--setup-plan"],
)
def test_order_output_and_exit_code_are_the_same_with_and_without_the_plugin(
    new_project: Callable[..., Any], files: dict[str, str], arguments: tuple[str, ...], code: int
) -> None:
    project = new_project(files)
    with_us, without = project.run(*arguments), project.run("-pno:captcha-qa", *arguments)
    assert with_us.code == without.code == code, with_us.output
    assert without_times(with_us.output) == without_times(without.output)
    assert not (project.folder / "reports").exists()


@pytest.mark.bench
def test_a_thousand_tests_are_as_fast_with_the_plugin(
    new_project: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    project = new_project(SOUND)
    spent(project)  # compiles once
    pairs = [(spent(project, "-pno:captcha-qa"), spent(project)) for _ in range(PAIRS)]
    wall, cpu = (statistics.median(100 * (ours[n] / alone[n] - 1) for alone, ours in pairs) for n in (0, 1))
    with capsys.disabled():
        print(
            f"\na thousand ordinary tests with the plugin: {cpu:+.1f} % processor time, {wall:+.1f} % time, "
            f"the median of {PAIRS} pairs"
        )
    # What else this machine does changes the time far more than the plugin does.
    assert cpu < MOST_PERCENT


def spent(project: Any, *arguments: str) -> tuple[float, float]:
    """Return the seconds and the processor seconds that one run has taken."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ran = project.run("-q", *arguments)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.code == 0, ran.output
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
