"""GeeTest's own endpoints: v3 registers a challenge and validates its solution, v4 validates a signed one."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from pytest_captcha_qa.sandbox.desk import Desk
from pytest_captcha_qa.sandbox.keys import SECRET_OF_SITEKEY
from pytest_captcha_qa.sandbox.tokens import TokenFault
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.sandbox.web import Fields

GEETEST_REGISTER = "/register.php"
GEETEST_VALIDATE = "/validate.php"
VALIDATE = "/validate"

_JORDAN = "|jordan"
_SIGN = re.compile(r"[0-9a-f]{64}")
_V4_FAULTS: Mapping[TokenFault, Mapping[str, str]] = MappingProxyType(
    {
        TokenFault.UNKNOWN: {"status": "error", "code": "-50304", "msg": "lot_number not match"},
        TokenFault.OTHER_KEY: {"status": "error", "code": "-50304", "msg": "lot_number not match"},
        TokenFault.USED: {"status": "error", "code": "-50003", "msg": "repeated verification"},
        TokenFault.EXPIRED: {"status": "success", "result": "fail", "reason": "pass_token expire"},
    }
)
_V4_SIGN_WRONG = {"status": "success", "result": "fail", "reason": "sign_token error"}
_V4_PARTS_WRONG = {"status": "success", "result": "fail", "reason": "pass_token error"}


class Geetest(Desk):
    """Both versions of GeeTest."""

    async def register(self, request: Request) -> Response:
        """Hand out a fresh challenge, or 0 for what is no GeeTest id."""
        fields = await self.receive(GEETEST_REGISTER, request)
        if fields is None or not re.fullmatch(r"[0-9a-f]{32}", fields.get("gt")):
            return _reply(fields, {"challenge": 0}, "0")
        challenge = secrets.token_hex(16)
        return _reply(fields, {"challenge": challenge}, challenge)

    async def validate(self, request: Request) -> Response:
        """Confirm a solution of v3 by the hash of its seccode, or answer `false`."""
        fields = await self.receive(GEETEST_VALIDATE, request)
        problem = "bad-request" if fields is None else self._problem(fields)
        self.audit.vendor.answered([problem] if problem else [])
        if fields is None or problem:
            return _reply(fields, {"seccode": "false"}, "false")
        digest = hashlib.md5(fields.get("seccode").encode(), usedforsecurity=False).hexdigest()
        return _reply(fields, {"seccode": digest}, digest)

    async def validate_v4(self, request: Request) -> Response:
        """Confirm a solution of v4 that the site has signed with its key."""
        fields = await self.receive(VALIDATE, request, secret_name="captcha_id")
        if fields is None or not fields.get("captcha_id"):
            wrong = {"status": "error", "code": "-50101", "msg": "missing captcha id"}
            return self.answer(wrong, ["bad-request"])
        problem = _sign_problem(fields) or self._v4_problem(fields)
        if problem:
            return self.answer(problem, [problem.get("code") or problem["reason"]])
        used = {"used_type": "slide", "lot_number": fields.get("lot_number"), "scene": "", "referer": ""}
        return self.answer({"status": "success", "result": "success", "reason": "", "captcha_args": used})

    def _problem(self, fields: Fields) -> str | None:
        """Use the posted solution of v3 up, or return why it does not hold."""
        validate, separator, rest = fields.get("seccode").partition(_JORDAN)
        token = self.registry.find(validate)
        if token is None or not separator or rest or token.binding.challenge != fields.get("challenge"):
            return TokenFault.UNKNOWN
        found = self.registry.redeem(validate, types=("geetest_v3",), sitekey=fields.get("captchaid"))
        return found if isinstance(found, TokenFault) else None

    def _v4_problem(self, fields: Fields) -> Mapping[str, str] | None:
        """Use the posted solution of v4 up, or return the answer that refuses it."""
        lot = fields.get("lot_number")
        token = self.registry.find(lot)
        parts_of = TYPES[token.binding.type].parts if token is not None else None
        if token is not None and parts_of is not None:
            parts = parts_of(lot, token.binding)
            if any(fields.get(name) != value for name, value in parts.items() if name != "captcha_id"):
                return _V4_PARTS_WRONG
        found = self.registry.redeem(lot, types=("geetest_v4",), sitekey=fields.get("captcha_id"))
        return _V4_FAULTS[found] if isinstance(found, TokenFault) else None


def _sign_problem(fields: Fields) -> Mapping[str, str] | None:
    """Return the refusal of a wrong signature; the key of an outside application is not known here."""
    sign, key = fields.get("sign_token"), SECRET_OF_SITEKEY.get(fields.get("captcha_id"))
    expected = sign if key is None else hmac.new(key.encode(), fields.get("lot_number").encode(), "sha256").hexdigest()
    return None if _SIGN.fullmatch(sign) and hmac.compare_digest(sign, expected) else _V4_SIGN_WRONG


def _reply(fields: Fields | None, reply: Mapping[str, Any], plain: str) -> Response:
    as_json = fields is not None and fields.get("json_format") == "1"
    return JSONResponse(dict(reply)) if as_json else PlainTextResponse(plain)
