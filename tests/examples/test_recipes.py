"""The recipes of docs/recipes.md do what they say, in the built-in environment, with one process and with workers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- recipe: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))
RECIPES = sorted({name.partition("/")[0] for name in FILES})


@pytest.fixture
def run(tmp_path: Path, run_child: Callable[..., Any], write_files: Callable[..., None]) -> Callable[..., Any]:
    """`run(*arguments)` runs all recipes, each in a folder of its own, in one session."""

    def run(*arguments: str) -> Any:
        write_files(tmp_path, FILES | {"pytest.ini": "[pytest]\n"})
        return run_child(
            tmp_path, "--strict-markers", *arguments, plugins=("pytest_asyncio.plugin", "pytest_bdd.plugin")
        )

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_each_recipe_passes_in_the_demo_environment(run: Callable[..., Any], workers: tuple[str, ...]) -> None:
    ran = run("--captcha-env=demo", "-rA", *workers)
    assert ran.code == 0, ran.output
    assert {recipe: ran.output.count(f"PASSED {recipe}/") for recipe in RECIPES} == dict.fromkeys(RECIPES, 1)


def test_each_recipe_is_skipped_without_an_environment(run: Callable[..., Any]) -> None:
    ran = run("-rs")
    assert ran.code == 0, ran.output
    assert f"{len(RECIPES)} skipped" in ran.output
    assert "no captcha environment was chosen" in ran.output
