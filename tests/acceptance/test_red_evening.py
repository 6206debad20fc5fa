"""A red evening, replayed: what goes wrong around a suite of four forms, and whom each run blames.

`pytest -s` shows what a team would read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import keys
from pytest_captcha_qa.sandbox.server import SandboxAddresses

CONFIG = """\
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = ["{origin}"]
base_url_env = "BASE_URL"
account = "local"
"""
FORM = """\
[forms.{slug}]
path = "/{path}"
type = "{type}"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""
FORMS = {
    "signup": ("recaptcha-v2", "recaptcha_v2"),
    "contact": ("recaptcha-v3", "recaptcha_v3"),
    "login": ("turnstile", "turnstile"),
    "order": ("geetest-v3", "geetest_v3"),
}
TESTS = """\
def test_a_good_token_is_accepted(captcha_attempt, captcha_form_name):
    outcome = captcha_attempt(captcha_form_name)
    assert outcome, outcome
"""
IMPATIENT = """\
def test_a_token_is_there_within_a_second(captcha_solver, captcha_form_name):
    assert captcha_solver.solve(captcha_form_name, timeout=1)
"""
Evening = Callable[..., Any]


@pytest.fixture
def evening(run_pytest: Callable[..., Any], sandbox: SandboxAddresses, ask: Callable[..., Any]) -> Iterator[Evening]:
    """Run the suite while something is wrong: `evening({"site": [...]})`, with more keys for a form."""

    def run(faults: Mapping[str, Any], *arguments: str, tests: str = TESTS, provider: str = "", **more: str) -> Any:
        tables = [FORM.format(slug=slug, path=path, type=kind) for slug, (path, kind) in FORMS.items()]
        extra = [f"{table}{more.get(slug, '')}\n" for slug, table in zip(FORMS, tables, strict=True)]
        ask(f"{sandbox.audit}/control", {"faults": faults})
        done = run_pytest(
            "--captcha-env=staging", "-q", *arguments,
            files={"captcha-qa.toml": CONFIG.format(origin=sandbox.site) + "".join(extra), "test_forms.py": tests},
            env={"SANDBOX_PROVIDER_URL": provider or sandbox.provider, "BASE_URL": sandbox.site},
        )  # fmt: skip
        print(f"\n{faults}\n{done.output}")
        return done

    yield run
    ask(f"{sandbox.audit}/reset", {})


def faults_of(run: Any) -> dict[str, str | None]:
    return {slug: form["fault"] for slug, form in run.verdict["forms"].items()}


def nobody_but(slug: str, fault: str) -> dict[str, str | None]:
    return {**dict.fromkeys(FORMS), slug: fault}


def test_a_slow_provider_is_nobodys_fault_while_its_tokens_come_in_time(evening: Evening) -> None:
    run = evening({"provider": [{"kind": "slow", "factor": 10}]})

    assert run.code == run.verdict["exit"] == 0, run.output
    assert faults_of(run) == dict.fromkeys(FORMS)
    assert all(attempt["wait"] > 0.3 for attempt in run.attempts)


def test_a_provider_that_is_too_slow_ends_12(evening: Evening) -> None:
    run = evening({"provider": [{"kind": "slow", "factor": 1000}]}, tests=IMPATIENT)

    assert run.code == run.verdict["exit"] == 12, run.output
    assert faults_of(run) == dict.fromkeys(FORMS, "provider")


def test_a_provider_that_is_down_ends_12(evening: Evening) -> None:
    run = evening({"provider": [{"kind": "status", "status": 503}]})

    assert run.code == run.verdict["exit"] == 12, run.output
    assert faults_of(run) == dict.fromkeys(FORMS, "provider")


@pytest.mark.parametrize(
    ("fault", "said", "tokens"),
    [
        ({"kind": "refuse"}, "and a second one too", 2),
        ({"kind": "status", "status": 500, "method": "POST"}, "the site crashed: it answered 500", 1),
        ({"kind": "status", "status": 502, "method": "POST"}, "3 other forms answered in the same run", 1),
        ({"kind": "html200"}, "has no turnstile widget", 0),
    ],
    ids=["refuses", "crashes", "behind a broken gateway", "widget missing"],
)
def test_one_broken_form_ends_1(evening: Evening, fault: dict[str, Any], said: str, tokens: int) -> None:
    run = evening({"site": [{**fault, "form": "turnstile"}]})

    assert run.code == run.verdict["exit"] == 1, run.output
    assert faults_of(run) == nobody_but("login", "product")
    assert said in run.verdict["forms"]["login"]["reason"]
    assert run.verdict["forms"]["login"]["submits"] == tokens
    assert "so the form is at fault" in run.output or tokens < 2


@pytest.mark.parametrize(
    ("faults", "code", "blamed"),
    [
        ({"provider": [{"kind": "status", "status": 503}]}, 12, dict.fromkeys(FORMS, "provider")),
        ({"site": [{"kind": "refuse", "form": "turnstile"}]}, 1, nobody_but("login", "product")),
        (
            {"site": [{"kind": "status", "status": 502, "method": "POST", "form": "turnstile"}]},
            1,
            nobody_but("login", "product"),
        ),
        ({"vendor": [{"kind": "reset"}]}, 12, dict.fromkeys(FORMS, "infrastructure")),
    ],
    ids=["provider down", "one form refuses", "one form behind a broken gateway", "backend down"],
)
def test_workers_blame_as_one_process_does(
    evening: Evening, faults: dict[str, Any], code: int, blamed: dict[str, str | None]
) -> None:
    run = evening(faults, "-n", "2")

    assert run.code == run.verdict["exit"] == code, run.output
    assert faults_of(run) == blamed


def test_one_flaky_form_is_confirmed_and_ends_0(evening: Evening) -> None:
    run = evening({"site": [{"kind": "refuse", "form": "turnstile", "count": 1}]})

    assert run.code == run.verdict["exit"] == 0, run.output
    assert faults_of(run) == dict.fromkeys(FORMS)
    assert run.verdict["events"] == {"confirmation": 1, "token_refused_once": 1}
    assert run.verdict["forms"]["login"]["submits"] == 2
    assert "a fresh token was refused and a second one accepted" in run.output
    [told] = [line for line in run.of_type("event") if line["name"] == "token_refused_once"]
    assert (told["data"]["slug"], told["data"]["verify_status"]) == ("login", "fail")


@pytest.mark.parametrize("fault", [{"kind": "status", "status": 503}, {"kind": "reset"}], ids=["503", "reset"])
def test_a_backend_that_is_down_ends_12(evening: Evening, fault: dict[str, Any]) -> None:
    """The site's backend cannot reach the vendor and says so with a 503 on every form."""
    run = evening({"vendor": [fault]})

    assert run.code == run.verdict["exit"] == 12, run.output
    assert faults_of(run) == dict.fromkeys(FORMS, "infrastructure")


def test_a_changed_sitekey_ends_1(evening: Evening) -> None:
    moved = "0x4AAAAAAASANDBOXmoved001"
    run = evening(
        {"site": [{"kind": "sitekey", "sitekey": moved, "form": "turnstile"}]},
        login=f'sitekey = "{keys.TURNSTILE.sitekey}"',
    )

    assert run.code == run.verdict["exit"] == 1, run.output
    assert faults_of(run) == nobody_but("login", "product")
    assert moved in run.output
    assert run.verdict["forms"]["login"]["submits"] == 0


@pytest.mark.parametrize(
    ("policy", "code", "fault", "submits"),
    [("observe", 12, "undetermined", 1), ("require", 1, "product", 2)],
)
def test_low_scores_are_the_forms_fault_unless_they_are_only_observed(
    evening: Evening, policy: str, code: int, fault: str, submits: int
) -> None:
    run = evening({"vendor": [{"kind": "score", "score": 0.1}]}, contact=f'score_policy = "{policy}"')

    assert run.code == run.verdict["exit"] == code, run.output
    assert faults_of(run) == nobody_but("contact", fault)
    assert run.verdict["forms"]["contact"]["submits"] == submits
