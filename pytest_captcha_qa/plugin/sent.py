"""What a test wants to see accepted or refused, as it wrote it."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.engine.meaning import meaningless_refusal
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.attempt import Expect, KeyMode
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import Solution, Token


def expectation(expect: str) -> Expect:
    """Return what is expected of the site.

    Raises:
        ConfigError: it is neither of the two words.
    """
    try:
        return Expect(expect)
    except ValueError:
        raise ConfigError(f"expect is 'accept' or 'refuse', not {expect!r}") from None


def in_the_tokens_place(token: Token | str | None) -> Solution | None:
    """Return what is sent to see it refused; None: nothing.

    Raises:
        ConfigError: it is a token that was not used yet.
    """
    if token is None:
        return None
    return replayed(token) if isinstance(token, Token) else Solution.of_text(str(token))


def replayed(token: Token) -> Solution:
    """Return the solution of a used token.

    Raises:
        ConfigError: it was not used yet.
    """
    try:
        return token.replayed()
    except ValueError as error:
        raise ConfigError(str(error)) from None


def skip_if_meaningless(mode: KeyMode, kind: CaptchaType, sent: Token | str | None) -> None:
    """Skip the rest of the test where the keys under test cannot prove what it asks for."""
    reason = meaningless_refusal(mode, kind, sent)
    if reason is not None:
        raise pytest.skip.Exception(reason)
