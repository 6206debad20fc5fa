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
from pytest_captcha_qa.sandbox.geetest import GEETEST_REGISTER, GEETEST_V4_VALIDATE, GEETEST_VALIDATE, Geetest
from pytest_captcha_qa.sandbox.keys import RETIRED_SECRET, SITEKEY_OF_SECRET
from pytest_captcha_qa.sandbox.official import TEST_SECRETS
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenFault
from pytest_captcha_qa.sandbox.web import Fields

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
        if fields.get("secret") in TEST_SECRETS:
            return self._test(fields)
        found = self._redeem(fields, types=("recaptcha_v2", "recaptcha_v2_invisible", "recaptcha_v3"))
        if not isinstance(found, IssuedToken):
            return self._refuse(found)
        reply = self._common(found)
        if found.binding.type == "recaptcha_v3":
            reply |= {"score": self.score(GOOGLE, request.method), "action": found.binding.action}
        return self.answer(reply)

    async def cloudflare(self, request: Request) -> Response:
        """Answer siteverify as Turnstile does; the first call's `idempotency_key` may repeat it."""
        fields = await self.receive(CLOUDFLARE, request)
        if fields is None:
            return self._refuse(["bad-request"])
        if fields.get("secret") in TEST_SECRETS:
            return self._test(fields, {"error-codes": []})
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
        if fields.get("secret") in TEST_SECRETS:
            return self._test(fields)
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
        own = SITEKEY_OF_SECRET.get(secret)
        if own is not None and sitekey is not None and own != sitekey:
            return ["sitekey-secret-mismatch"]
        found = self.registry.redeem(text, types=types, sitekey=own or sitekey, retry_key=retry_key)
        return [codes[found]] if isinstance(found, TokenFault) else found

    def _test(self, fields: Fields, more: Mapping[str, Any] = MappingProxyType({})) -> Response:
        """Answer as an official test secret does."""
        secret, text = TEST_SECRETS[fields.get("secret")], fields.get("response")
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
    shared = (standin.registry, standin.audit, standin.faults)
    geetest, enterprise, friendly = Geetest(*shared), Enterprise(*shared), Friendly(*shared)
    return Starlette(
        routes=[
            Route(GOOGLE, standin.google, methods=["GET", "POST"]),
            Route(CLOUDFLARE, standin.cloudflare, methods=["POST"]),
            Route(HCAPTCHA, standin.hcaptcha, methods=["POST"]),
            Route(ASSESSMENTS, enterprise.assess, methods=["POST"]),
            Route(FRIENDLY, friendly.siteverify, methods=["POST"]),
            Route(GEETEST_REGISTER, geetest.register, methods=["GET"]),
            Route(GEETEST_VALIDATE, geetest.validate, methods=["POST"]),
            Route(GEETEST_V4_VALIDATE, geetest.validate_v4, methods=["GET", "POST"]),
        ]
    )
