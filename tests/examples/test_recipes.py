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


NEEDED = {"asyncio": ("pytest_asyncio.plugin",), "bdd": ("pytest_bdd.plugin",)}


@pytest.fixture
def run(tmp_path: Path, run_child: Callable[..., Any], write_files: Callable[..., None]) -> Callable[..., Any]:
    """`run(recipe, *arguments)` runs the files of a recipe as a project of their own."""

    def run(recipe: str, *arguments: str) -> Any:
        files = {
            file: text for name, text in FILES.items() for group, _, file in [name.partition("/")] if group == recipe
        }
        write_files(tmp_path, files | {"pytest.ini": "[pytest]\n"})
        return run_child(tmp_path, "--strict-markers", *arguments, plugins=NEEDED.get(recipe, ()))

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_passes_in_the_demo_environment(
    run: Callable[..., Any], recipe: str, workers: tuple[str, ...]
) -> None:
    ran = run(recipe, "--captcha-env=demo", *workers)
    assert ran.code == 0, ran.output
    assert "1 passed" in ran.output


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_skipped_without_an_environment(run: Callable[..., Any], recipe: str) -> None:
    ran = run(recipe, "-rs")
    assert ran.code == 0, ran.output
    assert "1 skipped" in ran.output
    assert "no captcha environment was chosen" in ran.output
