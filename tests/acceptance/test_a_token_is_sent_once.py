"""A token that was sent, or perhaps, is never sent again as if it were fresh: counted at the sandbox's site."""

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
path = "/recaptcha-v2"
type = "recaptcha_v2"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""

SENT_TWICE = """\
import pytest
from pytest_captcha_qa.errors import ConfigError

def test_it(captcha_form, captcha_token):
    token = captcha_token("login")
    assert captcha_form("login").submit(token=token)
    with pytest.raises(ConfigError, match="submitted or revealed before"):
        captcha_form("login").submit(token=token)
"""
REVEALED = """\
import pytest
from pytest_captcha_qa.errors import ConfigError

def test_it(captcha_form, captcha_token, captcha_http):
    token = captcha_token("login")
    assert token.reveal()
    for fields in ({"nosuchfield": "x"}, {}):
        with pytest.raises(ConfigError):
            captcha_form("login").submit(token=token, **fields)
    assert captcha_token("login") is not token
    assert captcha_form("login").submit(token=captcha_token("login"))
"""
GIVEN_BACK = """\
import pytest
from pytest_captcha_qa.errors import ConfigError

def test_it(captcha_form, captcha_token):
    token = captcha_token("login")
    with pytest.raises(ConfigError, match="nosuchfield"):
        captcha_form("login").submit(token=token, nosuchfield="x")
    assert captcha_token("login") is token
    assert captcha_form("login").submit(token=token)
"""
THREADS = """\
from concurrent.futures import ThreadPoolExecutor
from pytest_captcha_qa.errors import ConfigError

def test_one_token_on_six_pages(captcha_form, captcha_token):
    token = captcha_token("login")
    pages = [captcha_form("login") for _ in range(6)]

    def submit(page):
        try:
            return bool(page.submit(token=token))
        except ConfigError:
            return None

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(submit, pages), key=str) == [None] * 5 + [True]

def test_six_submits_of_one_page(captcha_form):
    page = captcha_form("login")
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(lambda _: page.submit(), range(6)))
"""
RERUN = """\
def test_it(captcha_form, pytestconfig):
    assert captcha_form("login").submit()
    path = pytestconfig.rootpath / "tries"
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    assert len(path.read_text()) == 3
"""


def test_a_rerun_on_redis_never_sends_a_spent_token(
    run_pytest: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses, redis_server: Any
) -> None:
    ask(f"{sandbox.audit}/reset", {})
    files = {"captcha-qa.toml": CONFIG.format(origin=sandbox.site), "test_login.py": RERUN}
    env = {"SANDBOX_PROVIDER_URL": sandbox.provider, "STORE": redis_server.url}
    run = run_pytest("--captcha-env=staging", "--captcha-store-env=STORE", "--reruns=2", files=files, env=env)

    assert run.code == 0, run.output
    assert "1 passed, 2 rerun" in run.output
    assert list(ask(sandbox.audit)["site"]["posts_by_token"].values()) == [1, 1, 1]
    assert [attempt["generation"] for attempt in run.attempts] == [1, 2, 3]


@pytest.mark.parametrize(
    ("test", "submits", "posts"),
    [(SENT_TWICE, 1, 1), (REVEALED, 2, 1), (GIVEN_BACK, 1, 1), (THREADS, 7, 7)],
    ids=["sent twice", "revealed", "given back", "threads"],
)
def test_no_token_is_posted_twice(
    run_pytest: Callable[..., Any],
    ask: Callable[..., Any],
    sandbox: SandboxAddresses,
    test: str,
    submits: int,
    posts: int,
) -> None:
    ask(f"{sandbox.audit}/reset", {})
    files = {"captcha-qa.toml": CONFIG.format(origin=sandbox.site), "test_login.py": test}
    run = run_pytest(
        "--captcha-env=staging", "--captcha-budget=50", files=files, env={"SANDBOX_PROVIDER_URL": sandbox.provider}
    )

    assert run.code == 0, run.output
    audit = ask(sandbox.audit)
    assert audit["provider"]["submits"] == submits == sum(a["submits"] for a in run.attempts)
    assert sum(audit["site"]["posts"].values()) == posts
    assert set(audit["site"]["posts_by_token"].values()) == {1}
