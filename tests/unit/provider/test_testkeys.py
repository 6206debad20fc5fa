from __future__ import annotations

import pytest

from pytest_captcha_qa.engine.ports import PollTimes, Provider
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, ScopeDenied
from pytest_captcha_qa.model.captcha import FACTS, CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.testkeys import TestKeysProvider
from pytest_captcha_qa.scope import OriginPattern, ScopeGrant, ScopeRules, TokenSource, check, fake_grant

PAGE = Url.parse("http://127.0.0.1:8000/login?next=hidden")
PASSES = "1x00000000000000000000AA"
WITHOUT = [kind for kind, known in FACTS.items() if known.test_keys is None]


def _challenge(sitekey: str = PASSES, kind: CaptchaType = CaptchaType.TURNSTILE, page: Url = PAGE) -> Challenge:
    return Challenge(kind, sitekey, page)


def _grant(source: TokenSource = TokenSource.TESTKEYS) -> ScopeGrant:
    pattern = OriginPattern(PAGE.origin)
    granted = check(PAGE, ScopeRules("qa", EnvKind.DEMO, (pattern,), source), None)
    assert isinstance(granted, ScopeGrant)
    return granted


def _deadline() -> Deadline:
    return Deadline(30, what="the test")


@pytest.mark.parametrize(
    ("kind", "sitekey", "token"),
    [
        (kind, sitekey, token)
        for kind, it in FACTS.items()
        if it.test_keys
        for sitekey, token in it.test_keys.tokens.items()
    ],
)
def test_a_page_with_a_test_key_gets_the_vendors_dummy_token_at_once(
    kind: CaptchaType, sitekey: str, token: str
) -> None:
    provider: Provider = TestKeysProvider()
    challenge = _challenge(sitekey, kind)
    task_id = provider.submit(challenge, _grant(), _deadline())
    solution = provider.poll(challenge, task_id, _deadline())

    assert solution is not None
    assert dict(solution.parts) == {"token": token}
    assert provider.polling(challenge) == PollTimes(0.0, 0.05)
    assert (provider.balance(_deadline()), provider.threads(_deadline())) == (None, None)
    assert provider.report(task_id, good=True, deadline=_deadline()) is False


def test_every_task_has_an_id_of_its_own() -> None:
    provider = TestKeysProvider()

    assert len({provider.submit(_challenge(), _grant(), _deadline()) for _ in range(5)}) == 5


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (
            _challenge("0x4AAAAAAAreal"),
            r"/login shows the sitekey 0x4AAAAAAAreal, which is no official test key of turnstile: .*"
            r"must be set up with 1x00000000000000000000AA or 1x",
        ),
        (_challenge("2x00000000000000000000AB"), "the official test key that never passes; set the site up with 1x"),
        (_challenge(PASSES, CaptchaType.HCAPTCHA), "no official test key of hcaptcha.*10000000-ffff"),
        *(
            (_challenge(PASSES, kind), f"{kind} has no official test keys, there are some for recaptcha")
            for kind in WITHOUT
        ),
    ],
)
def test_any_other_page_is_refused_with_what_is_expected(challenge: Challenge, words: str) -> None:
    provider = TestKeysProvider()

    for step in (lambda: provider.supports(challenge), lambda: provider.submit(challenge, _grant(), _deadline())):
        with pytest.raises(ConfigError, match=words) as caught:
            step()
        assert "hidden" not in str(caught.value)


def test_a_token_needs_a_grant_for_test_keys_and_for_the_page() -> None:
    provider = TestKeysProvider()
    other = _challenge(page=Url.parse("http://127.0.0.1:8001/login"))

    for challenge, grant in (
        (_challenge(), _grant(TokenSource.SANDBOX)),
        (_challenge(), fake_grant(PAGE.origin)),
        (other, _grant()),
    ):
        with pytest.raises(ScopeDenied):
            provider.submit(challenge, grant, _deadline())
