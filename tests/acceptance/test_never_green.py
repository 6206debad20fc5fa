"""What was not measured, or not looked at, is never green."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import SandboxAddresses

CONFIG = """\
accounts.local = {{ provider = "sandbox", url_env = "SANDBOX_PROVIDER_URL", time_scale = 0.02 }}
[env.staging]
kind = "staging"
origins = ["{origin}"]
account = "local"
[forms.login]
path = "{path}"
type = "{type}"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""
BROKEN = ("/broken", "turnstile")
UNPROTECTED = ("/unprotected", "recaptcha_v2")
SOUND = ("/turnstile", "turnstile")

FORGOTTEN = "def test_it(captcha_attempt): captcha_attempt('login')\n"
FORGOTTEN_REFUSAL = """\
def test_good(captcha_attempt): assert captcha_attempt("login")
def test_bad(captcha_form): captcha_form("login").submit(token="made-up", expect="refuse")
"""
EXPECTED_TO_FAIL = "import pytest\n@pytest.mark.xfail\n" + FORGOTTEN.replace(
    "captcha_attempt('", "assert captcha_attempt('"
)
BROKEN_OFF = """\
import pytest
def test_one(captcha_attempt): assert captcha_attempt("login")
def test_two(): pytest.exit("bye", returncode=0)
def test_three(captcha_attempt): assert captcha_attempt("login")
"""
ENDED_BEFORE = """\
import pytest
def test_one(): pytest.exit("bye", returncode=0)
def test_two(captcha_attempt): assert captcha_attempt("login")
"""
VANISHED = """\
def test_it(captcha_attempt, request):
    assert captcha_attempt("login")
    for path in request.config.rootpath.glob("reports/records/*/*.jsonl"):
        path.unlink()
"""


@pytest.mark.parametrize(
    ("form", "test", "code", "sentence"),
    [
        (BROKEN, FORGOTTEN, 1, "no test has failed of it"),
        (UNPROTECTED, FORGOTTEN_REFUSAL, 1, "a made-up token, which it must refuse"),
        (BROKEN, EXPECTED_TO_FAIL, 0, "1 xfailed"),
        (SOUND, BROKEN_OFF, 12, "the records are incomplete"),
        (SOUND, ENDED_BEFORE, 11, "no form was measured by 1 selected captcha test"),
        (SOUND, VANISHED, 12, "has vanished during the run"),
        (SOUND, FORGOTTEN, 0, "1 of 1 form ok"),
    ],
    ids=[
        "no assertion", "no assertion on a refusal", "xfail", "pytest.exit", "pytest.exit before",
        "records removed", "sound",
    ],
)  # fmt: skip
def test_a_run_is_green_only_for_what_it_has_shown(
    run_pytest: Callable[..., Any],
    sandbox: SandboxAddresses,
    form: tuple[str, str],
    test: str,
    code: int,
    sentence: str,
) -> None:
    path, type_ = form
    files = {"captcha-qa.toml": CONFIG.format(origin=sandbox.site, path=path, type=type_), "test_login.py": test}
    run = run_pytest("--captcha-env=staging", files=files, env={"SANDBOX_PROVIDER_URL": sandbox.provider})
    assert run.code == run.verdict["exit"] == code, run.output
    assert sentence in run.output
