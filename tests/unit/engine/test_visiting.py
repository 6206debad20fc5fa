"""What is filled into a form, and what an accepted submit is known to leave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import run_attempt
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.form import Effect
from pytest_captcha_qa.testing import Bench, form

SIGNUP = AttemptRequest("signup", "subject")


def test_the_forms_fields_are_filled_from_the_identity(bench: Bench) -> None:
    bench.forms = [form(fields={"email": "{identity.email}", "note": "run {run_id} in {env}"})]

    run_attempt(SIGNUP, bench.services())

    [(sent, fields)] = bench.driver.opened[0].posted
    assert sent is not None
    assert fields["email"].endswith("@example.com")
    assert fields["note"] == "run run in test"


def test_given_fields_override_the_configured_ones(bench: Bench) -> None:
    bench.forms = [form(fields={"email": "{identity.email}", "name": "N"})]
    run_attempt(SIGNUP, bench.services(), fields={"email": "own@example.com"})

    assert bench.driver.opened[0].posted[0][1] == {"email": "own@example.com", "name": "N"}


def test_what_a_variable_holds_is_filled_in_and_a_test_may_give_another_value(bench: Bench) -> None:
    bench.forms = [form(fields={"user": "qa", "password": ""})]
    services = replace(bench.services(), field_values=lambda form: {"password": "from a variable"})

    run_attempt(SIGNUP, services)
    run_attempt(SIGNUP, services, fields={"password": "another"})

    posted = [fields for opened in bench.driver.opened for _, fields in opened.posted]
    assert posted == [{"user": "qa", "password": "from a variable"}, {"user": "qa", "password": "another"}]


def test_what_a_success_leaves_on_the_site_is_told(bench: Bench) -> None:
    bench.forms = [form(effects=(Effect.ACCOUNT, Effect.MAIL))]

    run_attempt(SIGNUP, bench.services())

    [created] = [event for event in bench.events if event.name == events.CREATED]
    assert (created.data["effects"], created.data["slug"]) == ("account,mail", "signup")


@pytest.mark.parametrize("effects", [(), (Effect.NONE,)])
def test_a_success_without_effects_leaves_nothing_to_tell(bench: Bench, effects: tuple[Effect, ...]) -> None:
    bench.forms = [form(effects=effects)]

    run_attempt(SIGNUP, bench.services())

    assert bench.events == []
