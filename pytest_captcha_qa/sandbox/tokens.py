"""The tokens the sandbox has issued: the only ones its vendor stand-in accepts."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random, SystemRandom

from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.types import ISSUED

Clock = Callable[[], float]


@dataclass(slots=True)
class IssuedToken:
    """One token: its text, what it is bound to, and whether it has been verified."""

    text: str
    binding: Binding
    issued_at: float
    expires_at: float
    used: bool = False
    retry_key: str = ""


class TokenFault(StrEnum):
    """Why a token is not accepted."""

    UNKNOWN = "unknown"
    OTHER_KEY = "other_key"
    USED = "used"
    EXPIRED = "expired"


@dataclass(slots=True)
class TokenRegistry:
    """Issues tokens, and redeems each of them once while it lives."""

    clock: Clock = time.monotonic
    rng: Random = field(default_factory=SystemRandom)
    _tokens: dict[str, IssuedToken] = field(default_factory=dict)
    _spent_challenges: set[str] = field(default_factory=set)

    def issue(self, binding: Binding, *, issued_at: float | None = None, ending: str = "") -> IssuedToken:
        """Return a new token for `binding`, with this ending; its life counts from `issued_at`, by default from now."""
        facts = ISSUED[binding.type]
        start = self.clock() if issued_at is None else issued_at
        token = IssuedToken(facts.mint(self.rng, binding) + ending, binding, start, start + facts.lifetime)
        self._tokens[token.text] = token
        if binding.challenge:
            self._spent_challenges.add(binding.challenge)
        return token

    def find(self, text: str) -> IssuedToken | None:
        """Return the token with this text, if it was issued here."""
        return self._tokens.get(text)

    def age(self, token: IssuedToken, seconds: float) -> None:
        """Let a token be so many seconds older than it is."""
        token.issued_at -= seconds
        token.expires_at -= seconds

    def forget(self, texts: Collection[str]) -> None:
        """Accept these tokens no more."""
        for text in texts:
            self._tokens.pop(text, None)

    def challenge_is_spent(self, challenge: str) -> bool:
        """Tell whether a token was already issued for this single-use challenge."""
        return challenge in self._spent_challenges

    def redeem(
        self, text: str, *, types: Collection[str], sitekey: str | None = None, retry_key: str = ""
    ) -> IssuedToken | TokenFault:
        """Use a token up and return it, or say why it is not accepted.

        `sitekey` None accepts any. A token is redeemed again only with the `retry_key` of its first time.
        """
        token = self._tokens.get(text)
        if token is None or token.binding.type not in types:
            return TokenFault.UNKNOWN
        if sitekey is not None and token.binding.sitekey != sitekey:
            return TokenFault.OTHER_KEY
        if token.used:
            return token if retry_key and retry_key == token.retry_key else TokenFault.USED
        if self.clock() >= token.expires_at:
            return TokenFault.EXPIRED
        token.used, token.retry_key = True, retry_key
        return token

    def issued_time(self, token: IssuedToken) -> datetime:
        """Return the wall-clock moment a token was issued."""
        return datetime.now(UTC) - timedelta(seconds=self.clock() - token.issued_at)
