"""Conformance probes over HTTP, against the sandbox's lab: a form for each mistake, and sound ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.harm import MOST_ACCEPTED
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


def test_workers_find_flaws_and_keep_to_the_harm_rules(lab: Any, ask: Callable[..., Any], plugin_sandbox: Any) -> None:
    forms = ("sound-api", "m01", "m22", "m30")
    before = ask(plugin_sandbox.audit)["site"]["accepted"]
    ran = lab.run("--captcha-env=lab", "--captcha-probes=safe", "-n", "4", "-k", " or ".join(forms))
    assert ran.code == 14, ran.output
    assert {form: raised(ran, form) for form in forms[::2]} == {"sound-api": set(), "m22": {"M22"}}
    assert "M01" in raised(ran, "m01") <= {"M01", *CATALOGUE["M01"].implies}
    after = ask(plugin_sandbox.audit)["site"]["accepted"]
    accepted = {form: after.get(form, 0) - before.get(form, 0) for form in forms}
    assert 0 < max(accepted.values()) <= MOST_ACCEPTED, accepted
    events = [line for line in ran.lines if line["$type"] == "event" and line["name"] == "probe"]
    assert len(events) == len(ran.verdict["probes"]) == len(forms) * sum(not p.destructive for p in CATALOGUE.values())
    (told,) = json.loads((ran.folder / "reports" / "conformance.sarif").read_text())["runs"]
    assert len(told["results"]) == len(events)
    assert "M01 no server check" in ran.output
    assert {line["purpose"] for line in ran.attempts} == {"probe"}


def test_a_probe_that_does_not_exist_is_told_before_anything(lab: Any) -> None:
    ran = lab.run("--captcha-env=lab", "--captcha-probes=M5")
    assert ran.code == 4
    assert "unknown probe 'M5'" in ran.output


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
