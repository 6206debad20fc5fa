"""What the README shows is true: its configuration loads, its test passes, its commands exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pytest_captcha_qa.config import sources
from pytest_captcha_qa.config.options import OPTIONS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no example {name!r}"
    return found.group(1)


def test_the_staging_configuration_has_ten_lines_and_loads(tmp_path: Path) -> None:
    text = example("staging")
    assert len(text.splitlines()) == 10
    (tmp_path / "captcha-qa.toml").write_text(text)
    nothing = dict.fromkeys((row.dest for row in OPTIONS), None)

    settings = sources.load(tmp_path, tmp_path, options=nothing | {"captcha_env": "staging"}, ini={}, environ={})

    environment = settings.environment()
    assert list(environment.forms) == ["signup"]
    assert str(environment.page_of("signup")) == "https://staging.shop.example/signup"


def run_in_the_demo(folder: Path, **files: str) -> str:
    """Return what pytest prints about files of a team's repository in the built-in environment."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--captcha-env=demo"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "PYTEST_"))}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_test_passes_in_the_demo_environment(tmp_path: Path) -> None:
    assert "1 passed" in run_in_the_demo(tmp_path, test_example=example("test"))


def test_the_login_runs_before_the_form_is_opened(tmp_path: Path) -> None:
    """The sandbox has no login; its newsletter form answers as one would."""
    login = example("login").replace('"/login"', '"/newsletter"').replace("== 303", "== 200")
    assert "1 passed" in run_in_the_demo(tmp_path, conftest=login, test_example=example("test"))


def test_the_record_fits_the_schema() -> None:
    [text] = re.findall(r'```json\n(\{"\$type":"attempt".*?)```', README, re.DOTALL)
    schema = json.loads((ROOT / "pytest_captcha_qa" / "records" / "schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(text), schema)


@pytest.mark.parametrize("target", re.findall(r"^\$ make (\w+)", README, re.MULTILINE))
def test_the_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_exit_codes_are_in_the_order_that_decides() -> None:
    from pytest_captcha_qa.reporting.codes import STRONGEST_FIRST

    [order] = re.findall(r"The strongest decides: ([\d, ]+)", README)
    shown = [int(code) for code in order.split(", ")]
    assert shown == [code for code in STRONGEST_FIRST if code in shown]
