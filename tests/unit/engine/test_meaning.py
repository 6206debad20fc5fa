from __future__ import annotations

import pytest

from pytest_captcha_qa.engine.meaning import meaningless_refusal
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.captcha import FACTS, CaptchaType
from pytest_captcha_qa.model.token import Solution, Source, Token

V2, TURNSTILE, HCAPTCHA = CaptchaType.RECAPTCHA_V2, CaptchaType.TURNSTILE, CaptchaType.HCAPTCHA
WITH_KEYS = [kind for kind, known in FACTS.items() if known.test_keys]


def _token() -> Token:
    solution = Solution.of_text("t")
    return Token(
        solution, form="f", source=Source.SOLVED, generation=1, age=lambda: 0.0, spend=lambda token, within: solution
    )


@pytest.mark.parametrize("kind", WITH_KEYS)
def test_a_used_token_of_test_keys_says_nothing(kind: CaptchaType) -> None:
    reason = meaningless_refusal(KeyMode.TESTKEYS, kind, _token())
    assert reason is not None
    assert f"{kind} test secrets accept theirs again and again" in reason


def test_a_made_up_token_says_nothing_where_every_text_is_a_good_one() -> None:
    reason = meaningless_refusal(KeyMode.TESTKEYS, V2, "made-up")
    assert reason is not None
    assert "accepts whatever is not empty" in reason


@pytest.mark.parametrize(
    ("kind", "sent"), [(V2, None), (V2, ""), (V2, "  "), (TURNSTILE, "made-up"), (HCAPTCHA, "made-up"), (TURNSTILE, "")]
)
def test_what_a_site_must_refuse_under_test_keys_too_is_seen_refused(kind: CaptchaType, sent: str | None) -> None:
    assert meaningless_refusal(KeyMode.TESTKEYS, kind, sent) is None


@pytest.mark.parametrize("mode", [KeyMode.LIVE, KeyMode.STANDIN])
def test_every_refusal_means_something_with_other_tokens(mode: KeyMode) -> None:
    for kind in CaptchaType:
        assert meaningless_refusal(mode, kind, "made-up") is None
        assert meaningless_refusal(mode, kind, _token()) is None
