"""No secret in anything a run leaves, whatever a failing test holds, prints, logs or compares (R2.2)."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

PROJECT = Path(__file__).with_name("programs") / "leaky_project"
CONFIG = """\
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_PROVIDER_URL"
api_key_env = "SHOP_KEY"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = ["{origin}"]
account = "local"
[env.staging.http]
basic_auth_env = "SITE_LOGIN"
headers_env = "SITE_HEADERS"
cookie_env = "SITE_COOKIE"
[forms.login]
path = "/turnstile"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
[forms.signup]
path = "/recaptcha-v2"
type = "recaptcha_v2"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""
EVERYTHING = (
    "--captcha-env=staging",
    "--showlocals",
    "--log-level=DEBUG",
    "--log-file=run.log",
    "--log-file-level=DEBUG",
    "-olog_cli=true",
    "-ojunit_logging=all",
    "--junitxml=junit.xml",
    "-rA",
    "-vv",
)
ALLURE = ("-pallure_pytest.plugin", "--alluredir=allure-results")
WINDOW = 16


@pytest.fixture
def team(sandbox: SandboxAddresses, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of the team's process."""
    return {
        "SANDBOX_PROVIDER_URL": sandbox.provider,
        "AUDIT": sandbox.audit,
        "SHOP_KEY": secrets.token_hex(16),
        "SITE_LOGIN": f"qa:{secrets.token_urlsafe(24)}",
        "SITE_HEADERS": json.dumps({"X-Gate": secrets.token_urlsafe(24)}),
        "SITE_COOKIE": f"gate={secrets.token_urlsafe(24)}",
        "CAPTCHA_QA_PROOF_KEY": secrets.token_hex(32),
        "SIDE_FOLDER": str(tmp_path_factory.mktemp("side")),
    }


def project(sandbox: SandboxAddresses, test: str) -> dict[str, str]:
    return {
        "captcha-qa.toml": CONFIG.format(origin=sandbox.site),
        "conftest.py": (PROJECT / "holding.py").read_text(),
        f"test_{test}.py": (PROJECT / f"{test}.py").read_text(),
    }


def known_secrets(team: Mapping[str, str]) -> set[str]:
    """Return all that must not be found: what the team keeps, and what was in memory during the run."""
    noted = noted_values(team, "secrets")
    _, _, password = team["SITE_LOGIN"].partition(":")
    header = json.loads(team["SITE_HEADERS"])["X-Gate"]
    cookie = team["SITE_COOKIE"].partition("=")[2]
    kept = {team["SHOP_KEY"], team["CAPTCHA_QA_PROOF_KEY"], password, header, cookie}
    return noted | kept | {b64encode(team["SITE_LOGIN"].encode()).decode()}


def noted_values(team: Mapping[str, str], kind: str) -> set[str]:
    """Return what was in memory during the run: `secrets`, or `hidden` values of pages."""
    notes = [path.read_text().splitlines() for path in Path(team["SIDE_FOLDER"]).glob(f"{kind}-*")]
    return {json.loads(line) for lines in notes for line in lines}


def leaks_of_evidence(run: Any, team: Mapping[str, str]) -> list[str]:
    """Return where a secret or a hidden value of a page stands in the evidence of the run's failures."""
    hidden = noted_values(team, "hidden")
    kept = replace(run, output="", folder=run.folder / "reports" / "failures")
    assert hidden, "the pages have no hidden value"
    assert list(kept.folder.glob("*/exchange.json")), "the run has left no evidence"
    return leaks(kept, known_secrets(team) | hidden)


def leaks(run: Any, known: Iterable[str]) -> list[str]:
    """Return where sixteen characters in a row of a secret stand in what the run left."""
    windows = {secret[i : i + WINDOW] for secret in known for i in range(len(secret) - WINDOW + 1)}
    texts = {"the output": run.output} | {
        str(path.relative_to(run.folder)): path.read_text("utf-8", "replace")
        for path in run.folder.rglob("*")
        if path.is_file() and ".cache" not in path.parts and "__pycache__" not in path.parts
    }
    return [
        f"{name}: {text[max(0, place - 100) : place]!r}, then a secret"
        for name, text in texts.items()
        for place in _places(text, windows)
    ]


def _places(text: str, windows: set[str]) -> Iterator[int]:
    last = -WINDOW
    for i in range(len(text) - WINDOW + 1):
        if text[i : i + WINDOW] in windows:
            if i > last + 1:
                yield i
            last = i


@pytest.mark.parametrize(
    "style",
    [
        ("--tb=auto",),
        ("--tb=long", "--full-trace"),
        ("--tb=short", *ALLURE),
        ("--tb=native",),
        ("--tb=line",),
        ("--tb=long", "-n2"),
        ("--tb=short", "--capture=no", "-knot printed and not cookie and not part"),
    ],
    ids=" ".join,
)
def test_nothing_a_failing_test_holds_or_says_is_shown(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str], style: tuple[str, ...]
) -> None:
    run = run_pytest(*EVERYTHING, *style, files=project(sandbox, "leaky"), env=team)

    assert run.code == 1, run.output
    known = known_secrets(team)
    assert len(known) > 60
    found = leaks(run, known) + leaks_of_evidence(run, team)
    assert not found, "\n".join(found)


def test_a_provider_that_answers_garbage_shows_nothing(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    run = run_pytest(*EVERYTHING, "--tb=long", "--full-trace", files=project(sandbox, "provider"), env=team)

    assert run.code == 1, run.output
    assert {attempt["submits"] for attempt in run.attempts} >= {1}
    found = leaks(run, known_secrets(team))
    assert not found, "\n".join(found)


ECHO = """\
import pytest
from pytest_captcha_qa.transport import Reply

@pytest.fixture
def echoing_site(monkeypatch):
    # A debug page: it repeats headers, cookies and fields, in words and in its markup.
    from pytest_captcha_qa.transport import client

    def debug_page(answer, body, method, url):
        if method == "GET" or url.path not in ("/turnstile", "/recaptcha-v2"):
            return real(answer, body, method, url)
        sent = answer.request
        shown = f"{dict(sent.headers)} {sent.body}".replace("&", " ").replace("=", " = ")
        text = f"<title>500</title><p>{shown}</p><input type=hidden value='{sent.body}'><p>In the end: {shown}</p>"
        return Reply(500, url, {"Content-Type": "text/html"}, text.encode())

    real = client._outcome_of
    monkeypatch.setattr(client, "_outcome_of", debug_page)

@pytest.mark.parametrize("form", ["login", "signup"])
def test_a_debug_page(form, captcha_form, echoing_site):
    assert captcha_form(form).submit()
"""


def test_a_debug_page_that_repeats_what_was_sent_shows_nothing(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    files = project(sandbox, "provider") | {"test_echo.py": ECHO}
    run = run_pytest(*EVERYTHING, "test_echo.py", files=files, env=team)

    assert run.code == 1, run.output
    told = [path.read_text() for path in run.folder.glob("reports/failures/*/exchange.json")]
    assert len(told) == 2
    assert all("In the end" in text for text in told), told
    assert leaks(run, known_secrets(team)) + leaks_of_evidence(run, team) == []


GIVEN_AWAY = """\
import pytest

@pytest.mark.parametrize("form", ["login", "signup"])
def test_it(form, captcha_form):
    assert captcha_form(form).submit()
    assert captcha_form(form).submit(token="made up", expect="refuse")
"""


def test_an_extension_gives_nothing_away_and_changes_no_verdict(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    files = project(sandbox, "provider") | {"test_given_away.py": GIVEN_AWAY}
    files["captcha-qa.toml"] = f'extensions = ["giving_away"]\n{files["captcha-qa.toml"]}'
    files["giving_away.py"] = (PROJECT / "giving_away.py").read_text()
    run = run_pytest(*EVERYTHING, "test_given_away.py", files=files, env=team)

    assert run.code == 0, run.output
    extra = [attempt["extra"] for attempt in run.attempts]
    assert len(extra) == 4
    assert all("***" in str(given) for given in extra), extra
    assert sum(run.verdict["extension_faults"].values()) == 4
    assert leaks(run, known_secrets(team)) == []


TOLD_TO_ALLURE = """\
import allure
import pytest

@allure.step
def work_with(text):
    raise ValueError(f"nothing can be done with {text}")

@pytest.fixture
def broken(captcha_token):
    yield
    raise RuntimeError("".join(captcha_token("login").reveal()))

def test_a_step(captcha_token):
    work_with("".join(captcha_token("login").reveal()))

def test_an_attachment(captcha_token, tmp_path):
    text = "".join(captcha_token("signup").reveal())
    (tmp_path / "a.txt").write_text(text)
    allure.attach(text, name=text)
    allure.attach.file(tmp_path / "a.txt")
    allure.dynamic.parameter("token", text)
    allure.dynamic.description(text)

def test_a_fixture(broken):
    pass
"""


def test_what_tests_tell_allure_shows_nothing(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    files = project(sandbox, "provider") | {"test_told.py": TOLD_TO_ALLURE}
    run = run_pytest(*EVERYTHING, *ALLURE, "test_told.py", files=files, env=team)

    assert run.counts == "1 failed, 2 passed, 1 error", run.output
    told = "".join(path.read_text() for path in run.folder.glob("allure-results/*"))
    assert "nothing can be done with ***" in told
    assert leaks(run, known_secrets(team)) == []


def test_a_module_that_cannot_be_collected_shows_nothing(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    test = "import os\nkey, login = os.environ['SHOP_KEY'], os.environ['SITE_LOGIN']\nassert key == login\n"
    files = project(sandbox, "provider") | {"test_broken.py": test}
    run = run_pytest(*EVERYTHING, files=files, env=team)

    assert run.code == 2, run.output
    assert "assert '***' == " in run.output
    assert leaks(run, known_secrets(team)) == []


def test_an_interrupted_test_shows_nothing(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str]
) -> None:
    test = """\
def test_it(captcha_token):
    text = "".join(captcha_token("login").reveal())
    work_with(text)

def work_with(text):
    raise KeyboardInterrupt(f"while {text} was used")
"""
    files = project(sandbox, "provider") | {"test_a.py": test}
    run = run_pytest(*EVERYTHING, "--full-trace", "test_a.py", files=files, env=team)

    assert run.code == 2, run.output
    assert "KeyboardInterrupt: while ***" in run.output
    assert leaks(run, known_secrets(team)) == []


def test_the_password_of_a_store_that_dies_is_shown_nowhere(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, team: dict[str, str], start_redis: Any
) -> None:
    password = secrets.token_urlsafe(24)
    server = start_redis("--requirepass", password)
    test = """\
import os, signal

def test_it(captcha_token, captcha_env):
    address = os.environ["STORE"]
    token = captcha_token("login")
    os.kill(int(os.environ["REDIS_PID"]), signal.SIGKILL)
    token.reveal()
"""
    config = CONFIG.format(origin=sandbox.site).replace(
        "[env.staging]", '[env.staging]\nstore_env = "STORE"\non_store_loss = "stop"'
    )
    files = project(sandbox, "provider") | {"test_a.py": test, "captcha-qa.toml": config}
    env = team | {"STORE": f"unix://:{password}@{server.socket}", "REDIS_PID": str(server.process.pid)}
    run = run_pytest(*EVERYTHING, "--full-trace", "test_a.py", files=files, env=env)

    assert run.code == 12, run.output
    assert f"the shared store unix://{server.socket} cannot be reached" in run.output
    assert leaks(run, known_secrets(team) | {password}) == []
