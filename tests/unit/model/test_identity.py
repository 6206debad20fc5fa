from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.identity import (
    PLACEHOLDERS,
    Identity,
    fill,
    placeholder_values,
    placeholders_in,
)


@given(st.text(max_size=80))
def test_an_address_is_plain_and_reaches_nobody_whatever_the_run_is_called(run_id: str) -> None:
    identity = Identity.make(run_id)

    local, _, domain = identity.email.partition("@")
    assert domain == "example.com"
    assert re.fullmatch(r"captcha-qa(\.[a-z0-9-]+)+", local)
    assert len(local) <= 64  # RFC 5321


def test_an_address_tells_the_run_that_made_it() -> None:
    identity = Identity.make("GitHub 4711/2")

    assert identity.email.startswith("captcha-qa.github-4711-2.")
    assert identity.id in identity.email


def test_the_teams_own_sink_domain_is_used_if_there_is_one() -> None:
    assert Identity.make("run", domain="qa-mail.shop.example").email.endswith("@qa-mail.shop.example")


def test_two_identities_share_nothing_that_must_be_unique() -> None:
    one, other = Identity.make("run"), Identity.make("run")

    for name in ("id", "email", "username", "password"):
        assert getattr(one, name) != getattr(other, name)


def test_a_password_meets_common_rules_and_is_never_shown() -> None:
    identity = Identity.make("run")

    assert all(re.search(kind, identity.password) for kind in ("[a-z]", "[A-Z]", "[0-9]", "[^A-Za-z0-9]"))
    assert identity.password not in repr(identity)


def test_a_name_is_made_of_letters() -> None:
    assert all(re.fullmatch("[A-Za-z ]+", Identity.make("run").name) for _ in range(50))


def test_later_attempts_of_a_test_have_an_address_of_their_own() -> None:
    person = Identity.make("run")
    second = person.numbered(2)

    assert person.numbered(1) is person
    assert second.email == person.email.replace("@", ".2@")
    assert (second.username, second.password, second.id) == (f"{person.username}2", person.password, person.id)


def test_every_placeholder_has_a_value() -> None:
    values = placeholder_values(Identity.make("run"), run_id="run", env="qa")

    assert set(values) == set(PLACEHOLDERS)
    assert all(values.values())


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{run_id} in {env}", "r1 in qa"),
        ("{unknown} {}", "{unknown} {}"),
        ("{{env}}", "{qa}"),
        ("{env.upper()} {env!r} {0}", "{env.upper()} {env!r} {0}"),
    ],
)
def test_names_are_replaced_and_nothing_is_evaluated(template: str, filled: str) -> None:
    assert fill(template, {"run_id": "r1", "env": "qa"}) == filled


def test_a_value_that_looks_like_a_name_is_not_replaced_again() -> None:
    assert fill("{env}", {"env": "{run_id}", "run_id": "x"}) == "{run_id}"


def test_the_names_of_a_template_are_found_known_or_not() -> None:
    assert placeholders_in("{identity.email} and {nickname}") == ["identity.email", "nickname"]


@pytest.mark.parametrize(
    ("email", "sink", "belongs"),
    [
        ("a@example.com", None, True),
        ("a@mail.EXAMPLE.org", None, True),
        ("a@shop.test", None, True),
        ("a@gmail.com", None, False),
        ("a@notexample.com", None, False),
        ("a@qa-mail.shop.example.net", "qa-mail.shop.example.net", True),
        ("a@QA-mail.shop.de", "qa-mail.shop.de", True),
        ("a@one.qa-mail.shop.de", "qa-mail.shop.de", True),
        ("a@notqa-mail.shop.de", "qa-mail.shop.de", False),
        ("nobody", None, False),
    ],
)
def test_an_address_is_on_a_reserved_domain_or_the_teams_own(email: str, sink: str | None, belongs: bool) -> None:
    assert replace(Identity.make("r1"), email=email).belongs_to(sink) is belongs
