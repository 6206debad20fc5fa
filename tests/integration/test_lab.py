"""The lab's forms as a project sees them: opened, solved and submitted over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.sandbox.lab.posts import ACTION
from pytest_captcha_qa.sandbox.lab.table import LAB
from pytest_captcha_qa.sandbox.server import SandboxAddresses

ENVIRONMENT = Path(__file__).parents[2] / "fixtures" / "environments" / "conformance.toml"

WAIT = 10.0
ABOUT_THE_ANSWER = ("m07", "m08", "m09", "m10", "m11", "m13", "m14", "m15", "m16", "m17", "m20", "m28")
FORMS = {form.slug: form for form in LAB if form.slug in ("sound", "sound-open", "m13", "m14", "m15", "m20")}
# What the vendor does, and which forms take the token all the same.
TROUBLES: list[tuple[dict[str, Any], set[str]]] = [
    ({"delay": 1.5}, {"m13", "sound-open"}),
    ({"status": 503}, {"m14", "sound-open"}),
    ({"status": 429}, {"m14"}),
    ({"status": 401, "body": "html"}, {"m14"}),
    ({"body": "reset"}, {"m14", "sound-open"}),
    ({"body": "html"}, {"m15", "sound-open"}),
    ({"body": "empty"}, {"m15", "sound-open"}),
    ({"body": "null"}, {"m15", "sound-open"}),
    ({"body": "truncated"}, {"m15", "sound-open"}),
    ({"body": "redirect"}, {"m15", "sound-open"}),
    ({"body": "redirect_html"}, {"m15", "sound-open"}),
    *(({"certificate": kind}, {"m14", "sound-open"}) for kind in ("other_host", "expired", "untrusted")),
    ({"code": "timeout-or-duplicate"}, set()),
    ({}, set(FORMS)),
]


def _takes(sandbox: SandboxAddresses, slug: str, outcome: dict[str, Any]) -> bool:
    """Return whether a form takes a token about which the vendor answers so."""
    form = FORMS[slug]
    wish = {"type": "turnstile", "sitekey": form.keys.sitekey, "page": sandbox.site, "session": "lab", "action": ACTION}
    told = requests.post(f"{sandbox.vendor}/standin/tokens", json={**wish, "outcome": outcome}, timeout=WAIT).json()
    with requests.Session() as visitor:
        page = visitor.get(sandbox.site + form.path, timeout=WAIT).text
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert csrf
        posted = {"csrf_token": csrf[1], "email": "ann@example.com", "name": "Ann", form.kind.field_name: told["token"]}
        reply = visitor.post(sandbox.site + form.path, posted, timeout=WAIT, allow_redirects=False)
    assert reply.status_code in (303, 422)
    return reply.status_code == 303


def test_forms_are_open_in_the_trouble_that_is_their_mistake_and_in_no_other(plugin_sandbox: SandboxAddresses) -> None:
    pairs = [(slug, outcome) for outcome, _ in TROUBLES for slug in FORMS]
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda pair: _takes(plugin_sandbox, *pair), pairs))
    found = [{slug for slug in FORMS if taken[pairs.index((slug, outcome))]} for outcome, _ in TROUBLES]
    assert list(zip([outcome for outcome, _ in TROUBLES], found, strict=True)) == TROUBLES


@pytest.mark.soak
def test_each_mistake_about_the_vendors_answer_is_found_by_its_own_probe(
    new_project: Callable[..., Any], plugin_sandbox: SandboxAddresses, prove: Callable[..., dict[str, str]]
) -> None:
    settings = ENVIRONMENT.read_text("utf-8").replace("http://127.0.0.1:9", plugin_sandbox.site)
    settings = settings.replace('"sandbox"', '"standin"').replace("time_scale = 0.02\n", "")
    addresses = {"PROVIDER_URL": plugin_sandbox.vendor, "SITE_URL": plugin_sandbox.site, **prove(EnvKind.QA)}
    project = new_project({"captcha-qa.toml": settings}, env=addresses)
    chosen = " or ".join(("sound", *ABOUT_THE_ANSWER))
    ran = project.run("--captcha-env=lab", "--captcha-probes=vendor", "-n", "2", "-k", chosen)
    found = {
        slug: set[str]() for slug in (form.slug for form in LAB if not form.probe or form.slug in ABOUT_THE_ANSWER)
    }
    for probe in ran.verdict["probes"]:
        if probe["verdict"] in ("unsafe", "crash"):
            found[probe["form"]].add(probe["probe"])
    assert found == {slug: {slug.upper()} if slug in ABOUT_THE_ANSWER else set() for slug in found}, ran.output
