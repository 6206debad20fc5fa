from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pytest_captcha_qa.config.disclosure import TOLD
from pytest_captcha_qa.config.explaining import Explained, explain
from pytest_captcha_qa.config.rows import run_rows
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import UnknownName
from pytest_captcha_qa.model.captcha import CaptchaType

Loader = Callable[..., Settings]


def rows(explained: Explained) -> Mapping[str, tuple[str, str]]:
    return {row.key: (row.text, row.source) for row in explained.rows}


def values(explained: Explained) -> Mapping[str, object]:
    return {row.key: row.value for row in explained.rows}


def test_each_value_has_its_source(full: str, load_text: Loader) -> None:
    options = {"captcha_env": "staging", "captcha_account": "desk"}
    found = rows(explain(load_text(full, options=options), "staging"))
    assert found["env.staging.account"] == ("desk", "--captcha-account")
    assert found["env.qa.retry_interval"] == ("30", "captcha-qa.toml:40")  # inherited
    assert found["accounts.desk.max_in_flight"] == ("10", "default")
    assert found["env.staging.forms.signup.tags"] == ("smoke, staging", "captcha-qa.toml:67")
    assert found["forms.signup.path"][0] == "/signup"
    assert "accounts.main.provider" not in found


def test_what_holds_for_every_run_stands_apart(full: str, load_text: Loader) -> None:
    options = {"captcha_env": "staging", "captcha_account": "desk", "captcha_budget": 7}
    found = {row.key: (row.value, row.source) for row in run_rows(load_text(full, options=options))}
    assert found == {
        "records": ("reports/records", "captcha-qa.toml:28"),
        "budget": (7, "--captcha-budget"),
        "outage": ("error", "captcha-qa.toml:30"),
        "exit_codes": ("extended", "captcha-qa.toml:31"),
        "probe_severity": ("medium", "default"),
    }


def test_an_override_of_the_run_stands_in_the_place_of_what_it_replaces(small: str, load_text: Loader) -> None:
    text = small.replace("account =", 'release_file = "release.txt"\nstore_file = "store.url"\naccount =')
    options = {"captcha_account": "main", "captcha_store_env": "S", "captcha_release": "2.0"}
    explained = explain(load_text(text, options=options, environ={"S": "x"}), "staging")
    assert {key: pair for key, pair in rows(explained).items() if pair[1].startswith("--")} == {
        "env.staging.account": ("main", "--captcha-account"),
        "env.staging.store_env": ("S (set)", "--captcha-store-env"),
        "env.staging.release": ("2.0", "--captcha-release"),
    }
    assert not {"env.staging.release_file", "env.staging.store_file"} & rows(explained).keys()


def test_values_keep_their_kind_and_references_say_whether_they_are_set(full: str, load_text: Loader) -> None:
    found = values(explain(load_text(full, environ={"CAPTCHAAI_API_KEY": "k"}), "staging"))
    assert found["accounts.main.max_in_flight"] == 10
    assert found["accounts.main.price_per_1000"] == 1.5
    assert found["accounts.main.api_key_env"] == {"variable": "CAPTCHAAI_API_KEY", "set": True}
    assert found["env.qa.http.cookie_file"] == {"file": "secrets/cookie", "set": False}
    assert found["forms.contact.success.json.data.ok"] is True
    assert found["env.staging.forms.signup.tags"] == ["smoke", "staging"]
    assert found["env.staging.forms.signup.success.all"] == [{"status": [302, 303]}, {"absent": "error"}]
    text, _ = rows(explain(load_text(full), "staging"))["env.staging.forms.signup.success.all"]
    assert text == '{ status = [302, 303] }, { absent = "error" }'


def test_variables_are_named_and_never_shown(full: str, load_text: Loader) -> None:
    environ = {"CAPTCHAAI_API_KEY": "hunter2hunter2", "QA_AUTH": "qa:hunter2hunter2"}
    explained = explain(load_text(full, environ=environ), "staging")
    found = rows(explained)
    assert found["accounts.main.api_key_env"][0] == "CAPTCHAAI_API_KEY (set)"
    assert found["env.qa.http.headers_env"][0] == "QA_HEADERS (missing)"
    assert found["env.qa.http.cookie_file"][0] == "secrets/cookie (missing)"
    assert found["env.qa.http.ca_file"][0] == "tls/ca.pem (missing)"
    assert "hunter2" not in repr(explained)


def test_a_literal_password_of_a_field_is_masked(small: str, load_text: Loader) -> None:
    text = small.replace("fields = {", 'fields = { password = "hunter2", pass_token = "{identity.password}",')
    found = rows(explain(load_text(text), "staging"))
    assert found["forms.signup.fields.password"][0] == "***"
    assert found["forms.signup.fields.pass_token"][0] == "{identity.password}"


def test_what_leaves_the_network_is_listed_by_receiver(full: str, load_text: Loader) -> None:
    (signup,) = explain(load_text(full), "staging", form="signup").leaves
    assert signup.page == "https://staging.shop.example/shop/signup"
    assert signup.solver == "captchaai"
    assert signup.provider == (
        "type recaptcha_v2",
        "sitekey as the page shows it (expected: 6LcEXAMPLEsignupsitekeyAAAAAAAAAAAAAAAA)",
        "the page's URL without its query",
        "the account's key (CAPTCHAAI_API_KEY)",
        "the proxy to solve through, with its password (SOLVER_PROXY), where the type allows one",
    )
    reporting = full.replace('solver_proxy_env = "SOLVER_PROXY"', "report = true")
    (signup,) = explain(load_text(reporting), "staging", form="signup").leaves
    assert signup.provider[-1] == "afterwards whether the token was accepted"
    assert "the form is posted: fields email, name, note; its hidden fields; the token" in signup.site
    assert signup.verify == "nobody else is asked; the form's own answer counts"


@pytest.mark.parametrize(
    ("slug", "verify"),
    [
        ("contact", "GET /qa/captcha, after the form was posted"),
        ("login", "the token goes to /qa/verify; the form is not posted"),
        ("verify", "token and site secret (HCAPTCHA_SECRET) go to the stand-in named by STANDIN_VERIFY_URL"),
    ],
)
def test_who_gets_the_token_to_verify_it_is_said(slug: str, verify: str, full: str, load_text: Loader) -> None:
    (leaving,) = explain(load_text(full), "qa", form=slug).leaves
    assert verify in leaving.verify


def test_test_keys_tell_no_provider_anything(full: str, load_text: Loader) -> None:
    settings = load_text(full, options={"captcha_account": "keys"})
    (leaving,) = explain(settings, "staging", form="signup").leaves
    assert leaving.provider == ("nothing: the vendor's official test keys need no solving",)


def test_the_told_table_is_complete() -> None:
    assert set(TOLD) == set(CaptchaType)


def test_production_says_what_a_run_needs(full: str, load_text: Loader) -> None:
    needs = explain(load_text(full, options={"captcha_account": "local"}), "live").needs
    assert "--captcha-allow-production shop.example on the command line" in needs
    assert "a budget (--captcha-budget N)" in needs
    assert "a live account: tokens of sandbox are never sent to production" in needs


@pytest.mark.parametrize(
    ("origin", "problems"),
    [
        ("http://127.0.0.1:8000", []),
        ("https://staging.shop.example", ["https://staging.shop.example is not on this machine"]),
        ("https://*.shop.example", ["https://*.shop.example is not on this machine"]),
    ],
)
def test_a_sandbox_for_a_site_elsewhere_is_a_problem(origin: str, problems: list[str], load_text: Loader) -> None:
    text = f"""
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX"
[env.staging]
kind = "staging"
origins = ["{origin}"]
base_url_env = "BASE"
account = "local"
"""
    environ = {"SANDBOX": "http://127.0.0.1:1", "BASE": origin.replace("*", "mr-7")}
    found = explain(load_text(text, environ=environ), "staging").problems
    assert [problem.removeprefix("env.staging.origins: ").split(",")[0] for problem in found] == problems


def test_everything_that_is_missing_is_a_problem_once(full: str, load_text: Loader) -> None:
    problems = explain(load_text(full), "qa").problems
    assert sum("CI_ENVIRONMENT_URL" in problem for problem in problems) == 1
    assert sum("STANDIN_URL" in problem for problem in problems) == 1
    assert any("ca.pem is no file" in problem for problem in problems)
    assert not any("CI_COMMIT_TAG" in problem for problem in problems)  # an unknown release is allowed


def test_the_demo_has_no_problems_and_needs_no_proof(small: str, load_text: Loader) -> None:
    demo = explain(load_text(small), "demo")
    assert (demo.problems, demo.needs) == ((), ())
    assert all("proof" not in part for leaving in demo.leaves for part in leaving.site)


def test_an_unknown_form_is_refused_with_the_nearest(full: str, load_text: Loader) -> None:
    with pytest.raises(UnknownName, match="did you mean 'signup'"):
        explain(load_text(full), "qa", form="sign-up")


def test_the_demo_says_of_every_type_what_leaves(small: str, load_text: Loader) -> None:
    leaves = {leaving.provider[0]: leaving for leaving in explain(load_text(small), "demo").leaves}
    assert set(leaves) == {f"type {kind}" for kind in CaptchaType}
    assert "the bytes of the image as the page shows it" in leaves["type image"].provider
    assert "GET of the image, unless the page itself holds it" in leaves["type image"].site
    assert "GET of the challenge, unless the page itself holds it" in leaves["type altcha"].site
    assert [kind for kind, leaving in leaves.items() if "the page's URL without its query" not in leaving.provider] == [
        "type image"
    ]


def test_where_the_state_is_kept_and_what_of_it_leaves_is_said(full: str, load_text: Loader) -> None:
    shared = load_text(full, environ={"CAPTCHA_QA_REDIS_URL": "rediss://:hunter2@cache.example/1"})
    assert explain(shared, "staging").store.startswith("rediss://cache.example:6379/1: hashed keys, task ids, tokens")
    assert explain(load_text(full), "staging").store == "a shared one whose address is not known yet"


def test_the_embedded_store_leaves_nothing(small: str, load_text: Loader) -> None:
    assert explain(load_text(small), "staging").store == "nothing: it is a file in the user's cache"
