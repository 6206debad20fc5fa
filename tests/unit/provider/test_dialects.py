from __future__ import annotations

import re

import pytest

from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.policy import Reaction
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import CODES, DIALECTS, ERRORS, POLL_ERRORS, Dialect
from pytest_captcha_qa.scope import TokenSource

EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@EVERY_DIALECT
def test_the_table_of_methods_names_every_type(dialect: Dialect) -> None:
    assert set(dialect.methods) == set(CaptchaType)


@EVERY_DIALECT
def test_no_method_sends_what_a_provider_must_not_be_told(dialect: Dialect) -> None:
    never = {
        "key",
        "cookies",
        "useragent",
        "userAgent",
        "proxy",
        "proxytype",
        "pingback",
        "api_server",
        "json_cookies",
    }

    for method in filter(None, dialect.methods.values()):
        names = [it.name for it in method.parameters] + [name for name, _ in method.fixed]
        assert not never & set(names)
        assert len(names) == len(set(names))


@EVERY_DIALECT
def test_a_fixed_address_is_canonical_and_encrypted(dialect: Dialect) -> None:
    assert dialect.base_url is None or not Url.parse(dialect.base_url).origin.is_plain


def test_exactly_the_tokens_of_the_sandbox_are_marked() -> None:
    for dialect in DIALECTS.values():
        marked = {method.mark is not None for method in dialect.methods.values() if method is not None}
        assert marked == {dialect.source is TokenSource.SANDBOX}


@pytest.mark.parametrize("table", [ERRORS, POLL_ERRORS], ids=["submit", "poll"])
def test_every_reaction_has_an_error_and_only_waiting_has_none(
    table: dict[Reaction, type[CaptchaQAError] | None],
) -> None:
    assert set(table) == set(Reaction)
    assert [reaction for reaction, error in table.items() if error is None] == [Reaction.POLL_ON]


@pytest.mark.parametrize(
    ("code", "reaction"),
    [
        ("CAPCHA_NOT_READY", Reaction.POLL_ON),
        ("ERROR_ZERO_BALANCE", Reaction.CHECK_BALANCE),
        ("ERROR_NO_SLOT_AVAILABLE", Reaction.REQUEUE),
        ("ERROR_WRONG_CAPTCHA_ID", Reaction.DROP),
        ("ERROR_CAPTCHA_UNSOLVABLE", Reaction.ONCE_MORE),
        ("ERROR_WRONG_USER_KEY", Reaction.STOP),
        ("IP_BANNED", Reaction.STOP),
        ("ERROR_BAD_PARAMETERS", Reaction.FAIL),
        ("ERROR_SERVER_ERROR", Reaction.RETRY),
    ],
)
def test_the_reactions_of_the_requirements_are_the_ones_in_the_table(code: str, reaction: Reaction) -> None:
    assert CODES[code].reaction is reaction


def test_every_code_says_what_it_means_and_pauses_a_sensible_time() -> None:
    for code, entry in CODES.items():
        assert re.fullmatch(r"[A-Z][A-Z_]+(?:: \d{4})?", code)
        assert entry.meaning == entry.meaning.strip(".")
        assert entry.pause is None or 1 <= entry.pause <= 600


def test_the_dialects_know_each_other_by_name() -> None:
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {name: name for name in DIALECTS}
    assert DIALECTS["captchaai"].base_url == "https://ocr.captchaai.com"
