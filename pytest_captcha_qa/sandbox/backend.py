"""What the demo site's backend does about captchas: show them, and ask the vendor about the answers."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Protocol

import anyio.to_thread

from pytest_captcha_qa.sandbox.keys import KeyPair
from pytest_captcha_qa.sandbox.standin import GEETEST_REGISTER, GEETEST_VALIDATE
from pytest_captcha_qa.sandbox.web import Fields

VENDOR_TIMEOUT = 5.0

_BODY_LIMIT = 64 * 1024


class VendorUnavailable(Exception):
    """The vendor gave no usable answer, so the site cannot decide."""


AskVendor = Callable[[str, Mapping[str, str]], Awaitable[Mapping[str, Any]]]
"""Sends fields to a path of the vendor and returns the JSON object it answers. Raises VendorUnavailable."""


def vendor_at(base_url: str, timeout: float = VENDOR_TIMEOUT) -> AskVendor:
    """Return a client for the vendor at `base_url`; a call runs in a thread and uses no proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(path: str, fields: Mapping[str, str]) -> Mapping[str, Any]:
        query = urllib.parse.urlencode(fields)
        # GeeTest's register call is the one the vendors define as GET.
        url, body = (f"{path}?{query}", None) if path == GEETEST_REGISTER else (path, query.encode())
        try:
            with opener.open(base_url + url, body, timeout) as response:
                reply = json.loads(response.read(_BODY_LIMIT))
        except (OSError, HTTPException, ValueError) as exc:
            raise VendorUnavailable(path) from exc
        if not isinstance(reply, dict):
            raise VendorUnavailable(path)
        return reply

    async def ask(path: str, fields: Mapping[str, str]) -> Mapping[str, Any]:
        return await anyio.to_thread.run_sync(post, path, fields, abandon_on_cancel=True)

    return ask


@dataclass(slots=True)
class Session:
    """One visitor."""

    id: str
    csrf: str
    challenges: set[str] = field(default_factory=set)
    flash: str = ""
    logged_in: bool = False


class Captcha(Protocol):
    """A captcha as one form of the site uses it."""

    @property
    def template(self) -> str:
        """The name of the widget's template."""

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return what the widget's template needs, a fresh challenge included."""

    def token(self, fields: Fields) -> str:
        """Return the posted token, empty when there is none."""

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Ask the vendor whether the posted answer holds."""


@dataclass(frozen=True, slots=True)
class Siteverify:
    """A captcha whose token is verified with one siteverify call."""

    template: str
    endpoint: str
    keys: KeyPair
    field_name: str
    secret: str = ""
    """What the site sends to the vendor when that is not the sitekey's own secret."""
    action: str = ""
    """What the widget shows as its action."""
    checks_action: bool = False
    min_score: float | None = None

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return the public values."""
        return {"sitekey": self.keys.sitekey, "action": self.action}

    def token(self, fields: Fields) -> str:
        """Return the posted token."""
        return fields.get(self.field_name)

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Verify the token, then compare what the vendor leaves to the site: action and score."""
        token = self.token(fields)
        if not token:
            return False
        reply = await vendor(self.endpoint, {"secret": self.secret or self.keys.secret, "response": token})
        return reply.get("success") is True and self._action_fits(reply) and self._score_suffices(reply)

    def _action_fits(self, reply: Mapping[str, Any]) -> bool:
        return not self.checks_action or reply.get("action") == self.action

    def _score_suffices(self, reply: Mapping[str, Any]) -> bool:
        score = reply.get("score")
        return self.min_score is None or (isinstance(score, (int, float)) and score >= self.min_score)


@dataclass(frozen=True, slots=True)
class NeverVerified(Siteverify):
    """A widget for show: the backend never asks the vendor."""

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Accept anything, also nothing."""
        return True


@dataclass(frozen=True, slots=True)
class GeetestV3:
    """GeeTest v3: the backend registers a challenge for the session, and validates its solution only."""

    template: str
    keys: KeyPair

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Register a challenge and return it with the public id."""
        call = {"gt": self.keys.sitekey, "client_type": "web", "json_format": "1"}
        reply = await vendor(GEETEST_REGISTER, call)
        challenge = reply.get("challenge")
        if not (isinstance(challenge, str) and re.fullmatch(r"[0-9a-f]{32}", challenge)):
            raise VendorUnavailable(GEETEST_REGISTER)
        session.challenges.add(challenge)
        return {"gt": self.keys.sitekey, "challenge": challenge}

    def token(self, fields: Fields) -> str:
        """Return the part of the solution that the vendor signs."""
        return fields.get("geetest_validate")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Validate the solution once, if its challenge was registered for this session."""
        challenge, seccode = fields.get("geetest_challenge"), fields.get("geetest_seccode")
        if challenge not in session.challenges or seccode != f"{self.token(fields)}|jordan":
            return False
        session.challenges.remove(challenge)
        call = {"seccode": seccode, "challenge": challenge, "captchaid": self.keys.sitekey}
        reply = await vendor(GEETEST_VALIDATE, {**call, "json_format": "1"})
        return reply.get("seccode") not in (None, "", "false")
