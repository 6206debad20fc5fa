"""Django's captcha libraries in the versions of the measured table (reference/verification.md 4.1b), at a stand-in.

Each cell of the table is asserted of the library itself; then pytest sends the probes at forms that are built on these
libraries, and each finding has to be what the cells say that its answers lead to.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.sandbox.alone import StandInAddresses, StandInProcess

from .conftest import HERE, serving
from .measured import (
    ALIKE,
    ANSWERS,
    BY_NAME,
    FORMS,
    FRIENDLY,
    MISSING,
    NO_PROBE,
    PROBES,
    REFUSED,
    TOKENS,
    VERSIONS,
    expected,
)

PROOF_KEY = "0123456789abcdef0123456789abcdef"

DESTRUCTIVE = ("M06", "M37")  # M35 sends thirty posts to each form, and a rate limit is no matter of these libraries
# A family stops at its first unexpected effect, so what the default of Friendly's client accepts is asked apart.
APART = (("M03", "M16"), ("M17",), ("M13",), ("M14",), ("M15",))

SETTINGS = """\
[accounts.double]
provider = "standin"
url_env = "STANDIN_URL"
[env.staging]
kind = "staging"
origins = ["{site}"]
account = "double"
"""
HTML_FORM = """
[forms.{slug}]
path = "/{slug}/"
type = "{type}"
{score}
fields = {{ email = "{{identity.email}}", full_name = "{{identity.name}}" }}
success = {{ status = 302, location = "/welcome/" }}
refused = {{ status = 200, text = "errorlist" }}
effects = ["account"]
policy = {{ own_hostname_check = true }}
"""
API_FORM = """
[forms.{slug}]
path = "/{slug}/"
type = "{type}"
{score}
success = {{ status = 201, json = {{ ok = true }} }}
refused = {{ status = 400 }}
effects = ["account"]
policy = {{ own_hostname_check = true }}
submit.url = "/api/{slug}/"
submit.encoding = "json"
submit.token_at = "recaptcha"
submit.body = {{ email = "{{identity.email}}", full_name = "{{identity.name}}" }}
"""


@dataclass(frozen=True)
class Site:
    """The Django site, its forms with their types and sitekeys, the folder of its proofs and the stand-in it asks."""

    origin: str
    forms: Mapping[str, tuple[str, str]]
    proofs: Path
    vendor: StandInAddresses

    def settings(self, *slugs: str) -> str:
        """Return a captcha-qa.toml with these forms."""
        forms = [(slug, self.forms[slug][0], API_FORM if slug == "drf" else HTML_FORM) for slug in slugs]
        score = {"recaptcha_v3": "min_score = 0.5"}
        told = (text.format(slug=slug, type=kind, score=score.get(kind, "")) for slug, kind, text in forms)
        return SETTINGS.format(site=self.origin) + "".join(told)


@contextmanager
def site_asking(plain: str, secure: str, ca_file: str, proofs: Path) -> Iterator[str]:
    """Start the site with a vendor's addresses, and trust its authority as docs/standin.md says."""
    trust = {"SSL_CERT_FILE": ca_file, "REQUESTS_CA_BUNDLE": ca_file}
    settings = {"VENDOR_URL": plain, "VENDOR_HTTPS": secure, "PROOFS": str(proofs), **trust}
    with serving(sys.executable, str(HERE / "django_app.py"), settings=settings) as origin:
        yield origin


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, ask: Callable[..., Any]) -> Iterator[Site]:
    proofs = tmp_path_factory.mktemp("proofs")
    with StandInProcess() as process:
        vendor = process.start()
        with site_asking(vendor.vendor, vendor.vendor_https, vendor.ca_file, proofs) as origin:
            forms = {slug: (kind, key) for slug, (kind, key) in ask(f"{origin}/forms/").items()}
            yield Site(origin, forms, proofs, vendor)


def table(title: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    lines = [f"{title:32}" + "".join(f"{slug:17}" for slug in FORMS)]
    lines += [f"{name:32}" + "".join(f"{cells.get(slug, '-'):17}" for slug in FORMS) for name, cells in rows.items()]
    return "\n".join(lines)


def test_the_versions_are_those_of_the_table() -> None:
    assert {name: version(name) for name in VERSIONS} == VERSIONS


@pytest.fixture
def letter(site: Site, ask: Callable[..., Any]) -> Callable[[str, str, Mapping[str, Any]], str]:
    """`letter(origin, slug, outcome)` returns what a form's library makes of a token with that outcome."""

    def given(origin: str, slug: str, outcome: Mapping[str, Any]) -> str:
        kind, sitekey = site.forms[slug]
        wish = {"type": kind, "sitekey": sitekey, "session": "answers", "page": origin, "action": "signup"}
        token = ask(f"{site.vendor.audit}/tokens", {**wish, "outcome": outcome})["token"]
        return str(ask(f"{origin}/direct/{slug}/", {"token": token})["letter"])

    return given


def test_each_library_does_with_each_answer_what_was_measured(
    site: Site, letter: Callable[[str, str, Mapping[str, Any]], str], free_port: int
) -> None:
    nobody = f"127.0.0.1:{free_port}"
    with site_asking(f"http://{nobody}", f"https://{nobody}", site.vendor.ca_file, site.proofs) as alone:
        cells = [(row, slug) for row in ANSWERS for slug, cell in row.cells.items() if cell != "-"]
        asked = [(alone if row.name == REFUSED else site.origin, slug, row.outcome) for row, slug in cells]
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda one: letter(*one), asked))
    found: dict[str, dict[str, str]] = {row.name: dict.fromkeys(FORMS, "-") for row in ANSWERS}
    for (row, slug), one in zip(cells, said, strict=True):
        found[row.name][slug] = one
    print(table("the vendor's answer", found))
    assert found == {row.name: row.cells for row in ANSWERS}


@pytest.mark.parametrize(
    ("slug", "outcome", "expected"),
    [("recaptcha-v3-any-score", {"score": 0.0}, "A"), ("drf-v2", {}, "A"), ("drf-v2", {"score": 0.9}, "R")],
)
def test_a_score_counts_where_it_is_asked_for(
    site: Site, letter: Callable[[str, str, Mapping[str, Any]], str], slug: str, outcome: dict[str, Any], expected: str
) -> None:
    assert letter(site.origin, slug, outcome) == expected


def test_each_library_passes_on_of_each_token_what_was_measured(site: Site, ask: Callable[..., Any]) -> None:
    def fate(slug: str, value: object) -> str:
        posted = {} if value is MISSING else {"token": value}
        since = ask(f"{site.vendor.audit}/marks", {"mark": slug})["order"]
        assert ask(f"{site.origin}/direct/{slug}/", posted)["letter"] == "R"
        calls = ask(f"{site.vendor.audit}/calls?after={since}")["calls"]
        if not calls:
            return "no"
        (call,) = calls
        assert call["token"] == hashlib.sha256(str(value).encode()).hexdigest()[:16], "as its Python text, whole"
        assert (call["unknown"], call["repeated"]) == ([], False)
        return "sent"

    rows = {name: dict(zip(FORMS, told.split(), strict=True)) for name, _, told in TOKENS}
    values = {name: value for name, value, _ in TOKENS}
    found = {
        name: {slug: fate(slug, values[name]) if cell != "-" else "-" for slug, cell in cells.items()}
        for name, cells in rows.items()
    }
    print(table("the token, asked the vendor?", found))
    assert found == rows


@pytest.fixture(scope="module")
def probe(
    site: Site,
    tmp_path_factory: pytest.TempPathFactory,
    run_child: Callable[..., Any],
    write_files: Callable[[Path, Mapping[str, str]], None],
) -> Callable[[str, tuple[str, ...]], Any]:
    """`probe(asked, slugs)` runs pytest with these probes on these forms, in a team's folder of its own."""
    key = {"CAPTCHA_QA_PROOF_KEY": PROOF_KEY}

    def folder(*slugs: str) -> Path:
        team = tmp_path_factory.mktemp("team")
        write_files(team, {"pytest.ini": "[pytest]\n", "captcha-qa.toml": site.settings(*slugs)})
        return team

    command = [sys.executable, "-m", "pytest_captcha_qa.cli.main", "authorise", "staging", "--probes", "all"]
    env = {**os.environ, **key}
    subprocess.run([*command, "--output", str(site.proofs)], cwd=folder(*site.forms), env=env, check=True, timeout=60)

    def run(asked: str, slugs: tuple[str, ...]) -> Any:
        env = {**key, "STANDIN_URL": site.vendor.provider}
        return run_child(folder(*slugs), "--captcha-env=staging", f"--captcha-probes={asked}", env=env)

    return run


def test_the_probes_find_what_was_measured(site: Site, probe: Callable[[str, tuple[str, ...]], Any]) -> None:
    safe = [id for id, entry in CATALOGUE.items() if not entry.destructive] + list(DESTRUCTIVE)
    together = [id for id in safe if not any(id in apart for apart in APART)]
    runs = [(",".join(safe), FORMS[:4]), (",".join(together), FRIENDLY), *((",".join(ids), FRIENDLY) for ids in APART)]
    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda one: probe(*one), runs))
    assert [run.code for run in ran] == [14, 0, *(14 for _ in APART)], "\n".join(run.output for run in ran)
    told = {(it["probe"], it["form"]): (it["verdict"], it["reason"]) for run in ran for it in run.verdict["probes"]}
    assert set(told) == {(id, slug) for id in safe for slug in FORMS}
    print(table("the probe", {id: {slug: told[id, slug][0] for slug in FORMS} for id in safe}))

    of_the_table = {cell: expected(*cell) for cell in told if cell[0] in PROBES}
    verdicts = {cell: verdict for cell, (verdict, _) in of_the_table.items()}
    assert {cell: told[cell][0] for cell in verdicts} == verdicts
    unnamed = {cell: told[cell][1] for cell, (_, word) in of_the_table.items() if word not in told[cell][1]}
    assert unnamed == {}
    beside = {cell: said for cell, said in told.items() if cell[0] not in PROBES}
    unclear = {cell: said for cell, said in beside.items() if said[0] not in ("safe", "not applicable")}
    assert unclear == {}


def test_what_is_said_of_v3_without_a_score_and_of_a_mended_crash_holds(probe: Callable[..., Any]) -> None:
    faults = ("M13", "M14", "M15", "M16")
    ran = probe(",".join(("M09", *faults)), ("recaptcha-v3-any-score", "mended"))
    told = {(it["form"], it["probe"]): it["verdict"] for it in ran.verdict["probes"]}
    assert {id: told["mended", id] for id in faults} == dict.fromkeys(faults, "safe")
    assert told["recaptcha-v3-any-score", "M09"] == "unsafe"


def test_each_row_of_the_table_has_a_probe_or_a_reason() -> None:
    provoked = {name for names in PROBES.values() for name in names}
    assert provoked | set(NO_PROBE) == {*BY_NAME, *(name for name, _, _ in TOKENS)}
    assert not provoked & set(NO_PROBE)
    assert {BY_NAME[one].letters == BY_NAME[other].letters for one, other in ALIKE.items()} == {True}
