"""What all vendors of the stand-in have in common: whose tokens they take, and that every call is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pytest_captcha_qa.sandbox.audit import Audit, fingerprint
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.effects import Score
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.keys import SITEKEY_OF_SECRET
from pytest_captcha_qa.sandbox.official import TEST_SECRETS, TestSecret
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenRegistry
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

_SCORE = 0.9


@dataclass(slots=True)
class KeyRing:
    """Which sitekey a secret verifies; a secret that is not of the demo site is kept as its fingerprint only.

    `learns`: the first token that a secret verifies tells its sitekey, and others are another key's from then on, as
    they are at vendors; without it any secret verifies every token. `plays_test_secrets`: the official test secrets
    take their dummy tokens; without it they are secrets like any other.
    """

    learns: bool = False
    plays_test_secrets: bool = True
    _learned: dict[str, str] = field(default_factory=dict)

    def sitekey_of(self, secret: str) -> str | None:
        """Return the sitekey of a secret, None for one that verifies any."""
        return SITEKEY_OF_SECRET.get(secret) or self._learned.get(fingerprint(secret))

    def learn(self, secret: str, binding: Binding) -> None:
        """Remember that a secret has verified a token; hCaptcha's secrets are of an account and its many sitekeys."""
        if self.learns and binding.type != "hcaptcha":
            self._learned.setdefault(fingerprint(secret), binding.sitekey)

    def test_secret(self, secret: str) -> TestSecret | None:
        """Return what an official test secret says, None for any other secret."""
        return TEST_SECRETS.get(secret) if self.plays_test_secrets else None


@dataclass(frozen=True, slots=True)
class Desk:
    """One vendor's side of verification; it takes whatever secret an application has."""

    registry: TokenRegistry
    audit: Audit
    faults: FaultPlan
    keys: KeyRing = field(default_factory=KeyRing)

    async def receive(self, endpoint: str, request: Request, *, secret_name: str = "secret") -> Fields | None:
        """Count the call and return its fields, or None when the body cannot be read."""
        try:
            fields = await read_fields(request)
        except UnreadableBody:
            self.audit.vendor.called(endpoint)
            return None
        self.audit.vendor.called(endpoint, fields.get(secret_name))
        return fields

    def answer(self, reply: Mapping[str, Any], codes: list[str] | tuple[str, ...] = (), status: int = 200) -> Response:
        """Count a verdict, accepted when it has no codes, and return it."""
        self.audit.vendor.answered(list(codes))
        return JSONResponse(dict(reply), status)

    def score(self, endpoint: str, method: str) -> float:
        """Return the score that is switched on, else a good one."""
        given = self.faults.answer(Score, Call(endpoint, method))
        return given.score if given is not None else _SCORE

    def issued(self, token: IssuedToken, precision: str = "seconds") -> str:
        """Return when a token was issued, as vendors write it."""
        return iso(self.registry.issued_time(token), precision)


def iso(moment: datetime, precision: str = "seconds") -> str:
    """Return a moment as vendors write it."""
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
