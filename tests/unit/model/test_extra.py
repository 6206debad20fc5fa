from __future__ import annotations

import enum
import math

import pytest

from pytest_captcha_qa.model.extra import NotRecordable, field_name, field_value
from pytest_captcha_qa.model.token import RevealedText


class Colour(enum.IntEnum):
    RED = 3


class Loud(str):
    def __str__(self) -> str:
        raise AssertionError("its own code is not asked")

    __len__ = __repr__ = __hash__ = __str__  # type: ignore[assignment]


@pytest.mark.parametrize("name", ["a", "_", "squad_2", "x" * 40])
def test_an_identifier_is_a_name(name: str) -> None:
    assert field_name(name) == name


@pytest.mark.parametrize("name", ["", "2a", "a-b", "a b", "x" * 41, "squäd", "a\n", 7, None, b"a"])
def test_nothing_else_is_a_name(name: object) -> None:
    with pytest.raises(NotRecordable, match="its name is no identifier of at most 40 ASCII characters"):
        field_name(name)


@pytest.mark.parametrize("value", [None, True, False, 0, 1, -(2**63) + 1, 1.5, "", "x" * 200, "слово"])
def test_a_scalar_is_a_value_and_stays_what_it_is(value: object) -> None:
    found = field_value(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Colour.RED, 3), (RevealedText("token"), "token"), (Loud("loud"), "loud")],
    ids=["enumeration", "masked text", "text with code"],
)
def test_a_value_of_another_class_is_made_plain_without_asking_it(value: object, plain: object) -> None:
    found = field_value(value)
    assert found == plain
    assert type(found) in (int, str)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x" * 201, "its text has more than 200 characters"),
        ("\ud800", "its text is no valid Unicode"),
        (2**63, "not finite or has more than 64 bits"),
        (math.inf, "not finite"),
        (math.nan, "not finite"),
        (b"bytes", "its value is no text, number, true, false or None"),
        (["list"], "its value is no text"),
        ({}, "its value is no text"),
        (1j, "its value is no text"),
    ],
)
def test_nothing_else_is_a_value(value: object, why: str) -> None:
    with pytest.raises(NotRecordable, match=why):
        field_value(value)
