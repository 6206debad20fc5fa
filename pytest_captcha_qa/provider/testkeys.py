"""The vendors' official test keys in place of a solving service: no request, and the dummy token of each key."""

from __future__ import annotations

from uuid import uuid4

from pytest_captcha_qa.engine.ports import PollTimes
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, ScopeDenied
from pytest_captcha_qa.model.captcha import FACTS, CaptchaType, TestKeys
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.scope import ScopeGrant, TokenSource, ensure

_AT_ONCE = PollTimes(first=0.0, interval=0.05)


class TestKeysProvider:
    """Implements Provider for pages that show an official test key; what its tokens prove is said in `key_mode`."""

    __test__ = False  # not a test class, whatever its name

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return that the token is there at once."""
        return _AT_ONCE

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if the page shows a test key whose widget would solve itself.

        Raises:
            ConfigError: it does not; the message names the key that is expected.
        """
        self._token(challenge)

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Return the id of a task that exists nowhere; nothing is sent.

        Raises:
            ScopeDenied: the grant does not cover the page, or is for other tokens.
            ConfigError: see `supports`.
        """
        self._token(challenge)
        ensure(grant, challenge.page)
        if grant.source is not TokenSource.TESTKEYS:
            raise ScopeDenied(
                f"the grant for {grant.origin} is for {grant.source} tokens, not for those of test keys",
                reason="grant_other_source",
            )
        return f"testkeys-{uuid4().hex[:12]}"

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution:
        """Return the dummy token of the page's test key, whoever made the task."""
        return Solution({TOKEN: self._token(challenge)})

    def balance(self, deadline: Deadline) -> None:
        """Return None: there is no account."""

    def threads(self, deadline: Deadline) -> None:
        """Return None: there is nothing to share."""

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Return False: nobody takes a report."""
        return False

    def _token(self, challenge: Challenge) -> str:
        keys = FACTS[challenge.type].test_keys
        if keys is None:
            raise ConfigError(without_keys(challenge.type))
        token = keys.tokens.get(challenge.sitekey)
        if token is None:
            raise ConfigError(_unexpected(challenge, keys))
        return token

    def __repr__(self) -> str:
        return "<TestKeysProvider>"


_TYPES: tuple[CaptchaType, ...] = tuple(kind for kind, known in FACTS.items() if known.test_keys is not None)


def has_keys(kind: CaptchaType) -> bool:
    """Return whether the vendor of a type publishes test keys."""
    return kind in _TYPES


def without_keys(kind: CaptchaType) -> str:
    """Return in a sentence that there are none, and what to do."""
    return (
        f"{kind} has no official test keys, there are some for {', '.join(_TYPES)}: use an account of a solving "
        f"service, or of the sandbox, for this form"
    )


def _unexpected(challenge: Challenge, keys: TestKeys) -> str:
    expected = " or ".join(keys.tokens)
    where = f"{challenge.page.without_query} shows the sitekey {challenge.sitekey}"
    if challenge.sitekey in keys.failing:
        return f"{where}, the official test key that never passes; set the site up with {expected} to see it accept"
    return (
        f"{where}, which is no official test key of {challenge.type}: with a testkeys account the site must be set up "
        f"with {expected} and its secret"
    )
