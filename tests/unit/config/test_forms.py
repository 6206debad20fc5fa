"""What a form says beyond a plain HTML form, and how the engine gets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.config.explaining import explain
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.model.form import CsrfSpec, Encoding, FormSpec, VariantSpec

Loader = Callable[..., Settings]

FORM = """
path = "/signup"
type = "recaptcha_v2"
success = { status = 303 }
"""
SPA = """
submit = { url = "/api/signup", token_at = "input.captcha", csrf = { cookie = "XSRF-TOKEN", header = "X-XSRF-TOKEN" }, \
body = { query = "mutation { signup {ok} }", input = { email = "{identity.email}", terms = true, tags = ["a"] } } }
fields = { "input.name" = "{identity.name}" }
"""


@pytest.fixture
def loaded(small: str, load_text: Loader) -> Callable[[str], Settings]:
    """`loaded(more)` reads a configuration whose form also says `more`."""
    return lambda more: load_text(small.partition("[forms.signup]")[0] + "[forms.signup]" + FORM + more)


@pytest.fixture
def form_with(loaded: Callable[[str], Settings]) -> Callable[[str], FormSpec]:
    return lambda more: loaded(more).environment("staging").form("signup")


def test_a_described_submit_reaches_the_engine_as_it_is_written(form_with):
    form = form_with(SPA)

    assert (form.submit.url, form.submit.method, form.submit.encoding) == ("/api/signup", "POST", Encoding.JSON)
    assert form.submit.token_at == {"token": "input.captcha"}
    assert form.submit.csrf == CsrfSpec("X-XSRF-TOKEN", cookie="XSRF-TOKEN")
    assert form.submit.values["input.terms"] is True


def test_the_texts_of_the_body_and_the_fields_are_templates(form_with):
    assert form_with(SPA).templates == {
        "query": "mutation { signup {ok} }",
        "input.email": "{identity.email}",
        "input.tags.0": "a",
        "input.name": "{identity.name}",
    }


def test_the_parts_of_a_solution_may_go_to_places_of_their_own(form_with):
    form = form_with('submit = { url = "/api", token_at = { challenge = "c", validate = "v" } }')

    assert form.submit.token_at == {"challenge": "c", "validate": "v"}


def test_an_override_replaces_the_submit_as_a_whole(small, load_text):
    text = small.partition("[forms.signup]")[0] + "[forms.signup]" + FORM + SPA
    live = load_text(text + '[env.staging.forms.signup]\nsubmit = { url = "/v2/signup" }\n')

    submit = live.environment("staging").form("signup").submit
    assert (submit.url, dict(submit.body), submit.csrf) == ("/v2/signup", {}, None)


def test_a_file_is_looked_for_beside_the_configuration(form_with, tmp_path):
    form = form_with('fields = { name = "x", avatar = { file = "fixtures/cat.png" } }')

    assert dict(form.files) == {"avatar": str(tmp_path / "fixtures" / "cat.png")}
    assert dict(form.fields) == {"name": "x"}


@pytest.mark.parametrize(("size", "fault"), [(None, "is no file"), (1024 * 1024 + 1, "more than 1024 KiB"), (9, None)])
def test_a_file_that_cannot_be_sent_is_told_before_the_run(loaded, tmp_path: Path, size, fault):
    settings = loaded('fields = { avatar = { file = "cat.png" } }')
    if size is not None:
        (tmp_path / "cat.png").write_bytes(b"x" * size)

    problems = [said for said in settings.environment("staging").missing() if "avatar" in said]
    assert [f"forms.signup.fields.avatar: {tmp_path / 'cat.png'}" in said and fault in said for said in problems] == (
        [True] if fault else []
    )


def test_a_variable_with_a_fields_value_is_named_and_never_shown(small, load_text):
    text = small.partition("[forms.signup]")[0] + "[forms.signup]" + FORM
    text += 'fields = { user = "qa", password = { env = "QA_PASSWORD" } }\n'
    environment = load_text(text).environment("staging")
    settings = load_text(text, dotenv="QA_PASSWORD=hunter2\n")

    assert dict(environment.form("signup").fields) == {"user": "qa", "password": ""}
    [missing] = [said for said in environment.missing() if "QA_PASSWORD" in said]
    assert "is not set; forms.signup.fields.password (captcha-qa.toml:" in missing
    assert settings.environment("staging").field_values["signup"]["password"].text() == "hunter2"
    explained = explain(settings, "staging")
    [row] = [row for row in explained.rows if "password" in row.key]
    assert (row.key, row.text) == ("forms.signup.fields.password.env", "QA_PASSWORD (set)")
    assert any("fields user, password" in part for part in explained.leaves[0].site)
    assert "hunter2" not in repr(explained)


@pytest.mark.parametrize(("rate", "spacing"), [("5/min", 12.0), ("2/s", 0.5), ("30/h", 120.0)])
def test_a_rate_is_a_space_between_two_submits(form_with, rate, spacing):
    assert form_with(f'rate = "{rate}"').spacing == spacing


def test_without_a_rate_nothing_is_spaced(form_with):
    assert form_with("").spacing == 0


def test_a_variant_is_the_form_under_another_name_with_its_headers(loaded):
    environment = loaded('variants = [{ id = "ru", headers = { Accept-Language = "ru" } }]').environment("staging")
    plain, russian = environment.targets.values()

    assert list(environment.targets) == ["signup", "signup:ru"]
    assert plain.variants == (VariantSpec("ru", {"Accept-Language": "ru"}),)
    assert (russian.slug, russian.name, russian.variant) == ("signup", "signup:ru", "ru")
    assert (dict(plain.headers), dict(russian.headers)) == ({}, {"Accept-Language": "ru"})
    assert list(environment.forms) == ["signup"]


def test_an_effect_is_confirmed_by_an_address_and_a_rule(form_with):
    confirm = form_with(
        'confirm = { url = "/mail?to={identity.email}", json = { "0.read" = false }, within = 3 }'
    ).confirm

    assert (confirm.url, confirm.within, confirm.function) == ("/mail?to={identity.email}", 3, None)
    assert confirm.success.json == {"0.read": False}


def test_an_effect_is_confirmed_by_a_function(form_with):
    confirm = form_with('confirm = "qa.flows:mail_came"').confirm

    assert (confirm.url, confirm.within, confirm.function) == (None, 10, "qa.flows:mail_came")


def test_functions_of_the_team_are_kept_by_their_names(form_with):
    form = form_with('prepare = "qa.flows:cart"\ncleanup = "qa.flows:remove"\neffects = ["account"]')

    assert (form.prepare, form.cleanup) == ("qa.flows:cart", "qa.flows:remove")


def test_check_shows_all_of_it_with_its_source_and_hides_no_names(loaded):
    more = SPA + 'variants = [{ id = "ru", headers = { Accept-Language = "ru" } }]\nprepare = "qa.flows:cart"\n'
    more += 'cleanup = "qa.flows:remove"\neffects = ["mail"]\n'
    more += 'confirm = { url = "/mail?to={identity.email}", status = 200 }\n'
    explained = explain(loaded(more), "staging")
    rows = {row.key: row.text for row in explained.rows}

    assert rows["forms.signup.submit.csrf.cookie"] == "XSRF-TOKEN"
    assert rows["forms.signup.submit.token_at"] == "input.captcha"
    assert rows["forms.signup.submit.body.input.email"] == "{identity.email}"
    assert rows["forms.signup.prepare"] == "qa.flows:cart"
    (leaving,) = explained.leaves
    assert leaving.site[1:6] == (
        "GET /signup",
        "before the page: whatever qa.flows:cart asks of it",
        "POST /api/signup (json): fields query, input.email, input.tags.0, input.name; the token; "
        "the page's CSRF value in X-XSRF-TOKEN",
        "as signup:ru once more with the headers Accept-Language",
        "after an accepted submit: GET /mail, for 10 s at most",
    )


def test_a_function_in_short_has_the_line_it_stands_on_as_its_source(loaded):
    explained = explain(loaded('confirm = "qa.flows:mail_came"\n'), "staging")
    (row,) = [row for row in explained.rows if row.key == "forms.signup.confirm.function"]

    assert (row.text, row.source) == ("qa.flows:mail_came", "captcha-qa.toml:16")
