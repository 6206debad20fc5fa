"""The vendors' verification endpoints: they accept the sandbox's own tokens, each once, and nothing else."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.effects import Score
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.keys import RETIRED_SECRET, SITEKEY_OF_SECRET
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenFault, TokenRegistry
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

GOOGLE = "/recaptcha/api/siteverify"
CLOUDFLARE = "/turnstile/v0/siteverify"
GEETEST_REGISTER = "/register.php"
GEETEST_VALIDATE = "/validate.php"

_SCORE = 0.9
_JORDAN = "|jordan"
_CODES: Mapping[TokenFault, str] = MappingProxyType(
    {
        TokenFault.UNKNOWN: "invalid-input-response",
        TokenFault.OTHER_KEY: "invalid-input-response",
        TokenFault.USED: "timeout-or-duplicate",
        TokenFault.EXPIRED: "timeout-or-duplicate",
    }
)


@dataclass(frozen=True, slots=True)
class StandIn:
    """The vendors' side of verification.

    A demo secret verifies tokens of its own sitekey only. Any other secret verifies every token, so that an
    outside application can be pointed here with whatever secret it has.
    """

    registry: TokenRegistry
    audit: Audit
    faults: FaultPlan

    async def google(self, request: Request) -> Response:
        """Answer siteverify as reCAPTCHA v2 and v3 do; a repeated parameter name makes a bad request."""
        fields = await self._receive(GOOGLE, request)
        if fields is None or fields.has_repeated_names():
            return self._refuse(["bad-request"])
        found = self._redeem(fields, types=("recaptcha_v2", "recaptcha_v2_invisible", "recaptcha_v3"))
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        reply = self._common(found, "seconds")
        if found.binding.type == "recaptcha_v3":
            given = self.faults.answer(Score, Call(GOOGLE, request.method))
            score = given.score if given is not None else _SCORE
            reply |= {"score": score, "action": found.binding.action}
        return self._accept(reply)

    async def cloudflare(self, request: Request) -> Response:
        """Answer siteverify as Turnstile does; the first call's `idempotency_key` may repeat it."""
        fields = await self._receive(CLOUDFLARE, request)
        if fields is None:
            return self._refuse(["bad-request"])
        found = self._redeem(fields, types=("turnstile",), retry_key=fields.get("idempotency_key"))
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        reply = self._common(found, "milliseconds") | {"error-codes": [], "metadata": {"interactive": False}}
        return self._accept(reply | {"action": found.binding.action, "cdata": found.binding.cdata})

    async def geetest_register(self, request: Request) -> Response:
        """Hand out a fresh challenge, or 0 for what is no GeeTest id."""
        fields = await self._receive(GEETEST_REGISTER, request)
        if fields is None or not re.fullmatch(r"[0-9a-f]{32}", fields.get("gt")):
            return _geetest_reply(fields, {"challenge": 0}, "0")
        challenge = secrets.token_hex(16)
        return _geetest_reply(fields, {"challenge": challenge}, challenge)

    async def geetest_validate(self, request: Request) -> Response:
        """Confirm a solution by the hash of its seccode, or answer `false`."""
        fields = await self._receive(GEETEST_VALIDATE, request)
        problem = "bad-request" if fields is None else self._geetest_problem(fields)
        self.audit.vendor.answered([problem] if problem else [])
        if fields is None or problem:
            return _geetest_reply(fields, {"seccode": "false"}, "false")
        digest = hashlib.md5(fields.get("seccode").encode(), usedforsecurity=False).hexdigest()
        return _geetest_reply(fields, {"seccode": digest}, digest)

    async def _receive(self, endpoint: str, request: Request) -> Fields | None:
        """Count the call and return its fields, or None when the body cannot be read."""
        try:
            fields = await read_fields(request)
        except UnreadableBody:
            self.audit.vendor.called(endpoint)
            return None
        self.audit.vendor.called(endpoint, fields.get("secret"))
        return fields

    def _redeem(self, fields: Fields, *, types: tuple[str, ...], retry_key: str = "") -> IssuedToken | list[str]:
        """Use the posted token up, or return the vendor's error codes."""
        secret, text = fields.get("secret"), fields.get("response")
        if not (secret and text):
            inputs = {"secret": secret, "response": text}
            return [f"missing-input-{name}" for name, value in inputs.items() if not value]
        if secret == RETIRED_SECRET:
            return ["invalid-input-secret"]
        sitekey = SITEKEY_OF_SECRET.get(secret)
        found = self.registry.redeem(text, types=types, sitekey=sitekey, retry_key=retry_key)
        return [_CODES[found]] if isinstance(found, TokenFault) else found

    def _geetest_problem(self, fields: Fields) -> str | None:
        """Use the posted solution up, or return why it does not hold."""
        validate, separator, rest = fields.get("seccode").partition(_JORDAN)
        token = self.registry.find(validate)
        if token is None or not separator or rest or token.binding.challenge != fields.get("challenge"):
            return TokenFault.UNKNOWN
        found = self.registry.redeem(validate, types=("geetest_v3",), sitekey=fields.get("captchaid"))
        return found if isinstance(found, TokenFault) else None

    def _common(self, token: IssuedToken, precision: str) -> dict[str, Any]:
        issued = _iso(self.registry.issued_time(token), precision)
        return {"success": True, "challenge_ts": issued, "hostname": token.binding.hostname}

    def _accept(self, reply: Mapping[str, Any]) -> Response:
        self.audit.vendor.answered([])
        return JSONResponse(dict(reply))

    def _refuse(self, codes: list[str]) -> Response:
        self.audit.vendor.answered(codes)
        return JSONResponse({"success": False, "error-codes": codes})


def _iso(moment: datetime, precision: str) -> str:
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _geetest_reply(fields: Fields | None, reply: Mapping[str, Any], plain: str) -> Response:
    as_json = fields is not None and fields.get("json_format") == "1"
    return JSONResponse(dict(reply)) if as_json else PlainTextResponse(plain)


def build_app(standin: StandIn) -> Starlette:
    """Return the vendors' endpoints as one ASGI application."""
    return Starlette(
        routes=[
            Route(GOOGLE, standin.google, methods=["GET", "POST"]),
            Route(CLOUDFLARE, standin.cloudflare, methods=["POST"]),
            Route(GEETEST_REGISTER, standin.geetest_register, methods=["GET"]),
            Route(GEETEST_VALIDATE, standin.geetest_validate, methods=["POST"]),
        ]
    )
