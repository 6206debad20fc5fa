"""The recipes of docs/recipes.md do what they say, in the built-in environment, with one process and with workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- recipe: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))
RECIPES = sorted({name.partition("/")[0] for name in FILES})


def run(folder: Path, recipe: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        group, _, file = name.partition("/")
        if group == recipe:
            (folder / file).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", *arguments]
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_passes_in_the_demo_environment(tmp_path: Path, recipe: str, workers: tuple[str, ...]) -> None:
    ran = run(tmp_path, recipe, "--captcha-env=demo", *workers)
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_skipped_without_an_environment(tmp_path: Path, recipe: str) -> None:
    ran = run(tmp_path, recipe, "-rs")
    assert ran.returncode == 0, ran.stdout
    assert "1 skipped" in ran.stdout
    assert "no captcha environment was chosen" in ran.stdout
