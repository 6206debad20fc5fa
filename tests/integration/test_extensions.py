"""Extensions and hooks of a team in whole runs: plain, with xdist and the built-in suite, without an environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

ENV = "--captcha-env=staging"
ATTEMPTS = "def test_login(captcha_attempt):\n    assert captcha_attempt('login')\n"

LISTENING = """\
from pathlib import Path

def form_opened(form, page):
    with Path("opened.txt").open("a") as file:
        file.write(f"module {form.slug} {form.type} {page.url}\\n")

def record_fields(line):
    return {"from_module": line["slug"], "expected": line["expect"], "owner": "module"}
"""
RAISING = """\
def form_opened(form, page):
    assert page is None, "t3xt"

def record_fields(line):
    raise KeyError("t3xt")
"""
LEAKING = """\
import gc, os
from pathlib import Path
from pytest_captcha_qa.model.token import Solution

def record_fields(line):
    solved = [thing for thing in gc.get_objects() if isinstance(thing, Solution) and thing.task_id]
    tokens = [part for thing in solved for part in thing.parts.values()]
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.writelines(f"{token}\\n" for token in tokens)
    given = {"key": "of " + os.environ["SHOP_KEY"]}
    return given | {f"token_{n}": token[:200] for n, token in enumerate(tokens[:9])}
"""
HOOKS = """\
from pathlib import Path

def pytest_captcha_record(config, line):
    return {"from_hook": line["attempt"], "owner": "hook"}

def pytest_captcha_form_opened(config, page):
    with (config.rootpath / "opened.txt").open("a") as file:
        file.write(f"hook {page.url}\\n")
"""
RAISING_HOOKS = "def pytest_captcha_record():\n    raise LookupError('t3xt')\n"


@pytest.fixture
def team(staging: Callable[..., Any]) -> Callable[..., Any]:
    """`team(files, extensions=[...])` makes a project on the sandbox's site whose configuration names these modules."""

    def make(files: dict[str, str], *, extensions: list[str], **changes: str) -> Any:
        project = staging(files)
        path = project.folder / "captcha-qa.toml"
        text = path.read_text().replace(
            'url_env = "PROVIDER_URL"', 'url_env = "PROVIDER_URL"\napi_key_env = "SHOP_KEY"'
        )
        for old, new in changes.items():
            text = text.replace(old, new)
        path.write_text(f"extensions = {json.dumps(extensions)}\n{text}")
        project.env["SHOP_KEY"] = "Q7" * 16
        return project

    return make


@pytest.mark.parametrize(
    "arguments", [(), ("-n2", "--captcha-suite")], ids=["one process", "two workers and the built-in suite"]
)
def test_modules_and_hooks_add_fields_whatever_others_raise_or_leak(
    team: Callable[..., Any], tmp_path: Any, arguments: tuple[str, ...]
) -> None:
    files = {
        "test_login.py": ATTEMPTS, "qa/listening.py": LISTENING, "raising.py": RAISING, "leaking.py": LEAKING,
        "conftest.py": HOOKS, "checks/conftest.py": RAISING_HOOKS, "checks/test_more.py": ATTEMPTS,
    }  # fmt: skip
    project = team(files, extensions=["qa.listening", "raising", "leaking"])
    ran = project.run(ENV, *arguments, "-rA", env={"NOTES": str(tmp_path / "notes")})

    assert (ran.code, ran.verdict["exit"]) == (0, 0), ran.output
    assert len(ran.attempts) >= 2
    for attempt in ran.attempts:
        extra = attempt["extra"]
        assert extra["from_module"] == "login"
        assert extra["expected"] == attempt["expect"]
        assert (extra["owner"], extra["from_hook"], extra["key"]) == ("module", 1, "of ***")
    told = {(event["data"]["module"], event["data"]["function"]) for event in ran.of_type("event")
            if event["name"] == "extension_failed"}  # fmt: skip
    assert told == {
        ("raising", "form_opened"),
        ("raising", "record_fields"),
        ("checks/conftest.py", "pytest_captcha_record"),
    }
    assert "extensions failed, records and verdicts stand without them: " in ran.output
    assert "raising: record_fields raised KeyError" in ran.output
    opened = (ran.folder / "opened.txt").read_text().splitlines()
    page = f"{project.env['SITE_URL']}/turnstile"
    assert set(opened) == {f"module login turnstile {page}", f"hook {page}"}
    kept = "".join([ran.output, json.dumps(ran.verdict), *(path.read_text() for path in ran.record_files)])
    tokens = (tmp_path / "notes").read_text().split()
    assert tokens
    assert "t3xt" not in kept
    for secret in {*tokens, "Q7" * 16}:
        assert not [at for at in range(len(secret) - 15) if secret[at : at + 16] in kept]


def test_without_an_environment_hooks_are_known_and_nothing_is_imported(team: Callable[..., Any]) -> None:
    files = {"test_login.py": ATTEMPTS, "conftest.py": HOOKS, "listening.py": "raise AssertionError"}
    ran = team(files, extensions=["listening"]).run("-rs")
    assert (ran.code, ran.counts) == (0, "1 skipped"), ran.output


def test_an_extension_that_cannot_be_used_ends_4_before_the_first_test(team: Callable[..., Any]) -> None:
    files = {"test_login.py": ATTEMPTS, "listening.py": "def record_field(line): ..."}
    ran = team(files, extensions=["listening", "not_there"]).run(ENV)
    assert ran.code == 4, ran.output
    assert "listening would do nothing: it defines none of record_fields, form_opened, provider" in ran.output
    assert "not_there cannot be imported: there is no module not_there" in ran.output
    assert ran.attempts == []


def test_pytest_exit_in_a_hook_ends_the_run_and_the_record_is_written(team: Callable[..., Any]) -> None:
    leaving = "import pytest\n\ndef pytest_captcha_record():\n    pytest.exit('enough')\n"
    ran = team({"test_login.py": ATTEMPTS, "conftest.py": leaving}, extensions=[]).run(ENV)
    assert ran.code == 2, ran.output
    [attempt] = ran.attempts
    assert (attempt["outcome"], "extra" in attempt) == ("ok", False)


# A provider of the team.

PROOF_KEY = "7c" * 32
SOLVING = """\
import json, os, urllib.parse, urllib.request
from pathlib import Path
from pytest_captcha_qa.engine.ports import PollTimes
from pytest_captcha_qa.errors import ProviderUnavailable
from pytest_captcha_qa.model.token import TOKEN, Solution

class Solving:
    # Speaks to the sandbox as to a service of which the package knows nothing.
    def __init__(self, settings):
        self.settings = settings

    def ask(self, path, deadline, **fields):
        body = urllib.parse.urlencode({"key": self.settings.key, "json": 1, **fields}).encode()
        with urllib.request.urlopen(self.settings.url.rstrip("/") + path, body, timeout=deadline.remaining()) as reply:
            answer = json.load(reply)
        return None if answer["request"] == "CAPCHA_NOT_READY" else answer["request"]

    def seen(self, challenge):
        with Path("seen.txt").open("a") as file:
            file.write(f"{challenge.page}\\n")

    def polling(self, challenge):
        return PollTimes(0.1, 0.1)

    def supports(self, challenge):
        self.seen(challenge)

    def submit(self, challenge, grant, deadline):
        told = {"sitekey": challenge.sitekey, "pageurl": str(challenge.page), "action": challenge.action or ""}
        return str(self.ask("/in.php", deadline, method="turnstile", **told))

    def poll(self, challenge, task_id, deadline):
        token = self.ask("/res.php", deadline, action="get", id=task_id)
        return None if token is None else Solution({TOKEN: token})

    def balance(self, deadline):
        return None

    threads = balance

def provider(name, settings):
    return Solving(settings) if name == "inhouse" else None
"""
BY_HOOK = """\
import solving

def pytest_captcha_provider(config, name, settings):
    return solving.provider(name, settings)
"""


@pytest.mark.parametrize("by", ["module", "hook"])
def test_a_provider_of_the_team_solves_for_a_proven_site_only(
    team: Callable[..., Any],
    plugin_sandbox: SandboxAddresses,
    prove: Callable[..., dict[str, str]],
    requests_at_site: Callable[[], Any],
    by: str,
) -> None:
    files = {"test_login.py": ATTEMPTS, "solving.py": SOLVING, "conftest.py": BY_HOOK if by == "hook" else ""}
    own = {'provider = "sandbox"': 'provider = "inhouse"', "time_scale = 0.02\n": ""}
    project = team(files, extensions=["solving"] if by == "module" else [], **own)

    before = requests_at_site()
    refused = project.run(ENV, env={"CAPTCHA_QA_PROOF_KEY": PROOF_KEY})
    assert refused.code == 15, refused.output
    assert not (project.folder / "seen.txt").exists()
    assert requests_at_site() == before

    ran = project.run(ENV, env=prove())
    assert ran.code == 0, ran.output
    attempt = ran.attempts[-1]
    assert (attempt["provider"], attempt["key_mode"], attempt["outcome"]) == ("inhouse", "live", "ok")
    assert (attempt["submits"], attempt["source"]) == (1, "solved")
    assert (project.folder / "seen.txt").read_text().split() == [f"{plugin_sandbox.site}/turnstile"]
