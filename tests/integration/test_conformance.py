"""Conformance probes over HTTP, against the sandbox's lab: a form for each mistake, and sound ones."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.families.load import LOCKOUT_TRIES, PARALLEL, PER_SECOND, POSTS
from pytest_captcha_qa.conformance.harm import MOST_ACCEPTED
from pytest_captcha_qa.conformance.place import LEASE
from pytest_captcha_qa.sandbox.server import SandboxAddresses

ENVIRONMENT = Path(__file__).parents[2] / "fixtures" / "environments" / "conformance.toml"
NEEDING = {id for id, probe in CATALOGUE.items() if probe.needs_standin}
AGAINST = ("unsafe", "crash")
# M32 is a mistake in production, where nothing of a sandbox may be sent: its unit tests have it.
ONLY_IN_PRODUCTION = "M32"


@pytest.fixture
def lab(new_project: Callable[..., Any], plugin_sandbox: SandboxAddresses) -> Any:
    settings = ENVIRONMENT.read_text("utf-8").replace("http://127.0.0.1:9", plugin_sandbox.site)
    addresses = {"PROVIDER_URL": plugin_sandbox.provider, "SITE_URL": plugin_sandbox.site}
    return new_project({"captcha-qa.toml": settings}, env=addresses)


def raised(ran: Any, form: str) -> set[str]:
    return {found["probe"] for found in ran.verdict["probes"] if found["form"] == form and found["verdict"] in AGAINST}


MORE_FORMS = """
[forms.locking]
path = "/lab/sound-hcaptcha"
type = "hcaptcha"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
effects = ["account", "lockout"]

[forms.paying]
path = "/lab/m12"
type = "turnstile"
fields = { card = "4242424242424242" }
success = { status = 303, location = "/welcome*" }
effects = ["payment"]
"""
ORDINARY = """
import pytest

FORMS = [*["sound-v3"] * 6, "sound-page", "m38"]

@pytest.mark.parametrize("number", range(8))
def test_ordinary(captcha_attempt, number):
    assert captcha_attempt(FORMS[number])
"""
ASKED = "test_ordinary or m01 or (m22 and route) or (sound-api and route) or (locking and load) or (paying and token)"


def four_workers(
    new_project: Callable[..., Any], sandbox: SandboxAddresses, ask: Callable[..., Any], asked: str
) -> tuple[Any, list[dict[str, Any]]]:
    """Return a run of four workers with all probes, and what reached the site meanwhile."""
    settings = ENVIRONMENT.read_text("utf-8").replace("http://127.0.0.1:9", sandbox.site) + MORE_FORMS
    addresses = {"PROVIDER_URL": sandbox.provider, "SITE_URL": sandbox.site}
    project = new_project({"captcha-qa.toml": settings, "test_ordinary.py": ORDINARY}, env=addresses)
    before = ask(f"{sandbox.audit}/requests")["last"]
    # Worksteal gives each worker a quarter of the tests: the last has those that must be alone, the first others.
    ran = project.run("--captcha-env=lab", "--captcha-probes=all", "-n4", "--dist=worksteal", "-k", asked)
    return ran, ask(f"{sandbox.audit}/requests?after={before}")["requests"]


@pytest.fixture(scope="module")
def all_workers(
    new_project: Callable[..., Any], plugin_sandbox: SandboxAddresses, ask: Callable[..., Any]
) -> tuple[Any, list[dict[str, Any]]]:
    """Four workers and a form that accepts everything, beside sound ones, flawed ones and ordinary tests."""
    return four_workers(new_project, plugin_sandbox, ask, ASKED)


def posts_to(requests: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    return [it for it in requests if it["path"].rstrip("/") == f"/lab/{form}" and it["method"] == "POST"]


def test_workers_find_flaws_and_tell_each_probe_once(all_workers: Any) -> None:
    ran, _ = all_workers
    assert ran.code == 14, ran.output
    assert {form: raised(ran, form) for form in ("sound-api", "m22")} == {"sound-api": set(), "m22": {"M22"}}
    assert "M01" in raised(ran, "m01") <= {"M01", *CATALOGUE["M01"].implies}
    events = [line for line in ran.lines if line["$type"] == "event" and line["name"] == "probe"]
    assert len(events) == len(ran.verdict["probes"])
    assert {it["probe"] for it in ran.verdict["probes"] if it["form"] == "m01"} == set(CATALOGUE)
    (told,) = json.loads((ran.folder / "reports" / "conformance.sarif").read_text())["runs"]
    assert len(told["results"]) == len(events)
    assert "M01 no server check" in ran.output
    ordinary = [line for line in ran.attempts if "test_ordinary" in line["nodeid"]]
    assert {(line["purpose"], line["outcome"]) for line in ordinary} == {("check", "ok")}
    assert len(ordinary) == 8


def beside(requests: list[dict[str, Any]], form: str) -> set[str]:
    """Return where else somebody was between the first and the last post to a form."""
    own = posts_to(requests, form)
    meanwhile = [it["path"] for it in requests if own[0]["order"] <= it["order"] <= own[-1]["order"]]
    return {path for path in meanwhile if not path.startswith(f"/lab/{form}")}


def test_nobody_else_is_at_the_site_while_a_destructive_probe_is(all_workers: Any) -> None:
    _, requests = all_workers
    own, paths = posts_to(requests, "sound-hcaptcha"), {it["path"] for it in requests}
    assert len(own) > PARALLEL
    assert len(paths) > 3, "there was somebody to keep away"
    # That they wait, and are not only late, is shown without a clock by the unit tests of `Place`.
    assert beside(requests, "sound-hcaptcha") == set()


def test_no_harm_rule_is_exceeded_by_four_workers_and_a_form_that_accepts_everything(all_workers: Any) -> None:
    ran, requests = all_workers
    run_id = ran.lines[0]["run_id"].lower()
    taken = [it for it in posts_to(requests, "m01") if it["size"]]
    assert 0 < len(taken) <= MOST_ACCEPTED
    by_family = Counter(line["nodeid"] for line in ran.attempts if line["slug"] == "m01" and line["expect"] == "refuse")
    assert max(count for node, count in by_family.items() if "load" not in node) <= 3  # bare, made-up and the first
    locking = posts_to(requests, "sound-hcaptcha")
    large = [sum(it["size"] >= size for it in locking) for size in (5000, 100_000)]
    assert large[1] == 1
    assert len(locking) <= 1 + PARALLEL + 3 + LOCKOUT_TRIES
    tries = Counter(it["email"] for it in locking)
    assert max(tries.values()) == LOCKOUT_TRIES
    assert list(tries.values()).count(1) == len(tries) - 1
    assert not posts_to(requests, "m12")
    assert {it["email"].split(".")[1] for it in requests if it["email"]} == {run_id}
    claimed = [(it["path"], it["claimed"]) for it in requests if it["claimed"]]
    assert all(address.startswith("192.0.2.") for _, address in claimed)
    assert max(Counter(path for path, _ in claimed).values()) <= 2
    assert "DELETE" not in {it["method"] for it in requests}


def test_a_probe_that_does_not_exist_is_told_before_anything(lab: Any) -> None:
    ran = lab.run("--captcha-env=lab", "--captcha-probes=M55")
    assert ran.code == 4
    assert "unknown probe 'M55'" in ran.output


OWN = """
def test_nothing_asked_is_nothing_proved(captcha_probes):
    captcha_probes("sound", "replay").require_safe()

def test_asked(captcha_probes):
    captcha_probes("sound", "page").require_safe()

def test_no_such_form(captcha_probes):
    captcha_probes("sond", "page")

def test_no_such_family(captcha_probes):
    captcha_probes("sound", "pages")
"""


def test_a_test_of_ones_own_proves_nothing_by_what_was_not_asked(lab: Any) -> None:
    (lab.folder / "test_own.py").write_text(OWN)
    ran = lab.run("--captcha-env=lab", "--captcha-probes=page", "test_own.py", "-k", "test_own", "-rs")
    assert "2 failed, 1 passed, 1 skipped" in ran.output
    assert "no conformance probe of family 'replay' was asked for" in ran.output
    assert "unknown form 'sond'; did you mean 'sound'?" in ran.output
    assert "unknown family of probes 'pages'; did you mean 'page'?" in ran.output


DYING = """
import os

def test_dies(captcha_form):
    captcha_form("sound")
    os._exit(1)
"""


@pytest.mark.soak
def test_a_worker_that_died_at_the_site_is_not_waited_for_longer_than_its_lease(
    new_project: Callable[..., Any], plugin_sandbox: SandboxAddresses
) -> None:
    settings = ENVIRONMENT.read_text("utf-8").replace("http://127.0.0.1:9", plugin_sandbox.site) + MORE_FORMS
    addresses = {"PROVIDER_URL": plugin_sandbox.provider, "SITE_URL": plugin_sandbox.site}
    project = new_project({"captcha-qa.toml": settings, "test_dying.py": DYING}, env=addresses)
    began = time.monotonic()
    ran = project.run("--captcha-env=lab", "--captcha-probes=M37", "-n2", "-k", "test_dies or (locking and load)")
    assert LEASE / 2 < time.monotonic() - began < LEASE + 60
    assert "crashed while running" in ran.output
    assert [(it["probe"], it["verdict"]) for it in ran.verdict["probes"]] == [("M37", "safe")], ran.output


@pytest.mark.soak
def test_a_form_without_a_limit_gets_thirty_posts_at_five_a_second_and_nobody_comes_between(
    new_project: Callable[..., Any], plugin_sandbox: SandboxAddresses, ask: Callable[..., Any]
) -> None:
    ran, requests = four_workers(new_project, plugin_sandbox, ask, "test_ordinary or (m35 and load)")
    assert raised(ran, "m35") == {"M35"}, ran.output
    posts = posts_to(requests, "m35")
    assert POSTS <= len(posts) <= 1 + PARALLEL + 3 + POSTS
    at = [it["at"] for it in posts][-POSTS:]
    assert all(later - earlier >= 0.85 for earlier, later in zip(at, at[PER_SECOND:], strict=False))
    assert [sum(it["size"] >= size for it in posts) for size in (2049, 5000, 100_000)] == [3, 2, 1]
    assert beside(requests, "m35") == set()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("asked", "forms"),
    [("safe", ""), ("M06,M37", "sound or m05 or m06 or m37"), ("M35", "sound-v3 or m35")],
    ids=["safe", "at once, long", "limit"],
)
def test_every_flawed_form_is_found_by_its_own_probe(lab: Any, asked: str, forms: str) -> None:
    ran = lab.run("--captcha-env=lab", f"--captcha-probes={asked}", "-n", "2", "-k", forms)
    probed = {found["probe"] for found in ran.verdict["probes"]} - {ONLY_IN_PRODUCTION, *NEEDING}
    matrix = {form: raised(ran, form) for form in dict.fromkeys(found["form"] for found in ran.verdict["probes"])}
    print("\n".join(f"{form:16} {' '.join(sorted(found)) or '-'}" for form, found in matrix.items()))
    for form, found in matrix.items():
        own = form.upper()
        implied = set(CATALOGUE[own].implies) if own in CATALOGUE else set()
        expected = {own} & probed
        assert expected <= found <= expected | implied, form
