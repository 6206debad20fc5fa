from __future__ import annotations

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.attempt import Expect, KeyMode
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.plugin.sent import expectation, in_the_tokens_place, skip_if_meaningless

V2 = CaptchaType.RECAPTCHA_V2


def test_what_test_keys_cannot_prove_is_skipped_with_the_reason() -> None:
    with pytest.raises(pytest.skip.Exception, match="the recaptcha_v2 test secret accepts whatever is not empty"):
        skip_if_meaningless(KeyMode.TESTKEYS, V2, "made-up")


@pytest.mark.parametrize(("mode", "sent"), [(KeyMode.TESTKEYS, None), (KeyMode.LIVE, "made-up")])
def test_everything_else_goes_on(mode: KeyMode, sent: str | None) -> None:
    skip_if_meaningless(mode, V2, sent)
    assert in_the_tokens_place(None) is None


def test_an_expectation_is_one_of_two_words() -> None:
    assert expectation("refuse") is Expect.REFUSE
    with pytest.raises(ConfigError, match="'accept' or 'refuse', not 'reject'"):
        expectation("reject")
