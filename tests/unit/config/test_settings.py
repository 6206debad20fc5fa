from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.config.accounts import KEY_MODES, PROVIDERS, ProviderName
from pytest_captcha_qa.config.catalog import Catalog
from pytest_captcha_qa.config.document import parse
from pytest_captcha_qa.config.forms import TYPE_KEYS, FormTable
from pytest_captcha_qa.config.options import ExitCodes, Outage
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError, MissingSecret, UnknownName
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Effect, EnvKind, VerifyVia
from pytest_captcha_qa.model.policy import OnStoreLoss
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import TokenSource

Loader = Callable[..., Settings]


def test_the_sample_with_every_key_becomes_the_values_of_the_engine(full: str, load_text: Loader) -> None:
    settings = load_text(full)
    assert settings.names == ("qa", "staging", "live", "demo")
    staging = settings.environment("staging")
    assert staging.kind is EnvKind.STAGING
    assert list(map(str, staging.origins)) == ["https://staging.shop.example"]
    assert str(staging.base_url) == "https://staging.shop.example/shop"
    assert str(staging.page_of("signup")) == "https://staging.shop.example/shop/signup"
    assert staging.on_store_loss is OnStoreLoss.OWNED
    assert staging.identity_domain == "qa-mail.shop.example"
    assert staging.release_from is not None
    assert (staging.release_from.path, staging.release_from.json) == ("/version", "version")
    assert (staging.account.name, staging.account.source) == ("main", TokenSource.LIVE)
    signup = staging.form("signup")
    assert signup.type is CaptchaType.RECAPTCHA_V2
    assert signup.fields["email"] == "{identity.email}"
    assert signup.refused == Rule(status=(422,), json={"code": "captcha"})
    assert signup.effects == (Effect.ACCOUNT, Effect.MAIL)
    assert signup.widget is not None
    assert signup.widget.selector == "#signup .g-recaptcha"
    contact = staging.form("contact")
    assert (contact.action, contact.min_score) == ("contact", 0.3)
    assert contact.success.json == {"data.ok": True}
    assert contact.verify.via is VerifyVia.LOOKUP
    assert contact.verify.success.json == {"passed": True}
    assert settings.environment("qa").form("verify").verify.secret_env == "HCAPTCHA_SECRET"
    assert settings.environment("qa").account.key_mode is KeyMode.STANDIN
    assert (settings.run.budget, settings.run.outage) == (50, Outage.ERROR)
    assert settings.run.exit_codes is ExitCodes.EXTENDED


def test_an_environment_extends_another_one_table_by_table(full: str, load_text: Loader) -> None:
    settings = load_text(full)
    live, qa = settings.environment("live"), settings.environment("qa")
    assert live.retry_interval == 60
    assert live.on_store_loss is OnStoreLoss.OWNED  # from staging, which extends qa
    assert live.http.basic_auth_ref is not None
    assert qa.http.basic_auth_ref is not None
    assert live.http.basic_auth_ref.variable == qa.http.basic_auth_ref.variable == "QA_AUTH"


def test_a_key_takes_the_place_of_the_twin_it_inherits(full: str, load_text: Loader) -> None:
    staging = load_text(full).environment("staging")
    assert isinstance(staging.base, Url)  # qa has base_url_env
    assert staging.release_ref is None  # qa has release_env
    assert staging.store is not None
    assert (staging.store.variable, staging.store.file) == ("CAPTCHA_QA_REDIS_URL", None)


def test_an_override_replaces_a_rule_as_a_whole_and_leaves_the_rest(full: str, load_text: Loader) -> None:
    signup = load_text(full).environment("staging").form("signup")
    assert signup.success == Rule(all=(Rule(status=(302, 303)), Rule(absent="error")))
    assert signup.tags == ("smoke", "staging")
    assert signup.path == "/signup"


def test_fields_of_an_override_are_merged_one_by_one(small: str, load_text: Loader) -> None:
    text = small + '\n[env.staging.forms.signup.fields]\nname = "{identity.name}"\n'
    fields = load_text(text).environment("staging").form("signup").fields
    assert fields == {"email": "{identity.email}", "name": "{identity.name}"}


def test_a_form_may_be_dropped_from_an_environment(full: str, load_text: Loader) -> None:
    settings = load_text(full)
    assert "verify" in settings.environment("qa").forms
    assert "verify" not in settings.environment("staging").forms
    with pytest.raises(UnknownName, match="unknown form 'verify' in environment 'staging'"):
        settings.environment("staging").form("verify")


def test_the_single_origin_is_the_base_url_if_none_is_given(small: str, load_text: Loader) -> None:
    assert str(load_text(small).environment("staging").base_url) == "https://staging.shop.example/"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "the variable CI_ENVIRONMENT_URL is empty; env.qa.base_url_env"),
        ("https://evil.example", "says https://evil.example, which is not among origins"),
        ("https://a.preview.shop.example/?x=1", "holds an address with a query"),
        ("https://qa:hunter2@a.preview.shop.example", "it holds user info"),
    ],
)
def test_a_base_url_from_a_variable_is_held_to_the_origins(
    value: str, sentence: str, full: str, load_text: Loader
) -> None:
    environment = load_text(full, environ={"CI_ENVIRONMENT_URL": value}).environment("qa")
    with pytest.raises(ConfigError) as caught:
        _ = environment.base_url
    assert sentence in caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_base_url_from_a_variable_may_be_any_origin_the_pattern_means(full: str, load_text: Loader) -> None:
    address = {"CI_ENVIRONMENT_URL": "https://pr-7.preview.shop.example/app/"}
    environment = load_text(full, environ=address).environment("qa")
    assert str(environment.page_of("login")) == "https://pr-7.preview.shop.example/app/login"


def test_an_unknown_environment_is_refused_with_the_nearest(full: str, load_text: Loader) -> None:
    with pytest.raises(UnknownName, match=r"unknown environment 'stagin' in captcha-qa.toml; did you mean 'stag"):
        load_text(full).environment("stagin")


def test_no_environment_at_all_is_refused(full: str, load_text: Loader) -> None:
    with pytest.raises(ConfigError, match="no environment was chosen"):
        load_text(full).environment()


def test_the_account_and_the_store_may_be_chosen_for_a_run(full: str, load_text: Loader) -> None:
    options = {"captcha_env": "staging", "captcha_account": "desk", "captcha_store_env": "OTHER_STORE"}
    environment = load_text(full, options=options, environ={"OTHER_STORE": "redis://h"}).environment()
    assert environment.account.provider is ProviderName.CAPSKIP
    assert environment.store is not None
    assert environment.store.secret().get_secret_value() == "redis://h"
    assert environment.store.where == "--captcha-store-env"


def test_an_unknown_account_of_the_command_line_is_refused(full: str, load_text: Loader) -> None:
    settings = load_text(full, options={"captcha_account": "mian"})
    with pytest.raises(UnknownName, match=r"unknown account 'mian' in captcha-qa.toml; did you mean 'main'"):
        settings.environment("staging")


@pytest.mark.parametrize(
    ("options", "environ", "release"),
    [
        ({"captcha_release": "2.0"}, {"CI_COMMIT_TAG": "1.0"}, "2.0"),
        ({}, {"CI_COMMIT_TAG": "1.0", "CAPTCHA_QA_RELEASE": "3.0"}, "3.0"),
        ({}, {"CI_COMMIT_TAG": "1.0"}, "1.0"),
        ({}, {}, None),
    ],
)
def test_the_release_comes_from_the_run_else_from_the_environment(
    options: dict[str, object], environ: dict[str, str], release: str | None, full: str, load_text: Loader
) -> None:
    assert load_text(full, options=options, environ=environ).environment("qa").release == release


def test_capskip_is_found_by_its_own_variables(load_text: Loader, small: str) -> None:
    text = small.replace('"captchaai"', '"capskip"').replace('api_key_env = "CAPTCHAAI_API_KEY"\n', "")
    plain = load_text(text).environment("staging").account
    assert (str(plain.url), plain.key) == ("http://127.0.0.1:8080/", None)
    own = {"CAPSKIP_HOST": "10.0.0.7", "CAPSKIP_PORT": "9000", "CAPSKIP_API_KEY": "k"}
    account = load_text(text, environ=own).environment("staging").account
    assert str(account.url) == "http://10.0.0.7:9000/"
    assert account.key is not None
    assert account.key.variable == "CAPSKIP_API_KEY"
    with pytest.raises(ConfigError, match="CAPSKIP_HOST and CAPSKIP_PORT make no usable address"):
        load_text(text, environ={"CAPSKIP_HOST": "a b"}).environment("staging")


def test_an_address_that_is_none_is_refused_by_the_name_of_its_variable(full: str, load_text: Loader) -> None:
    account = load_text(full, environ={"STANDIN_URL": "ftp://x"}).environment("qa").account
    with pytest.raises(ConfigError, match="STANDIN_URL is no usable address for account 'double'"):
        _ = account.url


def test_demo_is_built_in_and_gets_the_addresses_of_its_sandbox(full: str, load_text: Loader) -> None:
    demo = load_text(full).environment("demo")
    assert demo.kind is EnvKind.DEMO
    assert demo.account.provider is ProviderName.SANDBOX
    assert "signup" in demo.forms
    with pytest.raises(ConfigError, match="is known once its sandbox runs"):
        _ = demo.base_url
    served = demo.served_at(site="http://127.0.0.1:8001", provider="http://127.0.0.1:8002", time_scale=0.01)
    assert str(served.page_of("signup")) == f"http://127.0.0.1:8001{demo.form('signup').path}"
    assert str(served.account.url) == "http://127.0.0.1:8002/"
    assert served.account.time_scale == 0.01
    assert not served.rules().needs_proof(served.base_url.origin)


def test_scope_is_told_what_the_environment_and_the_command_line_say(full: str, load_text: Loader) -> None:
    rules = load_text(full).environment("live").rules(allow_production=["shop.example"], budgeted=True)
    assert (rules.env, rules.kind, rules.source) == ("live", EnvKind.PRODUCTION, TokenSource.LIVE)
    assert rules.allow_production == {"shop.example"}
    assert rules.budgeted
    assert rules.private_ca


def test_http_access_is_read_from_variables_when_it_is_asked_for(full: str, load_text: Loader, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "cookie").write_text("gate=open; lang=en\n", "utf-8")
    environ = {"QA_AUTH": "qa:pass:word", "QA_HEADERS": "X-A: 1\nX-B: a: b\n", "QA_PROXY": "http://p:1"}
    http = load_text(full, environ=environ).environment("qa").http
    assert http.basic_auth() == ("qa", "pass:word")
    assert http.headers() == {"X-A": "1", "X-B": "a: b"}
    assert http.cookies() == {"gate": "open", "lang": "en"}
    assert http.proxy() == "http://p:1"
    assert http.client_cert == tmp_path / "tls" / "client.pem"
    assert "pass" not in repr(http)


def test_headers_may_be_a_json_object(full: str, load_text: Loader) -> None:
    http = load_text(full, environ={"QA_HEADERS": '{"X-A": "1"}'}).environment("qa").http
    assert http.headers() == {"X-A": "1"}


@pytest.mark.parametrize("value", ["nonsense", '{"X-A": 1}', "{", "[" * 9])
def test_headers_in_another_shape_are_refused_without_repeating_them(value: str, full: str, load_text: Loader) -> None:
    http = load_text(full, environ={"QA_HEADERS": value}).environment("qa").http
    with pytest.raises(ConfigError, match="QA_HEADERS must be written as a JSON object or as lines") as caught:
        http.headers()
    assert value not in caught.value.message


def test_basic_auth_without_a_colon_is_refused(full: str, load_text: Loader) -> None:
    http = load_text(full, environ={"QA_AUTH": "hunter2"}).environment("qa").http
    with pytest.raises(ConfigError, match="QA_AUTH must be written user:password") as caught:
        http.basic_auth()
    assert "hunter2" not in caught.value.message


def test_no_repr_shows_a_secret(full: str, load_text: Loader) -> None:
    environ = {"CAPTCHAAI_API_KEY": "hunter2", "CAPTCHA_QA_REDIS_URL": "redis://:hunter2@h"}
    settings = load_text(full, environ=environ, dotenv="QA_AUTH=qa:hunter2\n")
    environment = settings.environment("staging")
    assert environment.account.key is not None
    assert environment.account.key.secret().get_secret_value() == "hunter2"
    assert "hunter2" not in repr((settings, environment, settings.variables, environment.account.key.secret()))


def test_a_missing_secret_says_what_needs_it_and_where_it_may_be_set(full: str, load_text: Loader) -> None:
    key = load_text(full).environment("staging").account.key
    assert key is not None
    with pytest.raises(MissingSecret) as caught:
        key.secret()
    message = caught.value.message
    assert "the variable CAPTCHAAI_API_KEY is not set" in message
    assert "accounts.main.api_key_env (captcha-qa.toml:5) needs it" in message
    assert ".env" in message


@pytest.mark.parametrize("table", [PROVIDERS, KEY_MODES, TYPE_KEYS])
def test_tables_are_complete(table: dict[object, object]) -> None:
    kinds = {type(key) for key in table}
    assert len(kinds) == 1
    assert set(table) == set(kinds.pop())  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", CaptchaType)
def test_every_type_can_be_configured_with_just_the_keys_it_takes(kind: CaptchaType) -> None:
    values = {
        "action": "a",
        "min_score": 0.3,
        "cdata": "c",
        "token_field": "t",
        "score_policy": "observe",
        "sitekey": "s",
    }
    extra = {key: values[key] for key in TYPE_KEYS[kind]}
    form = FormTable.model_validate({"path": "/x", "type": kind, "success": {"status": 200}, **extra})
    assert list(form.faults()) == []
    assert form.spec("x").type is kind


def test_settings_are_frozen(full: str, load_text: Loader) -> None:
    settings = load_text(full)
    with pytest.raises(AttributeError):
        settings.run.budget = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.environment("qa").forms["x"] = None  # type: ignore[index]


def test_only_the_built_in_document_may_define_demo(tmp_path: Path) -> None:
    text = '[accounts.a]\nprovider = "sandbox"\n[env.demo]\nkind = "demo"\naccount = "a"\n'
    assert "demo" in Catalog.of(parse(text, "x", tmp_path), built_in=True).environments
    with pytest.raises(ConfigError, match="is built in"):
        Catalog.of(parse(text, "x", tmp_path))


@pytest.mark.parametrize("name", ["contract.toml", "small.toml", "full.toml"])
def test_the_sample_files_are_taken_with_nothing_but_their_variables_set(name: str, load_text: Loader) -> None:
    text = (Path(__file__).parents[3] / "fixtures" / "environments" / name).read_text("utf-8")
    settings = load_text(text, environ={"CI_ENVIRONMENT_URL": "https://staging.shop.example"})
    staging = settings.environment("staging")
    assert staging.page_of("signup").path.endswith("/signup")
    assert staging.form("signup").type is CaptchaType.RECAPTCHA_V2
