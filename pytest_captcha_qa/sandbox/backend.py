"""What the demo site's backend does about captchas: show them, and ask the vendor about the answers."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPException
from typing import Any, Protocol, runtime_checkable

import anyio.to_thread

from pytest_captcha_qa.sandbox.keys import KeyPair
from pytest_captcha_qa.sandbox.web import Fields

VENDOR_TIMEOUT = 5.0

_BODY_LIMIT = 64 * 1024


class Trouble(StrEnum):
    """Why a vendor's answer is none."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    STATUS = "status"
    NO_JSON = "no JSON object"


class VendorUnavailable(Exception):
    """The vendor gave no usable answer, so the site cannot decide; `status`: of HTTP, where there was one."""

    def __init__(self, said: str, trouble: Trouble = Trouble.CONNECTION, status: int | None = None) -> None:
        """Keep what went wrong."""
        super().__init__(said)
        self.trouble = trouble
        self.status = status


@dataclass(frozen=True, slots=True)
class Question:
    """What the vendor is asked: fields, which a GET sends in its query and a POST as a form or as JSON."""

    path: str
    fields: Mapping[str, Any]
    method: str = "POST"
    as_json: bool = False
    raw: str = ""
    """A body that is written by hand; it takes the place of the fields."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The path, with the query of a GET."""
        return self.path if self.method == "POST" else f"{self.path}?{urllib.parse.urlencode(self.fields)}"

    @property
    def body(self) -> bytes | None:
        """The body of a POST."""
        if self.method != "POST":
            return None
        if self.raw:
            return self.raw.encode()
        return (json.dumps(self.fields) if self.as_json else urllib.parse.urlencode(self.fields)).encode()

    @property
    def all_headers(self) -> Mapping[str, str]:
        """The headers, the type of the body among them."""
        kind = "application/json" if self.as_json else "application/x-www-form-urlencoded"
        return {**self.headers, "content-type": kind} if self.method == "POST" else self.headers


AskVendor = Callable[[Question], Awaitable[Mapping[str, Any]]]
"""Asks the vendor and returns the JSON object it answers. Raises VendorUnavailable."""


def vendor_at(base_url: str, timeout: float = VENDOR_TIMEOUT) -> AskVendor:
    """Return a client for the vendor at `base_url`; a call runs in a thread and uses no proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def send(question: Question) -> Mapping[str, Any]:
        url, headers = base_url + question.target, dict(question.all_headers)
        try:
            with opener.open(urllib.request.Request(url, question.body, headers), timeout=timeout) as response:
                reply = json.loads(response.read(_BODY_LIMIT))
        except (OSError, HTTPException, ValueError) as exc:
            raise _unavailable(exc) from exc
        if not isinstance(reply, dict):
            raise VendorUnavailable("the vendor's answer is no object", Trouble.NO_JSON)
        return reply

    async def ask(question: Question) -> Mapping[str, Any]:
        return await anyio.to_thread.run_sync(send, question, abandon_on_cancel=True)

    return ask


def _unavailable(failure: Exception) -> VendorUnavailable:
    """Return what a failed call is to a site: a redirect that leads nowhere is an answer that is no JSON."""
    if isinstance(failure, urllib.error.HTTPError):
        trouble = Trouble.NO_JSON if 300 <= failure.code < 400 else Trouble.STATUS
        return VendorUnavailable(f"the vendor answers {failure.code}", trouble, failure.code)
    reason = failure.reason if isinstance(failure, urllib.error.URLError) else failure
    if isinstance(reason, ssl.SSLError):  # which is a ValueError, too
        return VendorUnavailable("the vendor's certificate is not good", Trouble.CONNECTION)
    if isinstance(reason, TimeoutError):
        return VendorUnavailable("the vendor does not answer in time", Trouble.TIMEOUT)
    trouble = Trouble.NO_JSON if isinstance(reason, ValueError) else Trouble.CONNECTION
    return VendorUnavailable("the vendor gives no answer", trouble)


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
        """Find out whether the posted answer holds."""


@runtime_checkable
class ServesChallenge(Protocol):
    """A captcha whose widget fetches its challenge from the site."""

    def challenge(self, session: Session) -> tuple[bytes, str]:
        """Return a fresh challenge for the session, with its media type."""


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
    sends_sitekey: bool = False

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
        asked = {"secret": self.secret or self.keys.secret, "response": token}
        asked |= {"sitekey": self.keys.sitekey} if self.sends_sitekey else {}
        reply = await vendor(Question(self.endpoint, asked))
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
