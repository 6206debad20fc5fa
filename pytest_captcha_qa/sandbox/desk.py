"""What all vendors of the stand-in have in common: whose tokens they take, and that every call is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.effects import Score
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenRegistry
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

_SCORE = 0.9


@dataclass(frozen=True, slots=True)
class Desk:
    """One vendor's side of verification.

    A demo secret verifies tokens of its own sitekey only. Any other secret verifies every token, so that an
    outside application can be pointed here with whatever secret it has.
    """

    registry: TokenRegistry
    audit: Audit
    faults: FaultPlan

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
