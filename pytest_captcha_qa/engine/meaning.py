"""What official test keys cannot prove (reference/verification.md 2.4)."""

from __future__ import annotations

from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.token import Token


def meaningless_refusal(mode: KeyMode, kind: CaptchaType, sent: Token | str | None) -> str | None:
    """Return why a refusal of what is sent in the token's place says nothing, None if it does say something."""
    keys = facts(kind).test_keys
    if mode is not KeyMode.TESTKEYS or keys is None:
        return None
    if isinstance(sent, Token):
        return (
            f"with official test keys a used token is as good as a new one: {kind} test secrets accept theirs again "
            f"and again, so that it is refused cannot be expected"
        )
    if keys.any_token and sent is not None and sent.strip():
        return (
            f"with official test keys any text is a good token: the {kind} test secret accepts whatever is not empty, "
            f"so that a made-up one is refused cannot be expected"
        )
    return None
