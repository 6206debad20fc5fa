"""What the fixtures give a test, over a real site: programs/fixtures_in_use.py in one run, and what it recorded."""

from __future__ import annotations

import ast
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

PROGRAM = Path(__file__).parent / "programs" / "fixtures_in_use.py"

FORMS = """
[forms.signup]
path = "/recaptcha-v2"
type = "recaptcha_v2"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}

[env.staging.forms.by_vendor]
path = "/turnstile"
type = "turnstile"
success = {{ status = 303 }}
verify = {{ via = "siteverify", secret_env = "TURNSTILE_SECRET", url_env = "VENDOR_URL" }}

[env.staging.forms.by_endpoint]
path = "/turnstile"
type = "turnstile"
success = {{ status = 303 }}
verify = {{ via = "endpoint", url = "{backend}/check", success = {{ json = {{ ok = true }} }} }}

[env.staging.forms.by_lookup]
path = "/turnstile"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
[env.staging.forms.by_lookup.verify]
via = "lookup"
url = "{backend}/verified?email={{identity.email}}"
success = {{ json = {{ ok = true }} }}
"""


def names_of_tests() -> list[str]:
    tree = ast.parse(PROGRAM.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node.name for node in found if node.name.startswith("test_")]


class Backend(BaseHTTPRequestHandler):
    """A team's backend: takes any token once it is posted, and has verified whoever is asked about."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer("cf-turnstile-response=" in body)

    def do_GET(self) -> None:
        self._answer("email=captcha-qa.r1." in self.path)

    def _answer(self, ok: bool) -> None:
        body = b'{"ok": true}' if ok else b'{"ok": false}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def backend() -> Iterator[str]:
    with serving(Backend) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="module")
def ran(staging: Callable[..., Any], backend: str) -> Any:
    from pytest_captcha_qa.sandbox import keys

    project = staging({"test_use.py": PROGRAM.read_text()}, settings=FORMS.format(backend=backend), also=(backend,))
    return project.run(
        "--captcha-env=staging", "--captcha-run-id=r1", "--captcha-release=2.0", "-v", "--captcha-budget=500",
        env={"TURNSTILE_SECRET": keys.TURNSTILE.secret},
    )  # fmt: skip


def recorded(ran: Any, test: str) -> list[tuple[str, str, int]]:
    """Return form, outcome and submits of the test's attempts, in order."""
    return [(a["slug"], a["outcome"], a["submits"]) for a in ran.attempts if (a["nodeid"] or "").endswith(test)]


@pytest.mark.parametrize("name", names_of_tests())
def test_the_program_passes(ran: Any, name: str) -> None:
    assert re.search(rf"::{name} PASSED", ran.output), ran.output


def test_the_run_as_a_whole_is_green(ran: Any) -> None:
    assert ran.code == 0, ran.output
    assert ran.verdict["exit"] == 0


@pytest.mark.parametrize(
    ("test", "attempts"),
    [
        ("test_the_form_first_then_the_token_make_one_attempt", [("login", "ok", 1)]),
        ("test_the_token_first_then_the_form_make_one_attempt", [("login", "ok", 1)]),
        ("test_a_submit_without_a_token_takes_one_by_itself", [("login", "ok", 1)]),
        ("test_a_page_may_be_submitted_twice", [("login", "ok", 1), ("login", "ok", 1)]),
        ("test_a_spent_token_is_refused_when_it_is_replayed", [("login", "ok", 1), ("login", "ok", 0)]),
        ("test_the_whole_sequence_gives_its_outcome", [("login", "ok", 1), ("login", "ok", 1)]),
        ("test_the_vendor_is_asked_about_a_token", [("by_vendor", "ok", 1)]),
        ("test_the_backend_is_asked_about_a_token", [("by_endpoint", "ok", 1)]),
        ("test_the_backend_tells_what_it_has_recorded", [("by_lookup", "ok", 1)]),
        ("test_an_unspent_token_is_given_again", [("login", "indeterminate", 1)]),
    ],
)
def test_there_is_one_record_for_each_attempt(ran: Any, test: str, attempts: list[tuple[str, str, int]]) -> None:
    assert recorded(ran, test) == attempts


def test_every_start_has_its_attempt(ran: Any) -> None:
    assert {line["id"] for line in ran.of_type("started")} == {a["id"] for a in ran.attempts}
    assert [footer["complete"] for footer in ran.of_type("footer")] == [True]


def test_the_verdict_counts_what_the_records_count(ran: Any) -> None:
    submits = Counter({slug: form["submits"] for slug, form in ran.verdict["forms"].items()})
    assert submits == Counter(a["slug"] for a in ran.attempts for _ in range(a["submits"]))
    assert submits.total() == ran.verdict["cost"]["submits"]


OVERRIDES = {
    "conftest.py": """import dataclasses
import pytest

@pytest.fixture
def captcha_identity(captcha_identity):
    return dataclasses.replace(captcha_identity, email="shared@example.com")

@pytest.fixture
def captcha_form_args():
    return {"name": "From the top"}
""",
    "deep/conftest.py": """import pytest

@pytest.fixture
def captcha_form_args(captcha_form_args):
    return {**captcha_form_args, "email": "deep@example.com"}

@pytest.fixture
def captcha_http(captcha_http):
    captcha_http.get("/welcome")
    return captcha_http
""",
    "test_top.py": """def test_top(captcha_form, captcha_attempt, captcha_identity):
    assert captcha_form("login").submit()
    assert captcha_attempt("login")
    assert captcha_identity.email == "shared@example.com"
""",
    "deep/test_deep.py": """import dataclasses
import pytest

def test_deep(captcha_form):
    assert captcha_form("login").submit(name="In the call")

class TestNearest:
    @pytest.fixture
    def captcha_form_args(self, captcha_form_args):
        return {**captcha_form_args, "name": "Of the class"}

    def test_class(self, captcha_attempt):
        assert captcha_attempt("login")

class TestMistyped:
    @pytest.fixture
    def captcha_form_args(self):
        return {"emial": "x"}

    def test_mistyped(self, captcha_form, captcha_token):
        captcha_token("login")
        raise AssertionError("the name must be refused before a token is solved")

    def test_sent_by_itself(self, captcha_token):
        assert captcha_token("login").reveal()

@pytest.mark.parametrize("wrong", ["captcha_http", "captcha_identity", "captcha_form_args", "real person"])
class TestWrong:
    @pytest.fixture
    def captcha_http(self, captcha_http, wrong):
        return None if wrong == "captcha_http" else captcha_http

    @pytest.fixture
    def captcha_identity(self, captcha_identity, wrong):
        real = dataclasses.replace(captcha_identity, email="somebody@gmail.com")
        return {"captcha_identity": None, "real person": real}.get(wrong, captcha_identity)

    @pytest.fixture
    def captcha_form_args(self, wrong):
        return None if wrong == "captcha_form_args" else {}

    def test_wrong(self, captcha_attempt, wrong):
        raise AssertionError("the override must be refused before")
""",
}


class Postbox(BaseHTTPRequestHandler):
    """A site with one form that takes everything; the server's `posted` lists the fields it got."""

    PAGE = b"""<!DOCTYPE html><html><body><form method="post" action="/turnstile">
        <input name="email"><input name="name"><div class="cf-turnstile" data-sitekey="0x4AAAAAAASANDBOXlogin01"></div>
        <button>Send</button></form></body></html>"""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.PAGE)))
        if self.path == "/welcome":
            self.send_header("Set-Cookie", "seen=welcome")
        self.end_headers()
        self.wfile.write(self.PAGE)

    def do_POST(self) -> None:
        fields = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        fields["cookie"] = self.headers.get("Cookie", "")
        self.server.posted.append(fields)  # type: ignore[attr-defined]
        self.send_response(303)
        self.send_header("Location", "/welcome")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def test_conftest_overrides_what_is_sent_at_every_level(staging: Callable[..., Any]) -> None:
    with serving(Postbox) as server:
        server.posted = []  # type: ignore[attr-defined]
        origin = f"http://127.0.0.1:{server.server_port}"
        run = staging(OVERRIDES, also=(origin,)).run("--captcha-env=staging", env={"SITE_URL": origin})
        posted = [(f["email"], f["name"], f["cookie"]) for f in server.posted]  # type: ignore[attr-defined]

    assert run.counts == "1 failed, 4 passed, 4 errors", run.output
    assert "unknown form field 'emial'" in run.output
    assert "did you mean 'email'?" in run.output
    solved = Counter({a["nodeid"].rpartition("::")[2]: a["submits"] for a in run.attempts if "Mistyped" in a["nodeid"]})
    assert (solved["test_mistyped"], solved["test_sent_by_itself"]) == (0, 1)
    assert sorted(posted) == [
        ("deep@example.com", "In the call", "seen=welcome"),
        ("deep@example.com", "Of the class", "seen=welcome"),
        ("shared.2@example.com", "From the top", ""),
        ("shared@example.com", "From the top", ""),
    ]
    for name, kind in [("http", "HttpSession"), ("identity", "Identity"), ("form_args", "Mapping")]:
        assert re.search(
            rf"the fixture captcha_{name} of deep/test_deep.py::TestWrong::test_wrong\[captcha_{name}\] ", run.output
        )
        assert f"returns NoneType, not {kind}" in run.output
    assert "has an address on a domain where real people may read it" in run.output
    assert run.code == 4, "a wrong override is the configuration's fault"
