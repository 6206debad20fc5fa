"""A provider of an extension: what stands before it, and what of it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.engine.ports import GrantSource, PollTimes, Provider, ThreadsInfo
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    PageError,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    ScopeDenied,
    Unsolvable,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import OriginPattern, ScopeGrant, ScopeRules, TokenSource, check, fake_grant
from pytest_captcha_qa.testing import FakeGrants
from pytest_captcha_qa.wiring.extensions import Extension
from pytest_captcha_qa.wiring.providers import provider_of
from pytest_captcha_qa.wiring.team_provider import ProviderSettings

SECRET = "k3yOf32charactersABCDEFGHIJKLMNO"
DEADLINE = Deadline(30, what="the test")
SETTINGS = """\
extensions = []
[accounts.own]
provider = "inhouse"
api_key_env = "OWN_KEY"
[env.staging]
kind = "staging"
origins = ["http://127.0.0.1:9"]
base_url = "http://127.0.0.1:9"
account = "own"
[forms.login]
path = "/login"
type = "turnstile"
success = { status = 303 }
"""


@dataclass
class Solving:
    """A provider of a team that notes what it sees; `answers` are returned, or raised."""

    answers: Mapping[str, object] = field(default_factory=dict)
    seen: list[Challenge] = field(default_factory=list)

    def _answer(self, method: str, otherwise: object, *told: object) -> object:
        self.seen += [one for one in told if isinstance(one, Challenge)]
        answer = self.answers.get(method, otherwise)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def polling(self, challenge):
        return self._answer("polling", PollTimes(0.0, 2.0), challenge)

    def supports(self, challenge):
        return self._answer("supports", None, challenge)

    def submit(self, challenge, grant, deadline):
        return self._answer("submit", "task-1", challenge)

    def poll(self, challenge, task_id, deadline):
        return self._answer("poll", Solution({TOKEN: "a token"}), challenge)

    def balance(self, deadline):
        return self._answer("balance", 3)

    def threads(self, deadline):
        return self._answer("threads", None)


Make = Callable[..., Provider]


@pytest.fixture
def learned() -> list[str]:
    return []


@pytest.fixture
def written(tmp_path: Path) -> EnvironmentConfig:
    """The environment of a team whose account names a provider of its own."""
    (tmp_path / "captcha-qa.toml").write_text(SETTINGS)
    return load(tmp_path, tmp_path, options={}, ini={}, environ={"OWN_KEY": SECRET}).environment("staging")


@pytest.fixture
def provider(written: EnvironmentConfig, proven: Callable[..., GrantSource], learned: list[str]) -> Make:
    """`provider(made, grants=None)` returns what stands before what a team has made."""
    scrubber = Scrubber()
    scrubber.learn([SECRET])

    def build(made: object, grants: GrantSource | None = None) -> Provider:
        extension = Extension.of("extensions", "qa.solving", "", {"provider": lambda name, settings: made})
        return provider_of(written, [extension], grants or proven(), learned.extend, scrubber.clean)

    return build


# Who makes it, and from what.


def test_the_first_that_knows_the_name_makes_it_from_what_the_account_says(
    written: EnvironmentConfig, proven: Callable[..., GrantSource]
) -> None:
    asked: list[object] = []

    def knows(name: str, settings: object) -> object:
        asked.extend((name, settings))
        return Solving()

    def never(name: str, settings: object) -> object:
        raise AssertionError("another one came first")

    answering = (("a", lambda name, settings: None), ("b", knows), ("c", never))
    extensions = [Extension.of("extensions", name, "", {"provider": make}) for name, make in answering]
    made = provider_of(written, extensions, proven(), list, None)
    assert repr(made) == "<provider 'inhouse' of b>"
    name, settings = asked
    assert (name, settings) == ("inhouse", ProviderSettings("own", SECRET, None))
    assert SECRET not in repr(settings)


def test_extensions_are_not_asked_for_what_this_package_speaks(
    environment: Callable[..., EnvironmentConfig], proven: Callable[..., GrantSource]
) -> None:
    def never(name: str, settings: object) -> object:
        raise AssertionError("the sandbox is ours")

    found = environment(first="extensions = []")
    made = provider_of(found, [Extension.of("e", "a", "", {"provider": never})], proven(), list, None)
    assert "HttpProvider sandbox" in repr(made)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, "nobody knows 'inhouse': qa.solving gave none"),
        (object(), "is none: it lacks polling, supports, submit, poll, balance, threads"),
        (type("Sandbox", (Solving,), {"source": "sandbox"})(), "count as live, .* need a proof on this machine too"),
        (type("Keys", (Solving,), {"source": TokenSource.TESTKEYS})(), "says that its tokens are not live"),
    ],
    ids=["none", "no provider", "a sandbox", "test keys"],
)
def test_what_is_no_provider_of_live_tokens_is_refused(provider: Make, made: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        provider(made)


def test_its_account_is_live_whatever_it_makes(written: EnvironmentConfig) -> None:
    assert (written.account.source, written.account.key_mode) == (TokenSource.LIVE, "live")
    assert written.rules().needs_proof(written.base_url.origin)


# The scope check comes first (R0).


@dataclass
class Granting:
    given: ScopeGrant

    def grant(self, url: Url) -> ScopeGrant:
        return self.given


def _sandbox_grant() -> ScopeGrant:
    rules = ScopeRules("qa", EnvKind.QA, (OriginPattern.parse("http://127.0.0.1:9"),), TokenSource.SANDBOX)
    grant = check("http://127.0.0.1:9/", rules, None)
    assert isinstance(grant, ScopeGrant)
    return grant


CALLS: Mapping[str, Callable[[Provider, Challenge], object]] = {
    "polling": lambda made, challenge: made.polling(challenge),
    "supports": lambda made, challenge: made.supports(challenge),
    "poll": lambda made, challenge: made.poll(challenge, "task-1", DEADLINE),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(
    ("page", "grants", "reason"),
    [
        ("https://elsewhere.example/signup", None, "origin_not_listed"),
        ("https://shop.example/signup", Granting(fake_grant(Url.parse("https://shop.example/").origin)), "fake_grant"),
        ("https://shop.example/signup", Granting(_sandbox_grant()), "grant_mismatch"),
        ("http://127.0.0.1:9/signup", Granting(_sandbox_grant()), "grant_other_source"),
        ("https://shop.example/signup", FakeGrants(("https://shop.example",)), "fake_grant"),
    ],
)
def test_no_challenge_is_shown_before_a_live_grant_covers_its_page(
    provider: Make, challenge: Challenge, call: Callable, page: str, grants: GrantSource | None, reason: str
) -> None:
    made = Solving()
    with pytest.raises(ScopeDenied) as caught:
        call(provider(made, grants), replace(challenge, page=Url.parse(page)))
    assert (caught.value.reason, made.seen) == (reason, [])


@pytest.mark.parametrize(
    ("grant", "reason"),
    [
        (_sandbox_grant(), "grant_mismatch"),
        (fake_grant(Url.parse("https://shop.example/").origin), "fake_grant"),
        (object(), "no_grant"),
        (None, "no_grant"),
    ],
)
def test_a_submit_needs_the_grant_it_is_given_whatever_was_granted_before(
    provider: Make, challenge: Challenge, grant: ScopeGrant, reason: str
) -> None:
    made = Solving()
    standing_before = provider(made)
    standing_before.supports(challenge)
    made.seen.clear()
    with pytest.raises(ScopeDenied) as caught:
        standing_before.submit(challenge, grant, DEADLINE)
    assert (caught.value.reason, made.seen) == (reason, [])


def test_it_is_shown_the_page_without_its_query_and_copies(
    provider: Make, challenge: Challenge, proven: Callable[..., GrantSource]
) -> None:
    made, grants = Solving(), proven()
    page = Url.parse("https://shop.example/signup?session=7")
    shown = replace(challenge, page=page, data={"gt": "1"})
    assert provider(made, grants).submit(shown, grants.grant(page), DEADLINE) == "task-1"
    [seen] = made.seen
    assert str(seen.page) == "https://shop.example/signup"
    with pytest.raises(TypeError):
        seen.data["gt"] = "2"  # type: ignore[index]
    assert shown.data == {"gt": "1"}


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (CaptchaType.RECAPTCHA_V2, (None, None, None)),
        (CaptchaType.RECAPTCHA_V3, ("login", None, 0.7)),
        (CaptchaType.TURNSTILE, ("login", "data", None)),
    ],
)
def test_it_is_shown_what_its_type_needs(
    provider: Make, challenge: Challenge, kind: CaptchaType, shown: tuple[object, ...]
) -> None:
    made = Solving()
    provider(made).supports(replace(challenge, type=kind, action="login", cdata="data", min_score=0.7))
    [seen] = made.seen
    assert (seen.action, seen.cdata, seen.min_score) == shown


def test_a_task_is_polled_to_its_end_though_the_proof_has_lapsed(
    provider: Make, challenge: Challenge, proven: Callable[..., GrantSource]
) -> None:
    grants = proven()
    standing_before = provider(Solving(), grants)
    standing_before.submit(challenge, grants.grant(challenge.page), DEADLINE)
    asked = grants.asked
    assert standing_before.poll(challenge, "task-1", DEADLINE) == Solution({TOKEN: "a token"})
    assert grants.asked == asked


# What comes back.


def test_what_it_answers_goes_on_and_its_token_is_learned(
    provider: Make, challenge: Challenge, learned: list[str]
) -> None:
    solution = Solution({TOKEN: "the token"}, cookies={"cf": "a cookie"}, user_agent="Agent/1")
    made = provider(Solving({"poll": solution, "threads": ThreadsInfo(5, 1)}))
    assert made.poll(challenge, "task-1", DEADLINE) == solution
    assert learned == ["the token", "a cookie"]
    assert made.polling(challenge) == PollTimes(0.1, 2.0)
    assert (made.balance(DEADLINE), made.threads(DEADLINE)) == (3.0, ThreadsInfo(5, 1))
    assert provider(Solving({"poll": None})).poll(challenge, "task-1", DEADLINE) is None


def test_a_page_with_a_test_key_is_not_shown_to_it(provider: Make, challenge: Challenge) -> None:
    made = Solving()
    shown = replace(challenge, sitekey="6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI")

    with pytest.raises(ConfigError, match=r"official test key 6LeIx.* takes no token of the provider"):
        provider(made).supports(shown)
    assert made.seen == []


def test_no_token_of_the_sandbox_leaves_this_machine_by_way_of_an_extension(
    provider: Make, challenge: Challenge, learned: list[str]
) -> None:
    solution = Solution({TOKEN: "0.c4ptchaqaSANDBOXrest"})
    page = replace(challenge, type=CaptchaType.TURNSTILE)

    with pytest.raises(ProviderError, match="a token of the sandbox, which is for this machine only"):
        provider(Solving({"poll": solution})).poll(page, "task-1", DEADLINE)


@pytest.mark.parametrize(
    ("method", "answer", "error"),
    [
        ("submit", None, ProviderUnavailable),
        ("submit", "two words", ProviderUnavailable),
        ("submit", "x" * 81, ProviderUnavailable),
        ("submit", SECRET, ProviderUnavailable),
        ("submit", KeyError(SECRET), ProviderUnavailable),
        ("submit", PageError(SECRET), ProviderUnavailable),
        ("submit", Unsolvable(SECRET), Unsolvable),
        ("submit", ProviderBusy(SECRET, retry_after=7.0), ProviderBusy),
        ("supports", ConfigError(SECRET), ConfigError),
        ("supports", AssertionError(SECRET), ConfigError),
        ("poll", TimeoutError(SECRET), ProviderUnavailable),
        ("poll", KeyError(SECRET), ConfigError),
        ("poll", ScopeDenied(SECRET), ConfigError),
        ("poll", SECRET, ConfigError),
        ("poll", Solution({}), ConfigError),
        ("poll", Solution({TOKEN: 7}), ConfigError),
        ("poll", Solution({TOKEN: "t"}, user_agent="a\r\nHost: b"), ConfigError),
        ("poll", Solution({TOKEN: "t"}, cookies={"c": "v\n"}), ConfigError),
        ("polling", 5, ConfigError),
        ("balance", "3", ConfigError),
        ("threads", 3, ConfigError),
    ],
)
def test_what_is_wrong_becomes_an_error_of_a_provider_and_repeats_no_text(
    provider: Make, challenge: Challenge, proven: Callable[..., GrantSource], method: str, answer: object, error: type
) -> None:
    grants = proven()
    calls = {
        **CALLS,
        "submit": lambda made, challenge: made.submit(challenge, grants.grant(challenge.page), DEADLINE),
        "balance": lambda made, challenge: made.balance(DEADLINE),
        "threads": lambda made, challenge: made.threads(DEADLINE),
    }
    with pytest.raises(CaptchaQAError) as caught:
        calls[method](provider(Solving({method: answer}), grants), challenge)
    assert type(caught.value) is error
    assert SECRET[:8] not in f"{caught.value} {caught.value.message}"
    assert "qa.solving" in caught.value.message
    assert caught.value.retry_after == getattr(answer, "retry_after", None)


@pytest.mark.parametrize("asked", [-1.0, float("inf"), float("nan"), "an hour", []])
def test_what_is_no_number_of_seconds_asks_for_no_pause(provider: Make, challenge: Challenge, asked: Any) -> None:
    answer = ProviderBusy("busy", retry_after=asked)
    with pytest.raises(ProviderBusy) as caught:
        provider(Solving({"poll": answer})).poll(challenge, "task-1", DEADLINE)
    assert caught.value.retry_after is None


def test_an_interrupt_goes_on(provider: Make, challenge: Challenge) -> None:
    with pytest.raises(KeyboardInterrupt):
        provider(Solving({"supports": KeyboardInterrupt()})).supports(challenge)
