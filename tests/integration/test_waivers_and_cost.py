"""Waivers, the budget and its cost, and a release that changes, each over a whole run of pytest."""

from __future__ import annotations

import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

LEGACY = """
[forms.legacy]
path = "/broken"
type = "turnstile"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
[[waivers]]
form = "legacy"
until = UNTIL
reason = "its backend is being replaced"
ticket = "QA-1"
"""
TESTS = """\
def test_legacy(captcha_attempt): assert captcha_attempt("legacy")
def test_login(captcha_attempt): assert captcha_attempt("login")
"""
EARLY_BIRDS = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_it(captcha_attempt, n): " + (
    "assert captcha_attempt('login')\n"
)


def legacy(days: int) -> str:
    return LEGACY.replace("UNTIL", str(day(days)))


def day(days: int) -> Any:
    return datetime.now(UTC).date() + timedelta(days)


@pytest.mark.parametrize("arguments", [(), ("-n2",), ("--captcha-exit-codes=pytest",), ("-n2", "--reruns=1")])
def test_a_waived_failure_fails_its_test_and_not_the_run(
    staging: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    ran = staging({"test_it.py": TESTS}, settings=legacy(3)).run("--captcha-env=staging", *arguments)
    assert (ran.code, ran.verdict["exit"], ran.verdict["codes"]) == (0, 0, []), ran.output
    assert "1 failed, 1 passed" in ran.output
    assert f"waived until {day(3)}: legacy (QA-1): its backend is being replaced" in ran.output
    assert "exit 0: every failure that was found is waived; 1 of 2 forms ok" in ran.output
    shown = {"until": str(day(3)), "reason": "its backend is being replaced", "ticket": "QA-1", "expired": False}
    assert ran.verdict["forms"]["legacy"]["waived"] == shown
    assert (ran.verdict["forms"]["legacy"]["verdict"], ran.verdict["forms"]["login"]["waived"]) == ("failed", None)
    assert ran.verdict["coverage"]["measured_forms"] == ["legacy", "login"]


def test_an_expired_waiver_lets_the_failure_count_and_says_so(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": TESTS}, settings=legacy(-1)).run("--captcha-env=staging")
    assert (ran.code, ran.counts) == (1, "1 failed, 1 passed"), ran.output
    assert f"waiver expired, its last day was {day(-1)}: legacy (QA-1)" in ran.output
    assert ran.verdict["forms"]["legacy"]["waived"]["expired"] is True


def test_a_waiver_covers_no_assertion_of_the_tests_own(staging: Callable[..., Any]) -> None:
    own = TESTS + "\ndef test_ordinary(): assert 1 + 1 == 3\n"
    ran = staging({"test_it.py": own}, settings=legacy(3)).run("--captcha-env=staging")
    assert ran.code == 1, ran.output
    assert [reason["what"] for reason in ran.verdict["codes"][0]["reasons"]] == ["test_it.py::test_ordinary failed"]


WAIVED = """\
import pytest
def test_legacy(captcha_attempt): assert captcha_attempt("legacy")
def test_login(captcha_attempt): assert captcha_attempt("login")
def test_parts(captcha_attempt, subtests):
    with subtests.test(form="legacy"):
        assert captcha_attempt("legacy")
"""
OWN = """
def test_cart(captcha_attempt):
    captcha_attempt("legacy")
    assert "cart" == "full"
@pytest.fixture
def cart():
    yield
    raise RuntimeError("the cart is not empty")
def test_leaves(cart, captcha_attempt): assert captcha_attempt("legacy")
def test_parts_of_its_own(captcha_attempt, subtests):
    with subtests.test(form="legacy"):
        assert captcha_attempt("legacy")
    with subtests.test(form="none"):
        assert "cart" == "empty"
"""


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="this pytest has no subtests")
@pytest.mark.parametrize("arguments", [(), ("-n2",)])
def test_a_waiver_covers_parts_of_a_test_but_nothing_of_its_own(
    staging: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    project = staging({"test_it.py": WAIVED}, settings=legacy(3))
    ran = project.run("--captcha-env=staging", *arguments)
    assert (ran.code, ran.verdict["codes"]) == (0, []), ran.output
    ran = project.write({"test_it.py": WAIVED + OWN}).run("--captcha-env=staging", *arguments)
    own = [f"test_it.py::{name}" for name in ("test_cart", "test_leaves", "test_parts_of_its_own")]
    told = [reason["what"].partition(" failed")[0] for reason in ran.verdict["codes"][0]["reasons"]]
    assert sorted(told) == own, ran.output
    assert (ran.code, len(ran.verdict["codes"])) == (1, 1)


def test_a_run_that_ended_at_a_waived_failure_has_too_little_data(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": TESTS}, settings=legacy(3)).run("--captcha-env=staging", "-x")
    assert (ran.code, ran.counts) == (11, "1 failed"), ran.output
    assert "a waived failure has stopped the run before its end (-x or --maxfail)" in ran.output


def test_a_waiver_for_too_long_is_a_usage_error(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": TESTS}, settings=legacy(15)).run("--captcha-env=staging")
    assert ran.code == 4, ran.output
    assert "is 15 days from today; a waiver lasts at most 14 days" in ran.output


PRICED = """
[accounts.priced]
provider = "sandbox"
url_env = "PROVIDER_URL"
time_scale = 0.02
price_per_1000 = 2.5
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_cost_is_that_of_all_workers(staging: Callable[..., Any], workers: tuple[str, ...]) -> None:
    ran = staging({"test_it.py": EARLY_BIRDS}, settings=PRICED).run(
        "--captcha-env=staging", "--captcha-account=priced", "--captcha-budget=40", *workers
    )
    assert ran.code == 0, ran.output
    assert ran.verdict["cost"] == {"submits": 4, "price": 0.01, "budget": 40}
    assert "measured 1/1 · 4 submits · price 0.01 · budget 40, used 4" in ran.output


def test_a_default_budget_is_one_for_all_workers(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": EARLY_BIRDS}).run("--captcha-env=staging", "-n2")
    assert ran.verdict["cost"] == {"submits": 4, "price": None, "budget": 8}, ran.output
    assert "budget 8" not in ran.output


def test_workers_together_never_submit_more_than_the_budget(staging: Callable[..., Any]) -> None:
    ran = staging({"test_it.py": EARLY_BIRDS}).run("--captcha-env=staging", "-n2", "--captcha-budget=3")
    assert (ran.code, ran.verdict["cost"]) == (13, {"submits": 3, "price": None, "budget": 3}), ran.output
    assert "3 submits · budget 3, used 3" in ran.output


class Front(BaseHTTPRequestHandler):
    """Stands before the sandbox's site and is a new release each time somebody asks."""

    site: ClassVar[str]
    releases: ClassVar[Iterator[int]]

    def do_GET(self) -> None:
        if self.path == "/version":
            self._answer(200, [], json.dumps({"version": f"1.{next(self.releases)}"}).encode())
        else:
            self._forward(None)

    def do_POST(self) -> None:
        self._forward(self.rfile.read(int(self.headers["Content-Length"])))

    def _forward(self, body: bytes | None) -> None:
        kept = {name: value for name, value in self.headers.items() if name in ("Cookie", "Content-Type")}
        request = urllib.request.Request(self.site + self.path, data=body, headers=kept, method=self.command)
        opener = urllib.request.build_opener(NoRedirect)
        try:
            reply = opener.open(request, timeout=10)
        except urllib.error.HTTPError as told:
            reply = told
        passed = [(name, value) for name, value in reply.headers.items() if name in ("location", "set-cookie")]
        self._answer(reply.status, passed, reply.read())

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in [*headers, ("Content-Type", "text/html"), ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output free of it."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Leave a redirect to who asked."""


@pytest.fixture
def front(plugin_sandbox: SandboxAddresses) -> Iterator[str]:
    """The address of a site whose release changes."""
    handler = type("Handler", (Front,), {"site": plugin_sandbox.site, "releases": itertools.count()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_release_that_changes_during_the_run_is_told_and_fails_nothing(
    staging: Callable[..., Any], front: str
) -> None:
    project = staging({"test_it.py": EARLY_BIRDS}, also=(front,))
    toml = (project.folder / "captcha-qa.toml").read_text()
    release_from = 'account = "local"\nrelease_from = { path = "/version", json = "version" }'
    project.write({"captcha-qa.toml": toml.replace('account = "local"', release_from)})
    ran = project.run("--captcha-env=staging", env={"SITE_URL": front})
    assert (ran.code, ran.counts) == (0, "4 passed"), ran.output
    [event] = ran.of_type("event")
    assert (event["name"], event["data"]) == ("release_changed", {"from": "1.0", "to": "1.1"})
    assert (ran.verdict["release"], ran.verdict["releases"]) == (None, ["1.0", "1.1"])
    assert ran.verdict["events"] == {"release_changed": 1}
    assert "release 1.0, then 1.1" in ran.output
    assert "the release under test changed during the run (once)" in ran.output
