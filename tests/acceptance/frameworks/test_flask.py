"""A shop on Flask: its own sessions, Flask-WTF's CSRF tokens and reCAPTCHA field, Turnstile beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INVITE = """\
[forms.invite]
path = "/invite"
type = "recaptcha_v2"
fields = { email = "{identity.email}" }
success = { status = 302, location = "/" }
refused = { status = 200, text = "recaptcha-error" }
"""
SIGNED_IN = """\
import os, re
import pytest


@pytest.fixture
def captcha_http(captcha_http):
    page = captcha_http.get("/login").text
    csrf = re.search('name="csrf_token"[^>]* value="([^"]+)"', page)[1]
    form = {"csrf_token": csrf, "username": "qa", "password": os.environ["QA_PASSWORD"]}
    answer = captcha_http.post("/login", data=form)
    assert answer.status == 302, answer
    return captcha_http
"""


def test_a_form_behind_a_login_is_tested_once_the_session_is_signed_in(
    check: Callable[..., Any], flask_shop: str
) -> None:
    checked = check(flask_shop, INVITE, files={"conftest.py": SIGNED_IN})
    assert checked.is_sound("invite")
    invited = checked.done["invited"]
    assert len(set(invited)) == 2
    assert all(line.endswith(" by qa") for line in invited)


def test_a_form_behind_a_login_nobody_configured_ends_4(check: Callable[..., Any], flask_shop: str) -> None:
    checked = check(flask_shop, INVITE)
    assert checked.run.code == 4, checked.run.output
    assert "leads to a login" in checked.run.output
    assert "/login" in checked.run.output
    assert not any(checked.done.values())


PAYMENT = """\
[forms.payment]
path = "/checkout/payment"
type = "turnstile"
fields = { email = "{identity.email}", holder = "{identity.name}" }
success = { status = 302, location = "/" }
refused = { status = 200, text = "show that you are human" }
"""
FIRST_STEP = """\
import re


def give_address(http, env, identity):
    csrf = re.search('name="csrf_token"[^>]* value="([^"]+)"', http.get("/checkout/address").text)[1]
    step = {"csrf_token": csrf, "street": "1 Example Street", "city": f"Home of {identity.username}"}
    answer = http.post("/checkout/address", data=step)
    assert answer.status == 302, answer
    return answer
"""


def test_the_second_step_of_a_form_is_tested_once_the_first_is_done(check: Callable[..., Any], flask_shop: str) -> None:
    form = f'{PAYMENT}prepare = "qa_flows:give_address"\n'
    checked = check(flask_shop, form, files={"qa_flows.py": FIRST_STEP})
    assert checked.is_sound("payment")
    paid = [re.fullmatch(r"(.+) to 1 Example Street, Home of (.+)", line) for line in checked.done["paid"]]
    assert len({line[1] for line in paid if line}) == len({line[2] for line in paid if line}) == 2


def test_a_second_step_without_the_first_tells_where_it_was_led(check: Callable[..., Any], flask_shop: str) -> None:
    checked = check(flask_shop, PAYMENT)
    assert checked.run.code == 1, checked.run.output
    assert "/checkout/address (form 'payment' was redirected there) has no turnstile widget" in checked.run.output
    assert "steps that come before the form go into forms.payment.prepare" in checked.run.output
    assert not any(checked.done.values())


CONTACT = """\
[forms.contact]
path = "/contact"
type = "turnstile"
fields = { email = "{identity.email}", message = "run {run_id}" }
success = { status = 302, location = "/" }
refused = { status = 200, text = "show that you are human" }
"""
NEWS = """\
[forms.news]
path = "/contact"
type = "turnstile"
fields = { email = "{identity.email}" }
success = { status = 302, location = "/" }
refused = { status = 302, location = "/contact" }
"""


def test_each_of_several_widgets_of_a_page_is_tested_with_its_own_key_and_form(
    check: Callable[..., Any], flask_shop: str
) -> None:
    forms = f'{CONTACT}widget = {{ selector = "#contact .cf-turnstile" }}\n{NEWS}widget = {{ selector = "#news" }}\n'
    checked = check(flask_shop, forms)
    assert checked.is_sound("contact", "news")
    assert len(set(checked.done["asked"])) == len(set(checked.done["subscribed"])) == 2


JOBS = """\
[forms.jobs]
path = "/jobs"
type = "recaptcha_v2"
fields = { email = "{identity.email}", cv = { file = "fixtures/cv.txt" } }
success = { status = 302, location = "/" }
refused = { status = 200, text = "recaptcha-error" }
"""


def test_a_form_with_a_file_is_tested(check: Callable[..., Any], flask_shop: str) -> None:
    checked = check(flask_shop, JOBS, files={"fixtures/cv.txt": "Ten years of testing.\n"})
    assert checked.is_sound("jobs")
    assert [line.partition(" with ")[2] for line in checked.done["applied"]] == ["cv.txt (22)"] * 2


FEEDBACK = """\
[forms.feedback]
path = "/feedback"
type = "turnstile"
success = { status = 200, json = { stored = true } }
refused = { status = 400, json = { error = "captcha" } }
[forms.feedback.submit]
url = "/api/feedback"
body = { text = "a run of {identity.username}" }
token_at = "turnstile"
csrf = { meta = "csrf-token", header = "X-CSRFToken" }
"""


def test_a_script_that_repeats_the_csrf_token_of_a_meta_element_is_tested(
    check: Callable[..., Any], flask_shop: str
) -> None:
    checked = check(flask_shop, FEEDBACK)
    assert checked.is_sound("feedback")
    assert len(set(checked.done["told"])) == 2


BASIC_AUTH = 'http = { basic_auth_env = "STAGING_AUTH" }'


def test_a_staging_site_behind_basic_authentication_is_tested(
    check: Callable[..., Any], closed_flask_shop: Any
) -> None:
    form = f'{CONTACT}widget = {{ selector = "#contact" }}\n'
    checked = check(closed_flask_shop.origin, form, access=BASIC_AUTH, env={"STAGING_AUTH": closed_flask_shop.auth})
    assert checked.is_sound("contact")
    assert len(set(checked.done["asked"])) == 2


def test_a_staging_site_that_does_not_let_the_run_in_ends_4(check: Callable[..., Any], closed_flask_shop: Any) -> None:
    checked = check(closed_flask_shop.origin, CONTACT)
    assert checked.run.code == 4, checked.run.output
    assert "answers 401" in checked.run.output
    assert not any(checked.done.values())


PREVIEW = (
    """\
accounts.main = { provider = "captchaai", api_key_env = "SHOP_KEY" }
[env.preview]
kind = "qa"
origins = ["http://*.preview.shop.example"]
base_url_env = "CI_ENVIRONMENT_URL"
account = "main"
http = { basic_auth_env = "STAGING_AUTH", proxy_env = "PREVIEW_GATEWAY" }
"""
    + CONTACT
    + 'widget = { selector = "#contact" }\n'
)
REFUSAL = """\
def test_a_made_up_token_is_refused(captcha_form):
    outcome = captcha_form("contact").submit(token="made-up", expect="refuse")
    assert outcome, outcome
"""


@pytest.mark.parametrize(
    ("proven", "outdated", "code", "outcome", "sentence"),
    [
        (True, "", 0, "ok", "1 passed"),
        (False, "", 15, "indeterminate", "does not exist; make the file"),
        (True, "!", 4, "indeterminate", "answered with a login instead of the proof"),
    ],
    ids=["with a proof", "without a proof", "with a proof behind a login"],
)
def test_a_preview_host_is_tested_with_the_proof_of_its_pattern(
    run_pytest: Callable[..., Any],
    ask: Callable[..., Any],
    closed_flask_shop: Any,
    tmp_path: Path,
    proven: bool,
    outdated: str,
    code: int,
    outcome: str,
    sentence: str,
) -> None:
    """A real provider's account and a proof; the shop plays the gateway that all preview hosts stand behind."""
    (tmp_path / "captcha-qa.toml").write_text(PREVIEW)
    authorise = [sys.executable, "-m", "pytest_captcha_qa.cli.main", "authorise", "preview"]
    served = closed_flask_shop.proofs if proven else tmp_path / "not deployed"
    subprocess.run([*authorise, "--output", str(served)], cwd=tmp_path, check=True, timeout=60)
    variables = {
        "CI_ENVIRONMENT_URL": "http://pr-7.preview.shop.example",
        "SHOP_KEY": "k" * 32,
        "STAGING_AUTH": closed_flask_shop.auth + outdated,
    }
    before = ask(f"{closed_flask_shop.origin}/audit")

    run = run_pytest(
        "--captcha-env=preview",
        files={"test_contact.py": REFUSAL},
        env=variables | {"PREVIEW_GATEWAY": closed_flask_shop.origin},
    )

    assert run.code == code, run.output
    assert sentence in run.output
    assert ask(f"{closed_flask_shop.origin}/audit") == before
    assert [a["outcome"] for a in run.attempts] == [outcome]
