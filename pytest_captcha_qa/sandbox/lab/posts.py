"""One submit of a form of the lab, as the checks see it, and what the form remembers of earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from pytest_captcha_qa.sandbox.backend import AskVendor, Question, Session
from pytest_captcha_qa.sandbox.keys import KeyPair
from pytest_captcha_qa.sandbox.standin import CLOUDFLARE, GOOGLE, HCAPTCHA
from pytest_captcha_qa.sandbox.web import Fields, host_of

ACTION = "conformance"


@dataclass(frozen=True, slots=True)
class Kind:
    """A captcha type: the widget's template, the vendor's endpoint, the field of its token."""

    template: str
    endpoint: str
    field_name: str


TURNSTILE = Kind("turnstile", CLOUDFLARE, "cf-turnstile-response")
RECAPTCHA_V3 = Kind("recaptcha_v3", GOOGLE, "g-recaptcha-response")
HCAPTCHA_KIND = Kind("hcaptcha", HCAPTCHA, "h-captcha-response")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a form compares in a success, besides the success itself; None compares nothing.

    `max_risk`: hCaptcha's score, whose high values are the bad ones.
    """

    action: str | None = ACTION
    hostname: bool = True
    min_score: float | None = None
    max_risk: float | None = None

    def hold(self, reply: Mapping[str, Any], host: str) -> bool:
        """Tell whether a success is one for this form."""
        fits = (self.action is None or reply.get("action") == self.action) and (
            not self.hostname or reply.get("hostname") == host
        )
        return fits and self._score_holds(reply.get("score"))

    def _score_holds(self, score: Any) -> bool:
        number = score if isinstance(score, (int, float)) and not isinstance(score, bool) else None
        if self.min_score is not None:
            return number is not None and number >= self.min_score
        if self.max_risk is not None:
            return score is None or (number is not None and number <= self.max_risk)
        return True


@dataclass(slots=True)
class Memory:
    """What one form knows of earlier submits: tokens with the time of their success, people, refusals by token."""

    clock: Callable[[], float]
    passed: dict[str, float] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)
    refusals: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Post:
    """One submit."""

    kind: Kind
    keys: KeyPair
    rules: Rules
    fields: Fields
    headers: Headers
    session: Session
    memory: Memory
    vendor: AskVendor

    @property
    def is_there(self) -> bool:
        """Whether the token's field was sent."""
        return self.kind.field_name in self.fields

    @property
    def token(self) -> str:
        """The token; the first of several."""
        return self.fields.get(self.kind.field_name)

    @property
    def tokens(self) -> list[str]:
        """All values of the token's field."""
        return [value for name, value in self.fields.pairs if name == self.kind.field_name]

    @property
    def host(self) -> str:
        """The name under which the visitor sees the site."""
        return host_of(self.headers.get("host", ""))

    async def ask(self, token: str, *, secret: str = "", raw: str = "") -> Mapping[str, Any]:
        """Ask the vendor about a token. Raises VendorUnavailable."""
        asked = {"secret": secret or self.keys.secret, "response": token}
        return await self.vendor(Question(self.kind.endpoint, asked, raw=raw))

    def holds(self, reply: Mapping[str, Any]) -> bool:
        """Tell whether the vendor's answer is a success for this form."""
        return reply.get("success") is True and self.rules.hold(reply, self.host)


Check = Callable[[Post], Awaitable[bool]]
"""Tells whether a submit's captcha holds. Raises VendorUnavailable where nobody can say, Crash where it breaks."""


class Crash(Exception):
    """The backend breaks on what it was sent: 500."""
