"""The vendors whose verification is an API with a key: Google's assessments for Enterprise, and Friendly Captcha."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from pytest_captcha_qa.sandbox.desk import Desk
from pytest_captcha_qa.sandbox.keys import RETIRED_SECRET
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenFault
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_json

ASSESSMENTS = "/v1/projects/{project}/assessments"
FRIENDLY = "/api/v2/captcha/siteverify"

_INVALID: Mapping[TokenFault, str] = MappingProxyType(
    {
        TokenFault.UNKNOWN: "MALFORMED",
        TokenFault.OTHER_KEY: "INVALID_REASON_UNSPECIFIED",
        TokenFault.USED: "DUPE",
        TokenFault.EXPIRED: "EXPIRED",
    }
)
_FRIENDLY_CODES: Mapping[TokenFault, str] = MappingProxyType(
    {
        TokenFault.UNKNOWN: "response_invalid",
        TokenFault.OTHER_KEY: "response_invalid",
        TokenFault.USED: "response_duplicate",
        TokenFault.EXPIRED: "response_timeout",
    }
)
_FRIENDLY_STATUS = {"auth_required": 401, "auth_invalid": 401, "response_missing": 400, "bad_request": 400}


class Enterprise(Desk):
    """reCAPTCHA Enterprise: one assessment a token."""

    async def assess(self, request: Request) -> Response:
        """Answer an assessment: a bad token is an answer too, a bad key or body is an error."""
        key = request.query_params.get("key") or request.headers.get("x-goog-api-key", "")
        self.audit.vendor.called(ASSESSMENTS, key)
        if not key or key == RETIRED_SECRET:
            return self._error(403, "PERMISSION_DENIED", "The caller does not have permission")
        event = await _event(request)
        if event is None or not isinstance(event.get("siteKey"), str):
            return self._error(400, "INVALID_ARGUMENT", "Request contains an invalid argument.")
        return self._assessed(request, event)

    def _assessed(self, request: Request, event: Mapping[str, Any]) -> Response:
        text, project = event.get("token"), request.path_params["project"]
        known = isinstance(text, str) and text
        found = self.registry.redeem(str(text), types=("recaptcha_enterprise",), sitekey=event["siteKey"])
        valid = isinstance(found, IssuedToken)
        reason = (_INVALID[found] if known else "MISSING") if isinstance(found, TokenFault) else None
        reply: dict[str, Any] = {
            "name": f"projects/{project}/assessments/{secrets.token_hex(8)}",
            "event": dict(event),
            "tokenProperties": self._properties(found) if isinstance(found, IssuedToken) else {"valid": False},
        }
        if valid:
            score = self.score(request.url.path, request.method)
            reply["riskAnalysis"] = {"score": score, "reasons": []}
        else:
            reply["tokenProperties"]["invalidReason"] = reason
        return self.answer(reply, [reason] if reason else [])

    def _properties(self, token: IssuedToken) -> dict[str, Any]:
        binding = token.binding
        told = {"createTime": self.issued(token, "milliseconds"), "hostname": binding.hostname}
        return {"valid": True, "invalidReason": "INVALID_REASON_UNSPECIFIED", "action": binding.action, **told}

    def _error(self, status: int, name: str, message: str) -> Response:
        return self.answer({"error": {"code": status, "message": message, "status": name}}, [name], status)


class Friendly(Desk):
    """Friendly Captcha v2."""

    async def siteverify(self, request: Request) -> Response:
        """Answer siteverify; the key comes in a header, and only a judged token has status 200."""
        key = request.headers.get("x-api-key", "")
        fields = await self.receive(FRIENDLY, request, secret_name="")
        found = self._redeem(key, fields)
        if isinstance(found, str):
            refused = {"success": False, "error": {"error_code": found, "detail": "see the documentation"}}
            return self.answer(refused, [found], _FRIENDLY_STATUS.get(found, 200))
        page = urlsplit(found.binding.page)
        challenge = {"timestamp": self.issued(found), "origin": f"{page.scheme}://{page.netloc}"}
        data = {"event_id": f"ev_{secrets.token_hex(8)}", "challenge": challenge, "risk_intelligence": None}
        return self.answer({"success": True, "data": data})

    def _redeem(self, key: str, fields: Fields | None) -> IssuedToken | str:
        if not key or key == RETIRED_SECRET:
            return "auth_invalid" if key else "auth_required"
        if fields is None:
            return "bad_request"
        if not fields.get("response"):
            return "response_missing"
        expected = self.keys.sitekey_of(key) or fields.get("sitekey") or None
        found = self.registry.redeem(fields.get("response"), types=("friendly_v2",), sitekey=expected)
        return _FRIENDLY_CODES[found] if isinstance(found, TokenFault) else found


async def _event(request: Request) -> Mapping[str, Any] | None:
    try:
        body = await read_json(request)
    except UnreadableBody:
        return None
    event = body.get("event") if isinstance(body, dict) else None
    return event if isinstance(event, dict) else None
