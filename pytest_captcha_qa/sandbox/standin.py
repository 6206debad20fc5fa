"""The vendors' verification endpoints: they accept the sandbox's own tokens, each once, and nothing else.

Only an official test secret takes its own dummy tokens, again and again, as it does at its vendor.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.apis import ASSESSMENTS, FRIENDLY, Enterprise, Friendly
from pytest_captcha_qa.sandbox.desk import Desk, iso
from pytest_captcha_qa.sandbox.geetest import GEETEST_REGISTER, GEETEST_VALIDATE, VALIDATE, Geetest
from pytest_captcha_qa.sandbox.keys import RETIRED_SECRET
from pytest_captcha_qa.sandbox.official import TestSecret
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenFault
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.sandbox.web import Fields
from pytest_captcha_qa.sandbox.yandex import Yandex, is_for_yandex

GOOGLE = "/recaptcha/api/siteverify"
CLOUDFLARE = "/turnstile/v0/siteverify"
HCAPTCHA = "/siteverify"

_Codes = Mapping[TokenFault, str]
_CODES: _Codes = MappingProxyType(
    {
        TokenFault.UNKNOWN: "invalid-input-response",
        TokenFault.OTHER_KEY: "invalid-input-response",
        TokenFault.USED: "timeout-or-duplicate",
        TokenFault.EXPIRED: "timeout-or-duplicate",
    }
)
_HCAPTCHA_CODES: _Codes = MappingProxyType(
    {
        TokenFault.UNKNOWN: "invalid-input-response",
        TokenFault.OTHER_KEY: "sitekey-secret-mismatch",
        TokenFault.USED: "already-seen-response",
        TokenFault.EXPIRED: "expired-input-response",
    }
)


class StandIn(Desk):
    """The vendors that answer in the siteverify grammar: Google, Cloudflare and hCaptcha."""

    async def google(self, request: Request) -> Response:
        """Answer siteverify as reCAPTCHA v2 and v3 do; a repeated parameter name makes a bad request."""
        fields = await self.receive(GOOGLE, request)
        if fields is None or fields.has_repeated_names():
            return self._refuse(["bad-request"])
        if test := self.keys.test_secret(fields.get("secret")):
            return self._test(test, fields)
        found = self._redeem(fields, types=("recaptcha_v2", "recaptcha_v2_invisible", "recaptcha_v3"))
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        reply = self._common(found)
        if TYPES[found.binding.type].scored:
            reply |= {"score": self.score(GOOGLE, request.method), "action": found.binding.action}
        return self.answer(reply)

    async def cloudflare(self, request: Request) -> Response:
        """Answer siteverify as Turnstile does; the first call's `idempotency_key` may repeat it."""
        fields = await self.receive(CLOUDFLARE, request)
        if fields is None:
            return self._refuse(["bad-request"])
        if test := self.keys.test_secret(fields.get("secret")):
            return self._test(test, fields, {"error-codes": []})
        found = self._redeem(fields, types=("turnstile",), retry_key=fields.get("idempotency_key"))
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        reply = self._common(found, "milliseconds") | {"error-codes": [], "metadata": {"interactive": False}}
        return self.answer(reply | {"action": found.binding.action, "cdata": found.binding.cdata})

    async def hcaptcha(self, request: Request) -> Response:
        """Answer siteverify as hCaptcha does: no JSON is read, and a `sitekey` that is sent is compared."""
        fields = await self.receive(HCAPTCHA, request)
        if fields is None or request.headers.get("content-type", "").startswith("application/json"):
            return self._refuse(["bad-request"])
        if test := self.keys.test_secret(fields.get("secret")):
            return self._test(test, fields)
        expected = fields.get("sitekey") or None
        found = self._redeem(fields, types=("hcaptcha",), codes=_HCAPTCHA_CODES, sitekey=expected)
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        return self.answer(self._common(found) | {"credit": False})

    def _redeem(
        self,
        fields: Fields,
        *,
        types: tuple[str, ...],
        retry_key: str = "",
        codes: _Codes = _CODES,
        sitekey: str | None = None,
    ) -> IssuedToken | list[str]:
        """Use the posted token up, or return the vendor's error codes."""
        secret, text = fields.get("secret"), fields.get("response")
        if not (secret and text):
            return _missing(fields)
        if secret == RETIRED_SECRET:
            return ["invalid-input-secret"]
        own = self.keys.sitekey_of(secret)
        if own is not None and sitekey is not None and own != sitekey:
            return ["sitekey-secret-mismatch"]
        found = self.registry.redeem(text, types=types, sitekey=own or sitekey, retry_key=retry_key)
        if isinstance(found, TokenFault):
            return [codes[found]]
        self.keys.learn(secret, found.binding)
        return found

    def _test(self, secret: TestSecret, fields: Fields, more: Mapping[str, Any] = MappingProxyType({})) -> Response:
        """Answer as an official test secret does."""
        text = fields.get("response")
        codes = secret.verdict(text) if text else _missing(fields)
        said = {"metadata": secret.reply["metadata"]} if "metadata" in secret.reply else {}
        if codes:
            return self._refuse(list(codes), said)
        return self.answer({"success": True, "challenge_ts": iso(datetime.now(UTC)), **secret.reply, **more})

    def _common(self, token: IssuedToken, precision: str = "seconds") -> dict[str, Any]:
        issued = self.issued(token, precision)
        return {"success": True, "challenge_ts": issued, "hostname": token.binding.hostname}

    def _refuse(self, codes: list[str], more: Mapping[str, Any] = MappingProxyType({})) -> Response:
        return self.answer({"success": False, "error-codes": codes, **more}, codes)


def _missing(fields: Fields) -> list[str]:
    return [f"missing-input-{name}" for name in ("secret", "response") if not fields.get(name)]


def build_app(standin: StandIn) -> Starlette:
    """Return the vendors' endpoints as one ASGI application."""
    shared = (standin.registry, standin.audit, standin.faults, standin.keys)
    geetest, enterprise, friendly, yandex = Geetest(*shared), Enterprise(*shared), Friendly(*shared), Yandex(*shared)

    async def validate(request: Request) -> Response:
        """Answer at the path that two vendors have in common, each on a host of its own in life."""
        return await (yandex.validate if await is_for_yandex(request) else geetest.validate_v4)(request)

    return Starlette(
        routes=[
            Route(GOOGLE, standin.google, methods=["GET", "POST"]),
            Route(CLOUDFLARE, standin.cloudflare, methods=["POST"]),
            Route(HCAPTCHA, standin.hcaptcha, methods=["POST"]),
            Route(ASSESSMENTS, enterprise.assess, methods=["POST"]),
            Route(FRIENDLY, friendly.siteverify, methods=["POST"]),
            Route(GEETEST_REGISTER, geetest.register, methods=["GET"]),
            Route(GEETEST_VALIDATE, geetest.validate, methods=["POST"]),
            Route(VALIDATE, validate, methods=["GET", "POST"]),
        ]
    )
