from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import TOKEN, Solution, Source, Token
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.standin import IssuedToken
from pytest_captcha_qa.scope import ScopeGrant, fake_grant
from pytest_captcha_qa.wiring.standin import ScriptedVendor

PAGE = Url.parse("http://127.0.0.1:8000/login")


class Made:
    """A stand-in's client that remembers what it is asked."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        self.parts = parts
        self.asked: list[tuple[Any, ...]] = []

    def issue(self, challenge: Challenge, grant: ScopeGrant, *, age: float, outcome: Mapping[str, Any]) -> IssuedToken:
        self.asked.append((challenge.page, grant.origin, age, dict(outcome)))
        return IssuedToken("a" * 16, Solution(self.parts), used=False)

    def script_by_id(self, token_id: str, outcome: Mapping[str, Any], *, age: float) -> None:
        self.asked.append((token_id, dict(outcome), age))


class Grants:
    def grant(self, url: Url) -> ScopeGrant:
        return fake_grant(url.origin)


def _vendor(parts: Mapping[str, str]) -> tuple[ScriptedVendor, Made, list[str]]:
    made, learned = Made(parts), list[str]()
    return ScriptedVendor(made, Grants(), learned.extend), made, learned  # type: ignore[arg-type]


def _token(task_id: str | None) -> Token:
    solution = Solution({TOKEN: "0.text"}, task_id)
    return Token(
        solution,
        form="login",
        source=Source.SOLVED,
        generation=1,
        age=lambda: 0.0,
        spend=lambda token, within: solution,
    )


def test_a_token_is_made_under_the_grant_of_its_page_and_masked_from_then_on() -> None:
    vendor, made, learned = _vendor({TOKEN: "0.c4ptchaqaSANDBOXrest"})
    text = vendor.token(Challenge(CaptchaType.TURNSTILE, "key", PAGE), {"score": 0.1}, age=3)
    assert (text, learned) == ("0.c4ptchaqaSANDBOXrest", ["0.c4ptchaqaSANDBOXrest"])
    assert made.asked == [(PAGE, PAGE.origin, 3, {"score": 0.1})]


def test_a_solution_of_several_values_is_no_text() -> None:
    vendor, _, learned = _vendor({"challenge": "c", "validate": "v", "seccode": "s"})
    with pytest.raises(ConfigError, match="is no single text"):
        vendor.token(Challenge(CaptchaType.GEETEST_V3, "key", PAGE), {})
    assert learned == ["c", "v", "s"]


def test_a_token_of_the_run_is_scripted_by_its_task() -> None:
    vendor, made, _ = _vendor({})
    vendor.script(_token("b" * 16), {"status": 500})
    assert made.asked == [("b" * 16, {"status": 500}, 0.0)]
    with pytest.raises(ConfigError, match="has no task"):
        vendor.script(_token(None), {})
