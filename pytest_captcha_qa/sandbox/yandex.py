"""Yandex SmartCaptcha: one call with a secret of the site; every bad token gets the same answer."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pytest_captcha_qa.sandbox.desk import Desk
from pytest_captcha_qa.sandbox.geetest import VALIDATE
from pytest_captcha_qa.sandbox.tokens import TokenFault
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

_NO_SECRET = "Authentication failed. Secret has not provided."
_BAD_TOKEN = "Token invalid or expired."


def speaks_yandex(fields: Fields) -> bool:
    """Tell by the names of its parameters whether a call at `/validate` is for Yandex, not for GeeTest v4."""
    return "captcha_id" not in fields and ("secret" in fields or "token" in fields)


async def is_for_yandex(request: Request) -> bool:
    """Tell whether a call at `/validate` is for Yandex; one that cannot be read is not."""
    try:
        return speaks_yandex(await read_fields(request))
    except UnreadableBody:
        return False


class Yandex(Desk):
    """SmartCaptcha, at `/validate` as GeeTest v4 is on a host of its own."""

    async def validate(self, request: Request) -> Response:
        """Answer as SmartCaptcha does: a token that is missing, broken, old or used gets one and the same text."""
        fields = await self.receive(VALIDATE, request)
        secret = fields.get("secret") if fields is not None else ""
        if fields is None or not secret:
            return self._refuse(_NO_SECRET)
        found = self.registry.redeem(fields.get("token"), types=("yandex",), sitekey=self.keys.sitekey_of(secret))
        if isinstance(found, TokenFault):
            return self._refuse(_BAD_TOKEN)
        self.keys.learn(secret, found.binding)
        return self.answer({"status": "ok", "message": "", "host": found.binding.hostname})

    def _refuse(self, message: str) -> Response:
        return self.answer({"status": "failed", "message": message, "host": ""}, [message])
