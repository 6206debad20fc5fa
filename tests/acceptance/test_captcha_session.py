"""Many tests behind one login: it is made once for the run, however many workers there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

BEHIND_THE_LOGIN = """\
import pytest


@pytest.fixture
def captcha_http(captcha_session):
    return captcha_session("login").http


@pytest.mark.parametrize("number", range(40))
def test_account(captcha_http, number):
    answer = captcha_http.get("/account")
    assert (answer.status, "You are logged in" in answer.text) == (200, True), answer
"""


@pytest.fixture
def counts(sandbox: SandboxAddresses, ask: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    ask(f"{sandbox.audit}/reset", {})
    yield lambda: ask(sandbox.audit)
    ask(f"{sandbox.audit}/reset", {})


@pytest.fixture
def run_behind(
    run_pytest: Callable[..., Any], sandbox: SandboxAddresses, one_form: Callable[..., str]
) -> Callable[..., Any]:
    """`run_behind(test, *arguments, path="turnstile")` runs tests behind the login of the sandbox's site."""

    def run(test: str, *arguments: str, path: str = "turnstile", store: str = "") -> Any:
        files = {"test_it.py": test, "captcha-qa.toml": one_form(sandbox.site, path)}
        env = {"SANDBOX_PROVIDER_URL": sandbox.provider} | ({"STORE": store} if store else {})
        shared = ("--captcha-store-env=STORE",) if store else ()
        return run_pytest("--captcha-env=staging", *shared, *arguments, files=files, env=env)

    return run


@pytest.mark.parametrize(
    ("workers", "shared"),
    [((), False), (("-n", "4"), False), (("-n", "8"), True)],
    ids=["one process", "4 workers", "8 workers on redis"],
)
def test_forty_tests_behind_one_login_cost_one_solve(
    run_behind: Callable[..., Any],
    counts: Callable[[], Any],
    workers: tuple[str, ...],
    shared: bool,
    request: pytest.FixtureRequest,
) -> None:
    store = request.getfixturevalue("redis_server").url if shared else ""
    run = run_behind(BEHIND_THE_LOGIN, *workers, store=store)

    assert run.code == run.verdict["exit"] == 0, run.output
    assert "40 passed" in run.output
    assert counts()["provider"]["submits"] == 1
    assert counts()["site"]["posts"] == {"turnstile": 1}
    assert counts()["site"]["gets"] == {"turnstile": 1, "account": 40}
    [attempt] = run.attempts
    assert (attempt["slug"], attempt["outcome"], attempt["submits"]) == ("login", "ok", 1)


def test_two_runs_do_not_share_a_login(run_behind: Callable[..., Any], counts: Callable[[], Any]) -> None:
    for _ in range(2):
        assert run_behind(BEHIND_THE_LOGIN, "-k", "[0]", "--captcha-run-id=same").code == 0
    assert counts()["provider"]["submits"] == 2


def test_other_fields_are_another_login_and_what_is_given_masks_its_cookies(
    run_behind: Callable[..., Any], counts: Callable[[], Any]
) -> None:
    test = """\
def test_it(captcha_session):
    first, second = captcha_session("login"), captcha_session("login", email="admin@example.com")
    assert captcha_session("login") is first
    assert first.cookies["sandbox_session"] != second.cookies["sandbox_session"]
    assert first.http.get("/account").status == second.http.get("/account").status == 200
    [kept] = [c for c in first.storage_state()["cookies"] if c["name"] == "sandbox_session"]
    assert kept["value"] == first.cookies["sandbox_session"]
    assert (kept["domain"], kept["path"], kept["expires"]) == ("127.0.0.1", "/", -1)
    assert (kept["httpOnly"], kept["secure"], kept["sameSite"]) == (True, False, "Lax")
    shown = repr((first, first.cookies, first.http, captcha_session))
    assert not any(value in shown for value in first.cookies.values())
"""
    run = run_behind(test)
    assert run.code == 0, run.output
    assert counts()["provider"]["submits"] == 2


@pytest.mark.parametrize("workers", [(), ("-n", "4")], ids=["one process", "4 workers"])
def test_a_failing_login_fails_every_test_with_the_same_words_and_is_not_tried_again(
    run_behind: Callable[..., Any], counts: Callable[[], Any], workers: tuple[str, ...]
) -> None:
    run = run_behind(BEHIND_THE_LOGIN, *workers, path="broken")

    assert run.code == run.verdict["exit"] != 0, run.output
    assert "40 errors" in run.output
    told = [line for line in run.output.splitlines() if line.startswith("E   ")]
    assert len(told) == 40
    assert len(set(told)) == 1, told
    assert "the login on form 'login' that the tests of this run share failed" in told[0]
    # The refused token and the one that confirms it.
    assert counts()["provider"]["submits"] == 2
    assert len(run.attempts) == 1
    # Whichever test comes after it first tells what was tried, once.
    assert run.output.count("tokens tried") == 1
    assert run.output.count(f"reports/failures/{run.attempts[0]['id']}") == 1
    # One test tells the whole story, and no form is missing from the coverage.
    assert run.output.count("form          login") == 1
    assert "run again     pytest --captcha-env=" in run.output
    assert run.verdict["coverage"]["selected"] == 1


def test_the_cookies_stand_in_no_file_but_the_store(run_behind: Callable[..., Any], tmp_path: Path) -> None:
    test = """\
import pathlib

def test_it(captcha_session, tmp_path_factory):
    session = captcha_session("login")
    login = session.cookies["sandbox_session"]
    print(login)
    pathlib.Path("half-of-it").write_text(login[:8] + " " + login[8:])
    assert session.cookies == {}, login
"""
    run = run_behind(test, "--junit-xml=junit.xml", "--showlocals", "-o", "log_cli=true")
    assert run.code == 1, run.output
    login = (tmp_path / "half-of-it").read_text().replace(" ", "")
    assert login not in run.output
    with_it = [path for path in tmp_path.rglob("*") if path.is_file() and login.encode() in path.read_bytes()]
    assert {path.parent.name for path in with_it} == {"captcha-qa"}


def test_a_form_that_is_not_submitted_opens_no_session(run_behind: Callable[..., Any]) -> None:
    test = "def test_it(captcha_session): captcha_session('logn')\n"
    run = run_behind(test)
    assert run.code == 4, run.output
    assert "did you mean 'login'?" in run.output
