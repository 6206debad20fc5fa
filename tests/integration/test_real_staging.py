"""Pages that are no plain HTML form, and what surrounds a submit: one team's project against a site of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parent / "programs" / "scripted_site.py"
CAT = "not really a cat"

SETTINGS = """\
[accounts.local]
provider = "sandbox"
url_env = "PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = {origins}
base_url_env = "SITE_URL"
account = "local"

[forms.signup]
path = "/spa"
type = "turnstile"
success = {{ status = 201, json = {{ "data.ok" = true }} }}
refused = {{ status = 422, json = {{ code = "captcha" }} }}
submit.url = "/api/signup"
submit.token_at = "captcha.token"
submit.csrf = {{ cookie = "XSRF-TOKEN", header = "X-XSRF-TOKEN" }}
submit.body = {{ user = {{ email = "{{identity.email}}" }}, terms = true, captcha = {{}} }}
variants = [{{ id = "ru", headers = {{ Accept-Language = "ru" }} }}]
confirm = {{ url = "/mailbox?email={{identity.email}}", json = {{ "mails.0.subject" = "Welcome" }}, within = 20 }}
effects = ["account"]
cleanup = "flows:remove"

[forms.graph]
path = "/spa"
type = "turnstile"
success = {{ json = {{ "data.signup.email" = "fixed@example.com" }} }}
refused = {{ json = {{ "errors.0.extensions.code" = "CAPTCHA" }} }}
effects = ["mail"]
submit.url = "/graphql"
submit.token_at = "variables.input.captchaToken"
submit.body.query = "mutation($input: In!) {{ signup(input: $input) {{email}} }}"
submit.body.variables = {{ input = {{ email = "fixed@example.com" }} }}

[forms.avatar]
path = "/avatar"
type = "turnstile"
fields = {{ email = "{{identity.email}}", avatar = {{ file = "fixtures/cat.txt" }} }}
success = {{ json = {{ got = "cat.txt {cat}" }} }}
rate = "10/s"

[forms.upload]
path = "/spa"
type = "turnstile"
fields = {{ avatar = {{ file = "fixtures/cat.txt" }} }}
success = {{ json = {{ got = "cat.txt {cat}" }} }}
submit = {{ url = "/upload", encoding = "multipart", token_at = "captcha" }}

[forms.order]
path = "/checkout"
type = "turnstile"
token_field = "token"
prepare = "flows:fill_the_cart"
confirm = "flows:is_ordered"
success = {{ json = {{ ordered = true }} }}
submit = {{ url = "/order", encoding = "form", body = {{ email = "{{identity.email}}" }} }}
"""
FLOWS = """
def fill_the_cart(http, env, identity):
    answer = http.post("/cart", data={"email": identity.email})
    assert answer.status == 200
    return answer.json_value("checkout")

def is_ordered(http, env, identity):
    return http.get("/seen").status == 200 and env.name == "staging"

def remove(http, env, created):
    assert http.post("/remove", json={"email": created["email"]}).status == 200
"""
EACH_FORM = """
def test_each_form(captcha_form_name, captcha_form):
    page = captcha_form(captcha_form_name)
    assert page.submit(token="x", expect="refuse")
    assert page.submit()
"""


@pytest.fixture(scope="module")
def site(plugin_sandbox) -> Iterator[str]:
    command = [sys.executable, str(SITE), plugin_sandbox.vendor]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip()
        running.terminate()


@pytest.fixture
def project(new_project, plugin_sandbox, site) -> Callable[..., Any]:
    """`project(test, flows=FLOWS, also="")` makes a team's folder; `also` is added to its settings."""

    def new(test: str, *, flows: str = FLOWS, also: str = ""):
        settings = SETTINGS.format(origins=json.dumps([site]), cat=CAT) + also
        files = {"captcha-qa.toml": settings, "flows.py": flows, "fixtures/cat.txt": CAT, "test_it.py": test}
        return new_project(files, env={"PROVIDER_URL": plugin_sandbox.provider, "SITE_URL": site})

    return new


@pytest.fixture
def seen(site) -> Callable[[], dict[str, list[str]]]:
    def ask() -> dict[str, list[str]]:
        with urllib.request.urlopen(f"{site}/seen", timeout=10) as answer:
            return dict(json.load(answer))

    return ask


def one(form: str) -> str:
    return f"def test_one(captcha_attempt):\n    assert captcha_attempt({form!r})\n"


def cli(project: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_captcha_qa.cli.main", *arguments]
    return subprocess.run(command, cwd=project.folder, env=project.env, capture_output=True, text=True, timeout=60)


def test_every_form_is_refused_and_accepted_and_its_traces_are_removed(project, seen):
    made = project(EACH_FORM)
    before = len(seen()["languages"])
    ran = made.run("--captcha-env=staging", "--captcha-run-id=r1", "-v")

    assert ran.code == 0, ran.output
    names = ["signup", "signup:ru", "graph", "avatar", "upload", "order"]
    for name in names:
        assert f"test_each_form[{name}] PASSED" in ran.output
    accepted = [line for line in ran.attempts if line["expect"] == "accept"]
    assert [(line["slug"], line["variant"]) for line in accepted] == [
        (name.partition(":")[0], name.partition(":")[2] or None) for name in names
    ]
    assert {line["slug"] for line in accepted if "confirm" in line["seconds"]} == {"signup", "order"}
    assert {line["slug"] for line in accepted if "rate" in line["seconds"]} == {"avatar"}
    assert seen()["languages"][before:].count("ru") == 3  # the page and two submits

    accounts = seen()["accounts"]
    assert len(accounts) == 2
    cleaned = cli(made, "cleanup", "r1")
    assert cleaned.returncode == 0, cleaned.stderr
    for email in accounts:
        assert f"signup: account of {email}: cleaned by flows:remove" in cleaned.stdout
    assert "graph: mail of " in cleaned.stdout
    assert "left, the form names no cleanup" in cleaned.stdout
    assert cleaned.stdout.splitlines()[-1] == "run r1: 2 of 3 cleaned"
    assert seen()["accounts"] == []

    again = cli(made, "cleanup", "r1", "--json")
    assert again.returncode == 1
    assert [entry["cleaned"] for entry in json.loads(again.stdout)["created"]] == [False, False, False]
    assert "an assertion of flows:remove failed at flows.py:11" in again.stdout

    made.write({"flows.py": "def remove(http, env, created): return http.post('/nowhere')\n"})
    kept = cli(made, "cleanup", "r1")
    assert kept.returncode == 1
    assert "flows:remove returned an answer with status 404: it was not removed" in kept.stderr


def test_a_test_may_override_a_value_of_the_body(project):
    test = """
def test_it(captcha_form):
    outcome = captcha_form("graph").submit(**{"variables.input.email": "other@example.com"})
    assert outcome.verdict.status == "error"
    assert 'JSON data.signup.email = "fixed@example.com"' in outcome.verdict.reason
"""
    ran = project(test).run("--captcha-env=staging")
    assert "1 passed" in ran.output
    assert ran.attempts[0]["outcome"] == "indeterminate"


def test_an_effect_that_never_shows_is_the_products_fault(project):
    also = '[env.staging.forms.signup]\nconfirm = { url = "/mailbox?email=nobody", json = { "mails.0.subject" = "x" }, \
within = 1 }\n'
    ran = project(one("signup"), also=also).run("--captcha-env=staging")

    (line,) = ran.attempts
    assert ran.code == 1
    assert (line["verify_status"], line["outcome"], line["fault"]) == ("pass", "failed", "product")
    assert line["error"]["code"] == "effect_missing"
    assert "accepted, but the effect never showed" in line["error"]["message"]
    assert line["seconds"]["confirm"] < 3
    evidence = "".join(path.read_text() for path in ran.folder.glob("reports/failures/*/*"))
    assert "/api/signup" in evidence
    assert "@example.com" not in evidence
    assert "a=b/c d" not in evidence


@pytest.mark.parametrize(
    ("flows", "code", "fault", "words"),
    [
        ("def fill_the_cart(http, env, identity):\n    return None\n", 4, "config", "leads to a login"),
        (
            "def fill_the_cart(http, env, identity):\n    return identity.nothing\n",
            4,
            "config",
            "forms.order.prepare: flows:fill_the_cart itself raised AttributeError (nothing) at flows.py:2",
        ),
        (
            "def fill_the_cart(http, env, identity):\n    assert http.get('/nowhere').status == 200\n",
            1,
            "product",
            "forms.order.prepare: an assertion of flows:fill_the_cart failed at flows.py:2",
        ),
        (
            "def fill_the_cart(http, env, identity):\n    http.get('http://127.0.0.1:9/')\n",
            15,
            "scope",
            "http://127.0.0.1:9 is not among the origins",
        ),
        (
            "def fill_the_cart(http, env, identity):\n    return 7\n",
            4,
            "config",
            "returned int; it returns the page's path",
        ),
    ],
    ids=["login", "error", "assertion", "scope", "return value"],
)
def test_what_goes_wrong_before_the_form_says_whose_fault_it_is(project, flows, code, fault, words):
    flows += "def is_ordered(*all): ...\ndef remove(*all): ...\n"
    ran = project(one("order"), flows=flows).run("--captcha-env=staging")

    assert ran.code == code, ran.output
    assert ran.attempts[0]["fault"] == fault
    assert words in ran.attempts[0]["error"]["message"]


@pytest.mark.parametrize(
    ("flows", "words"),
    [
        ("", "unknown function 'fill_the_cart' in flows, which forms.order.prepare names"),
        ("import nowhere\n", "forms.order.prepare: flows cannot be imported: there is no module nowhere"),
        ("1 / 0\n", "flows:fill_the_cart cannot be imported: its module raised ZeroDivisionError at flows.py:1"),
    ],
    ids=["no function", "no module", "error"],
)
def test_a_function_that_cannot_be_found_is_told_before_the_first_test(project, flows, words):
    test = "import pytest\n@pytest.mark.captcha(form='order')\n" + one("order")
    ran = project(test, flows=flows).run("--captcha-env=staging")

    assert ran.code == 4, ran.output
    assert words in ran.output
    assert ran.attempts == []


def test_a_missing_file_is_told_before_the_first_test(project):
    made = project("import pytest\n@pytest.mark.captcha(form='upload')\n" + one("upload"))
    (made.folder / "fixtures" / "cat.txt").unlink()
    ran = made.run("--captcha-env=staging")

    assert ran.code == 4
    assert "forms.upload.fields.avatar: " in ran.output
    assert "cat.txt is no file" in ran.output


def test_a_rate_that_leaves_no_turn_is_our_own_limit(project):
    also = '[env.staging.forms.upload]\nrate = "1/h"\n'
    test = """
def test_two(captcha_attempt):
    assert captcha_attempt("upload")
    captcha_attempt("upload")
"""
    ran = project(test, also=also).run("--captcha-env=staging")

    assert ran.code == 13, ran.output
    assert "gives this attempt its turn in" in ran.attempts[-1]["error"]["message"]


def collected(name: str) -> str:
    return f"import pytest\n@pytest.mark.captcha(form={name!r})\ndef test_it(captcha_form_name): ...\n"


@pytest.mark.parametrize(("name", "ids"), [("signup", ["signup", "signup:ru"]), ("signup:ru", ["signup:ru"])])
def test_a_marker_that_names_a_form_means_its_variants_too(project, name, ids):
    ran = project(collected(name)).run("--captcha-env=staging", "--co", "-q")

    assert ran.code == 0
    assert [line for line in ran.output.splitlines() if line.startswith("test_it")] == [
        f"test_it.py::test_it[{one}]" for one in ids
    ]


def test_a_variant_that_does_not_exist_is_told_with_the_nearest(project):
    ran = project(collected("signup:ur")).run("--captcha-env=staging", "--co", "-q")

    assert ran.code == 4
    assert "unknown form 'signup:ur'" in ran.output
    assert "did you mean 'signup:ru'?" in ran.output


def test_an_unknown_run_cannot_be_cleaned_up(project):
    made = project("def test_it(): ...")
    without = cli(made, "cleanup", "r9")
    (made.folder / "reports" / "records").mkdir(parents=True)
    unknown = cli(made, "cleanup", "r9")

    assert (without.returncode, unknown.returncode) == (4, 4)
    assert "there are no records in" in without.stderr
    assert "unknown run 'r9'" in unknown.stderr
