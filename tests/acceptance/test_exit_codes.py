"""Runs that end 1, 4, 12, 13 and 15, each for the right reason, against the sandbox's site."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.ownership import ProofKey, ProofTerms, render
from pytest_captcha_qa.sandbox.server import SandboxAddresses
from pytest_captcha_qa.scope import OriginPattern

TESTS = """\
def test_accepted(captcha_attempt):
    outcome = captcha_attempt("{form}")
    assert outcome, outcome
"""


@pytest.fixture
def site(sandbox: SandboxAddresses) -> dict[str, str]:
    return {"SANDBOX_PROVIDER_URL": sandbox.provider, "BASE_URL": sandbox.site}


def config(origin: str, *, form_path: str = "/turnstile", kind: str = "staging", more: str = "") -> str:
    return f"""\
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "{kind}"
origins = ["{origin}"]
account = "local"
{more}
[forms.login]
path = "{form_path}"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_sound_form_ends_0(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    files = {"captcha-qa.toml": config(site["BASE_URL"]), "test_login.py": TESTS.format(form="login")}
    run = run_pytest("--captcha-env=staging", files=files, env=site)
    assert run.code == 0, run.output


def test_a_form_whose_backend_refuses_good_tokens_ends_1(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    files = {
        "captcha-qa.toml": config(site["BASE_URL"], form_path="/broken"),
        "test_login.py": TESTS.format(form="login"),
    }
    run = run_pytest("--captcha-env=staging", files=files, env=site)

    assert run.code == run.verdict["exit"] == 1, run.output
    assert run.verdict["forms"]["login"]["fault"] == "product"
    assert "the site refused a fresh token" in run.output
    [attempt] = run.attempts
    assert (attempt["verify_status"], attempt["outcome"], attempt["fault"]) == ("fail", "failed", "product")


def test_a_misspelt_form_ends_4_with_the_nearest_name(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    files = {"captcha-qa.toml": config(site["BASE_URL"]), "test_login.py": TESTS.format(form="logn")}
    run = run_pytest("--captcha-env=staging", files=files, env=site)

    assert run.code == 4, run.output
    assert "unknown form 'logn'" in run.output
    assert "did you mean 'login'?" in run.output
    assert run.of_type("started") == []


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "xdist"])
def test_a_misspelt_form_in_a_marker_ends_4(
    run_pytest: Callable[..., Any], site: dict[str, str], workers: tuple[str, ...]
) -> None:
    test = "import pytest\n@pytest.mark.captcha(form='logn')\ndef test_it(captcha_form_name): pass\n"
    files = {"captcha-qa.toml": config(site["BASE_URL"]), "test_login.py": test}
    run = run_pytest("--captcha-env=staging", *workers, files=files, env=site)
    assert run.code == 4, run.output
    assert "did you mean 'login'?" in run.output


def test_a_misspelt_environment_ends_4(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    files = {"captcha-qa.toml": config(site["BASE_URL"]), "test_login.py": TESTS.format(form="login")}
    run = run_pytest("--captcha-env=stagin", files=files, env=site)
    assert run.code == 4, run.output
    assert "did you mean 'staging'?" in run.output


def test_a_missing_secret_ends_4_and_names_the_variable(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    text = config(site["BASE_URL"]).replace('url_env = "SANDBOX_PROVIDER_URL"', 'api_key_env = "SHOP_KEY"')
    text = text.replace('"sandbox"', '"captchaai"').replace("time_scale = 0.02\n", "")
    files = {"captcha-qa.toml": text, "test_login.py": TESTS.format(form="login")}
    run = run_pytest("--captcha-env=staging", files=files)
    assert run.code == 4, run.output
    assert "SHOP_KEY" in run.output


@pytest.mark.parametrize(("outage", "time_scale"), [("error", "1"), ("skip", "0.02")])
def test_a_provider_that_is_down_ends_12_within_half_a_minute(
    run_pytest: Callable[..., Any], site: dict[str, str], outage: str, time_scale: str
) -> None:
    down = {"SANDBOX_PROVIDER_URL": f"http://127.0.0.1:{closed_port()}"}
    text = config(site["BASE_URL"]).replace("time_scale = 0.02\n", f"time_scale = {time_scale}\n")
    files = {"captcha-qa.toml": text}
    began = time.monotonic()
    run = run_pytest(
        "--captcha-env=staging", f"--captcha-outage={outage}", "--pyargs", "pytest_captcha_qa.suites",
        files=files, env=down,
    )  # fmt: skip

    assert run.code == run.verdict["exit"] == 12, run.output
    assert time.monotonic() - began < 30
    assert run.verdict["forms"]["login"]["fault"] == "provider"
    assert ("2 failed" in run.output) == (outage == "error")
    assert {a["fault"] for a in run.attempts if a["expect"] == "accept"} == {"provider"}


def test_a_used_up_budget_ends_13(run_pytest: Callable[..., Any], site: dict[str, str]) -> None:
    test = "import pytest\n@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_it(captcha_attempt, n):\n"
    test += "    assert captcha_attempt('login')\n"
    files = {"captcha-qa.toml": config(site["BASE_URL"]), "test_login.py": test}
    run = run_pytest("--captcha-env=staging", "--captcha-budget=2", files=files, env=site)

    assert run.code == 13, run.output
    assert sum(a["submits"] for a in run.attempts) == 2
    assert "--captcha-budget" in run.output


REFUSAL = """\
def test_refused(captcha_form):
    assert captcha_form("login").submit(token="made-up", expect="refuse")
"""
KEY = "5e" * 32
OTHER_KEY = "0f" * 32


def proof(origin: str, *, key: str = KEY, days: float = 30) -> dict[str, str]:
    """Return what the site must serve: the proof's name, always ours, and its text, signed with `key`."""
    terms = ProofTerms((OriginPattern.parse(origin),), EnvKind.STAGING, time.time() + days * 86400)
    return {ProofKey(KEY).id: render(terms, ProofKey(key))}


@pytest.fixture
def live_site(site: dict[str, str], sandbox: SandboxAddresses, ask: Callable[..., Any]) -> Iterator[dict[str, str]]:
    """The sandbox's site under an account that is a real provider's, so that it needs a proof even on loopback."""
    yield site | {"SHOP_KEY": "k" * 32, "CAPTCHA_QA_PROOF_KEY": KEY}
    ask(f"{sandbox.audit}/control", {"proofs": {ProofKey(KEY).id: "none"}})


def live_config(origin: str) -> str:
    text = config(origin).replace('"sandbox"', '"captchaai"').replace("time_scale = 0.02\n", "")
    return text.replace('url_env = "SANDBOX_PROVIDER_URL"', 'api_key_env = "SHOP_KEY"')


@pytest.mark.parametrize(
    ("served", "code", "sentence"),
    [
        (lambda origin: {}, 15, "does not exist; make the file"),
        (lambda origin: proof(origin, key=OTHER_KEY), 15, "was not signed with the key"),
        (lambda origin: proof(origin, days=-1), 15, "expired"),
        (lambda origin: proof("https://staging.shop.example"), 15, "does not list it"),
        (lambda origin: proof(origin), 0, "1 passed"),
    ],
    ids=["no proof", "copied under another key", "expired", "of another origin", "valid"],
)
def test_an_origin_is_tested_with_a_valid_proof_only(
    run_pytest: Callable[..., Any],
    ask: Callable[..., Any],
    sandbox: SandboxAddresses,
    live_site: dict[str, str],
    served: Callable[[str], dict[str, str]],
    code: int,
    sentence: str,
) -> None:
    ask(f"{sandbox.audit}/control", {"proofs": served(sandbox.site)})
    files = {"captcha-qa.toml": live_config(sandbox.site), "test_login.py": REFUSAL}
    before = ask(sandbox.audit)["site"]

    run = run_pytest("--captcha-env=staging", files=files, env=live_site)

    assert run.code == run.verdict["exit"] == code, run.output
    assert sentence in run.output
    [attempt] = run.attempts
    if code:
        assert ask(sandbox.audit)["site"] == before
        assert (attempt["fault"], attempt["error"]["code"]) == ("scope", "scope_denied")


def test_an_origin_outside_the_list_ends_15_and_nothing_is_sent(
    run_pytest: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses, site: dict[str, str]
) -> None:
    """The page redirects to an origin that is not configured: the redirect is not followed."""
    text = config(sandbox.site, form_path="/redirect?to=http://127.0.0.1:9/turnstile")
    files = {"captcha-qa.toml": text, "test_login.py": REFUSAL}
    before = ask(sandbox.audit)["site"]["posts"]

    run = run_pytest("--captcha-env=staging", files=files, env=site)

    assert run.code == run.verdict["exit"] == 15, run.output
    assert "http://127.0.0.1:9" in run.output
    assert ask(sandbox.audit)["site"]["posts"] == before
