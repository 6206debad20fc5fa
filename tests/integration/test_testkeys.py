"""A site with the vendors' official test keys, without any solving service; the sandbox plays the vendors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

FORM = """
[env.testing.forms.{slug}]
path = "/{path}"
type = "{kind}"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""
GOOD = {
    "checkbox": ("test-recaptcha-v2", "recaptcha_v2"),
    "gate": ("test-turnstile", "turnstile"),
    "poll": ("test-hcaptcha", "hcaptcha"),
}
OTHERS = {
    "failing": ("test-turnstile-fails", "turnstile"),
    "real": ("turnstile", "turnstile"),
}
OWN_TESTS = """
import pytest

def test_a_secret_that_always_fails_is_honoured(captcha_form):
    assert captcha_form("failing").submit(token="XXXX.DUMMY.TOKEN.XXXX", expect="refuse")

@pytest.mark.parametrize("form", ["failing", "real"])
def test_no_token(captcha_token, form):
    captcha_token(form)
"""


@pytest.fixture
def project(staging: Callable[..., Any], plugin_sandbox: Any) -> Callable[..., Any]:
    """Return a project whose environment `testing` uses test keys on these forms."""

    def new(forms: dict[str, tuple[str, str]], files: dict[str, str]) -> Any:
        env = '[accounts.official]\nprovider = "testkeys"\n[env.testing]\nkind = "qa"\naccount = "official"\n'
        env += f'origins = ["{plugin_sandbox.site}"]\nforms.login.enabled = false\n'
        tables = "".join(FORM.format(slug=slug, path=path, kind=kind) for slug, (path, kind) in forms.items())
        return staging(files, settings=env + tables)

    return new


def test_the_suites_prove_what_test_keys_can_and_skip_the_rest_with_the_reason(
    project: Callable[..., Any], requests_at_site: Callable[[], Any]
) -> None:
    before = requests_at_site()["provider"]
    ran = project(GOOD, {}).run("--captcha-env=testing", "--captcha-suite", "-rs")

    assert (ran.code, ran.counts) == (0, "11 passed, 4 skipped, 40 deselected"), ran.output
    skipped = Counter(line.partition(": ")[2][:45] for line in ran.output.splitlines() if line.startswith("SKIPPED"))
    assert sum(skipped.values()) == 4
    assert "with official test keys any text is a good token: the recaptcha_v2 test secret" in ran.output
    assert "with official test keys a used token is as good as a new one: turnstile test secrets" in ran.output
    assert {a["key_mode"] for a in ran.attempts} == {"testkeys"}
    assert {a["provider"] for a in ran.attempts} == {"testkeys"}
    assert {slug: form["verdict"] for slug, form in ran.verdict["forms"].items()} == dict.fromkeys(GOOD, "ok")
    assert "keys testkeys: vendor test keys can prove the wiring, not that real tokens are judged" in ran.output
    assert requests_at_site()["provider"] == before, "no solving service takes part"


def test_a_page_without_a_test_key_that_passes_is_told_what_is_expected(project: Callable[..., Any]) -> None:
    ran = project(OTHERS, {"test_own.py": OWN_TESTS}).run("--captcha-env=testing", "-k", "test_own")

    assert "1 passed" in ran.counts, ran.output
    assert "2 failed" in ran.counts, ran.output
    for words in (
        "the official test key that never passes; set the site up with 1x00000000000000000000AA",
        "which is no official test key of turnstile",
    ):
        assert words in ran.output, ran.output


def test_a_type_that_has_no_test_keys_is_told_before_the_first_test(project: Callable[..., Any]) -> None:
    ran = project({"keyless": ("altcha", "altcha")}, {}).run("--captcha-env=testing", "--captcha-suite")

    assert ran.code == 4, ran.output
    assert "forms.keyless.type: altcha has no official test keys, there are some for recaptcha_v2" in ran.output


def test_test_keys_in_production_are_an_error_of_the_configuration(staging: Callable[..., Any]) -> None:
    live = """
[accounts.official]
provider = "testkeys"
[env.live]
kind = "production"
origins = ["https://shop.example"]
account = "official"
"""
    ran = staging({"test_own.py": OWN_TESTS}, settings=live).run("--captcha-env=live")

    assert ran.code == 4, ran.output
    assert "uses the vendors' official test keys, which let everybody pass" in ran.output
