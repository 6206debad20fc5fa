"""What keeps a run from starting is told before its first test, all of it, with no value repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.config.accounts import PROVIDERS
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.provider.dialects import DIALECTS
from pytest_captcha_qa.scope import TokenSource

Loader = Callable[..., Settings]

TEAM = """
[accounts.main]
provider = "captchaai"
api_key_env = "API_KEY"

[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_URL"

[env.staging]
kind = "staging"
origins = ["https://staging.shop.example"]
base_url_env = "SITE_URL"
account = "main"

[env.staging.http]
basic_auth_env = "AUTH"
headers_env = "HEADERS"
cookie_file = "cookie.txt"
proxy_env = "PROXY"
ca_file = "ca.pem"

[env.local]
kind = "qa"
origins = ["http://127.0.0.1:8000"]
account = "local"
forms.contact = { verify = { via = "siteverify", secret_env = "VENDOR_SECRET", url_env = "VENDOR_URL" } }

[forms.signup]
path = "/signup"
type = "recaptcha_v2"
success = { status = 303 }

[forms.contact]
path = "/contact"
type = "hcaptcha"
success = { status = 303 }
verify = { via = "siteverify", secret_env = "VENDOR_SECRET" }
"""
STAGING = {
    "API_KEY": "hunter2",
    "SITE_URL": "https://staging.shop.example",
    "AUTH": "qa:hunter2",
    "HEADERS": "X-A: hunter2",
    "PROXY": "http://u:hunter2@proxy:1",
    "VENDOR_SECRET": "hunter2",
}
LOCAL = {"SANDBOX_URL": "http://127.0.0.1:1", "VENDOR_SECRET": "s", "VENDOR_URL": "http://127.0.0.1:2"}


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "cookie.txt").write_text("session=hunter2")
    (tmp_path / "ca.pem").write_text("")


@pytest.mark.usefixtures("files")
def test_nothing_is_missing_once_all_is_set(load_text: Loader) -> None:
    settings = load_text(TEAM, environ=STAGING | LOCAL)
    assert settings.environment("staging").missing() == []
    assert settings.environment("local").missing() == []


def test_everything_is_told_at_once_and_each_thing_once(load_text: Loader) -> None:
    problems = load_text(TEAM).environment("staging").missing()
    for name in (*STAGING, "cookie.txt", "ca.pem"):
        assert sum(name in problem for problem in problems) == 1, name
    assert len(problems) == len(STAGING) + 2


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SITE_URL", "https://evil.example", "SITE_URL says https://evil.example, which is not among origins"),
        ("SITE_URL", "hunter2", "SITE_URL holds no usable address"),
        ("AUTH", "hunter2", "AUTH must be written user:password"),
        ("HEADERS", "hunter2", "HEADERS must be written as a JSON object or as lines"),
        ("API_KEY", "", "the variable API_KEY is empty"),
    ],
)
def test_a_value_in_a_wrong_shape_is_told(name: str, value: str, sentence: str, load_text: Loader) -> None:
    (problem,) = load_text(TEAM, environ=STAGING | {name: value}).environment("staging").missing()
    assert sentence in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize("name", ["SANDBOX_URL", "VENDOR_URL"])
def test_an_address_that_is_none_is_told_before_a_token_is_paid_for(name: str, load_text: Loader) -> None:
    (problem,) = load_text(TEAM, environ=LOCAL | {name: "ftp://x"}).environment("local").missing()
    assert name in problem
    assert "no usable address" in problem


@pytest.mark.usefixtures("files")
def test_only_the_forms_of_the_run_count(load_text: Loader) -> None:
    environ = {name: value for name, value in STAGING.items() if name != "VENDOR_SECRET"}
    staging = load_text(TEAM, environ=environ).environment("staging")
    assert staging.missing(["signup"]) == []
    (problem,) = staging.missing(["signup", "contact"])
    assert "VENDOR_SECRET" in problem


SHARED = TEAM.replace("base_url_env =", 'store_env = "STORE"\nbase_url_env =')


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "the variable STORE is empty"),
        ("hunter2", "env.staging.store_env: STORE is unusable: it is no address of a shared store; write redis://"),
        ("redis://:hunter2@a,b", "STORE is unusable: it names several hosts"),
    ],
)
@pytest.mark.usefixtures("files")
def test_an_address_of_a_store_that_is_none_is_told(value: str, sentence: str, load_text: Loader) -> None:
    (problem,) = load_text(SHARED, environ=STAGING | {"STORE": value}).environment("staging").missing()
    assert sentence in problem
    assert "hunter2" not in problem


@pytest.mark.usefixtures("files")
def test_a_shared_store_needs_nothing_but_its_address(load_text: Loader) -> None:
    environ = STAGING | {"STORE": "rediss://:hunter2@cache.example:7000/1"}
    staging = load_text(SHARED, environ=environ).environment("staging")
    assert staging.missing() == []
    assert str(staging.store_address) == "rediss://cache.example:7000/1"


PROXIED = TEAM.replace('api_key_env = "API_KEY"', 'api_key_env = "API_KEY"\nsolver_proxy_env = "SOLVER"')


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "the variable SOLVER is empty"),
        ("hunter2", "SOLVER: it is no proxy: write it as http://user:password@host:port"),
        ("http://u:hunter2@proxy", "it is no proxy"),
        ("http://u:hunter2@proxy:port", "it is no proxy"),
        ("http://u:hunter2@proxy:1/path", "it is no proxy"),
        ("http://u:hunter2 @proxy:1", "it is no proxy"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_solvers_proxy_that_is_none_is_told(value: str, sentence: str, load_text: Loader) -> None:
    (problem,) = load_text(PROXIED, environ=STAGING | {"SOLVER": value}).environment("staging").missing()
    assert sentence in problem
    assert "hunter2" not in problem


@pytest.mark.usefixtures("files")
def test_a_solvers_proxy_is_read(load_text: Loader) -> None:
    environ = STAGING | {"SOLVER": "socks5://u:hunter2@proxy:1080"}
    staging = load_text(PROXIED, environ=environ).environment("staging")
    assert staging.missing() == []
    proxy = staging.account.proxy
    assert proxy is not None
    assert (proxy.kind, proxy.address) == ("SOCKS5", "u:hunter2@proxy:1080")
    assert proxy.secrets == ("u:hunter2", "hunter2")
    assert "hunter2" not in repr(staging)


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, "http://127.0.0.1:8080/"),
        ({"CAPSKIP_HOST": "10.0.0.5", "CAPSKIP_PORT": "9000"}, "http://10.0.0.5:9000/"),
    ],
)
def test_capskip_is_found_by_its_own_variables(environ: dict[str, str], address: str, load_text: Loader) -> None:
    text = TEAM.replace('provider = "sandbox"\nurl_env = "SANDBOX_URL"', 'provider = "capskip"')
    text = text.replace(', url_env = "VENDOR_URL"', "")
    local = load_text(text, environ={"VENDOR_SECRET": "x"} | environ).environment("local")
    assert local.missing() == []
    assert str(local.account.url) == address
    assert local.account.key is None
    keyed = load_text(text, environ={"CAPSKIP_API_KEY": "any"}).environment("local")
    assert keyed.account.key is not None
    assert keyed.account.source is TokenSource.LIVE


def test_a_sandbox_of_ones_own_needs_an_address(load_text: Loader) -> None:
    local = load_text(TEAM.replace('url_env = "SANDBOX_URL"', ""), environ=LOCAL).environment("local")
    assert local.missing() == [
        "accounts.local.url_env is missing: only `demo` starts a sandbox itself; "
        "name the variable that holds the provider address of yours"
    ]
    assert load_text(TEAM).environment("demo").missing() == []


def test_the_providers_are_those_with_a_dialect_and_the_two_that_need_none() -> None:
    assert set(PROVIDERS) == {*DIALECTS, "testkeys", "standin"}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("kind", "told"), [("staging", False), ("production", True)])
def test_an_official_test_secret_in_production_is_told(kind: str, told: bool, load_text: Loader) -> None:
    official = {"VENDOR_SECRET": "0x0000000000000000000000000000000000000000"}
    text = TEAM.replace('kind = "staging"', f'kind = "{kind}"')
    problems = load_text(text, environ=STAGING | official).environment("staging").missing()
    sentence = "forms.contact.verify: VENDOR_SECRET holds an official test secret"
    assert [problem.startswith(sentence) for problem in problems] == [True] * told
    assert "0x00000" not in str(problems)
