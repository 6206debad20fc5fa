"""The extension of docs/extensions.md does what the page says, in the built-in environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from pytest_captcha_qa.config.accounts import TEAM_PROVIDER
from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.plugin import newhooks
from pytest_captcha_qa.wiring.extensions import FUNCTIONS
from pytest_captcha_qa.wiring.team_provider import METHODS

PAGE = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- recipe: extension/(\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))
HOOKS = [name for name in vars(newhooks) if name.startswith("pytest_")]


def test_module_and_hook_add_the_fields_that_the_page_shows(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA_QA_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--captcha-env=demo"]
    done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "extension" not in done.stdout.partition("= captcha =")[2]
    [records] = tmp_path.glob("reports/records/demo/*.jsonl")
    [extra] = [line["extra"] for line in map(json.loads, records.read_text().splitlines()) if "extra" in line]
    [shown] = re.findall(r'`"extra":(\{.*?\})`', PAGE)
    assert extra == json.loads(shown) | {"host": extra["host"]}


def test_the_account_of_the_page_loads_and_is_live(tmp_path: Path) -> None:
    [account] = [text for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "[accounts" in text]
    form = '[forms.f]\npath = "/"\ntype = "turnstile"\nsuccess = { status = 303 }\n'
    environment = '[env.e]\nkind = "qa"\norigins = ["https://a.example"]\naccount = "main"\n'
    (tmp_path / "captcha-qa.toml").write_text(account + environment + form)
    found = load(tmp_path, tmp_path, options={}, ini={}, environ={}).environment("e")
    assert (found.account.provider, found.account.source, found.extensions) == (
        "inhouse", TEAM_PROVIDER.source, ("qa.solving",),
    )  # fmt: skip


def test_every_function_hook_and_method_is_on_the_page() -> None:
    assert [name for name in (*FUNCTIONS, *HOOKS, *METHODS) if not re.search(rf"`{name}[(`]", PAGE)] == []
