"""The wheel as a user gets it: built, installed apart from this checkout, and run from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the build backend that pyproject.toml names, as this environment has it."""
    pytest.importorskip("hatchling", reason="the wheel is built with hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that has the wheel, and only its dependencies from this environment."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    dependencies = tmp_path_factory.mktemp("dependencies")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "captcha_qa" not in entry.name and entry.suffix != ".pth":
            (dependencies / entry.name).symlink_to(entry)
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    return python


def test_the_wheel_holds_what_is_read_at_run_time(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    package = "pytest_captcha_qa"
    expected = [
        "py.typed",
        "records/schema.json",
        "sandbox/demo.toml",
        "suites/__init__.py",
        "suites/test_turnstile.py",
    ]
    assert {f"{package}/{name}" for name in expected} <= set(names)
    pages = {path.name for path in (ROOT / package / "sandbox" / "pages").glob("*.html")}
    assert pages
    assert {name.rpartition("/")[2] for name in names if name.startswith(f"{package}/sandbox/pages/")} >= pages


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    folders = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    [info] = folders - {"pytest_captcha_qa"}
    assert info.endswith(".dist-info")
    metadata = zipfile.ZipFile(wheel).read(f"{info}/METADATA").decode()
    entry_points = zipfile.ZipFile(wheel).read(f"{info}/entry_points.txt").decode()
    assert "captcha-qa = pytest_captcha_qa.plugin\n" in entry_points
    assert "captcha-qa = pytest_captcha_qa.cli.main:main" in entry_points
    assert "Provides-Extra: sandbox" in metadata


def test_the_installed_package_runs_its_suites_from_an_empty_folder(
    installed: Path, new_project: Callable[..., Any]
) -> None:
    project = new_project()
    where = subprocess.run(
        [installed, "-c", "import pytest_captcha_qa; print(pytest_captcha_qa.__file__)"],
        cwd=project.folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(installed.parents[1])
    ran = project.run(
        "--captcha-env=demo", "--pyargs", "pytest_captcha_qa.suites", python=str(installed), all_plugins=True
    )
    assert (ran.code, ran.counts) == (0, "55 passed"), ran.output
    assert (ran.verdict["coverage"]["measured"], ran.verdict["coverage"]["selected"]) == (4, 4)
