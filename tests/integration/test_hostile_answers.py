"""What a hostile site or service writes into any field of an exchange comes out inert, wherever it comes out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

SITE = Path(__file__).parent / "programs" / "hostile_site.py"
KINDS = ("refused", "neither", "moved", "away", "broken", "large", "json", "status", "nothing")
SETTINGS = """
[accounts.good]
provider = "sandbox"
url_env = "PROVIDER_URL"
time_scale = 0.02
[accounts.hostile]
provider = "sandbox"
url_env = "SITE_URL"
time_scale = 0.02
[env.qa]
kind = "qa"
origins = ["{site}"]
base_url = "{site}"
account = "good"
[env.both]
extends = "qa"
account = "hostile"
"""
FORM = """
[forms.{kind}]
path = "/page/{kind}"
type = "turnstile"
fields = {{ email = "{{identity.email}}" }}
success = {{ status = 303 }}
refused = {{ status = 422, text = "The captcha check failed" }}
effects = ["account"]
"""
PROBED = "plain or (refused and (token or route)) or (broken and token) or (moved and page)"
TESTS = """
import pytest
@pytest.mark.captcha
def test_plain(captcha_attempt, captcha_form_name):
    assert captcha_attempt(captcha_form_name)
"""
# Every sign of these has to be gone, or stand as an escape: C0 but for the end of a line, C1, direction, separators.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
COMMAND = re.compile(r"^\s*(::|##\[)", re.MULTILINE)
LINK = re.compile(r"(?<!\\)\[[^\]]*(?<!\\)\]\(")


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(SITE)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from (name, *texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [("qa", ("--captcha-probes=safe", "-k", PROBED)), ("both", ("-k", "plain and refused"))],
    ids=["site", "service"],
)
def test_nothing_that_comes_back_is_obeyed(
    hostile: str,
    new_project: Callable[..., Any],
    plugin_sandbox: SandboxAddresses,
    environment: str,
    arguments: tuple[str, ...],
) -> None:
    forms = "".join(FORM.format(kind=kind) for kind in KINDS)
    addresses = {"PROVIDER_URL": plugin_sandbox.provider, "SITE_URL": hostile}
    settings = SETTINGS.format(site=hostile) + forms
    project = new_project({"captcha-qa.toml": settings, "test_plain.py": TESTS}, env=addresses)
    ran = project.run(f"--captcha-env={environment}", "--junitxml=reports/junit.xml", *arguments)
    assert ran.code not in (0, 3, 4), ran.output
    assert "INTERNALERROR" not in ran.output
    assert OBEYED.findall(ran.output) == []
    assert COMMAND.findall(ran.output) == []
    written = [path for path in (ran.folder / "reports").rglob("*") if path.is_file()]
    assert {path.suffix for path in written} >= {".json", ".jsonl", ".xml"}
    for path in written:
        text = path.read_bytes().decode()  # strict: nothing invalid is written
        assert (path.name, OBEYED.findall(text.replace("\t", " "))) == (path.name, [])
    if "--captcha-probes=safe" in arguments:
        assert {it["form"] for it in ran.verdict["probes"]} == {"refused", "broken", "moved"}
        told = json.loads((ran.folder / "reports" / "conformance.sarif").read_text())
        found = list(texts(told))
        assert [text for text in found if OBEYED.search(text) or "\n" in text or len(text) > 2000] == []
        assert [text for text in found if LINK.search(text)] == []
        assert [text for text in found if "\\[click\\](//evil.example)" in text], "the hostile path has come this far"
