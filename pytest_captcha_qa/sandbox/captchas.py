"""The captchas of the demo site that are not verified with a plain siteverify call."""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.sandbox import altcha, pictures
from pytest_captcha_qa.sandbox.apis import ASSESSMENTS, FRIENDLY
from pytest_captcha_qa.sandbox.backend import AskVendor, Question, Session, VendorUnavailable
from pytest_captcha_qa.sandbox.geetest import GEETEST_REGISTER, GEETEST_VALIDATE, VALIDATE
from pytest_captcha_qa.sandbox.keys import KeyPair
from pytest_captcha_qa.sandbox.web import Fields

_PROJECT = "sandbox-staging"
_ALTCHA_LASTS = 120.0
_V4_PARTS = ("lot_number", "captcha_output", "pass_token", "gen_time")


@dataclass(frozen=True, slots=True)
class GeetestV3:
    """GeeTest v3: the backend registers a challenge for the session, and validates its solution only."""

    template: str
    keys: KeyPair

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Register a challenge and return it with the public id."""
        call = {"gt": self.keys.sitekey, "client_type": "web", "json_format": "1"}
        reply = await vendor(Question(GEETEST_REGISTER, call, method="GET"))
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
        reply = await vendor(Question(GEETEST_VALIDATE, {**call, "json_format": "1"}))
        return reply.get("seccode") not in (None, "", "false")


@dataclass(frozen=True, slots=True)
class GeetestV4:
    """GeeTest v4: the backend signs the lot number with its key and has the vendor validate the rest."""

    template: str
    keys: KeyPair

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return the public id."""
        return {"captcha_id": self.keys.sitekey}

    def token(self, fields: Fields) -> str:
        """Return the part of the solution that names it."""
        return fields.get("lot_number")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Validate a complete solution."""
        told = {name: fields.get(name) for name in _V4_PARTS}
        if not all(told.values()) or fields.get("captcha_id") != self.keys.sitekey:
            return False
        signed = hmac.new(self.keys.secret.encode(), told["lot_number"].encode(), "sha256").hexdigest()
        call = {**told, "captcha_id": self.keys.sitekey, "sign_token": signed}
        reply = await vendor(Question(VALIDATE, call))
        return reply.get("status") == "success" and reply.get("result") == "success"


@dataclass(frozen=True, slots=True)
class Enterprise:
    """reCAPTCHA Enterprise with a score key: one assessment, whose action and score the site compares."""

    template: str
    keys: KeyPair
    action: str
    min_score: float

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return the public values."""
        return {"sitekey": self.keys.sitekey, "action": self.action}

    def token(self, fields: Fields) -> str:
        """Return the posted token."""
        return fields.get("g-recaptcha-response")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Have the token assessed."""
        if not self.token(fields):
            return False
        event = {"token": self.token(fields), "siteKey": self.keys.sitekey, "expectedAction": self.action}
        path = f"{ASSESSMENTS.format(project=_PROJECT)}?key={self.keys.secret}"
        reply = await vendor(Question(path, {"event": event}, as_json=True))
        properties, score = reply.get("tokenProperties", {}), reply.get("riskAnalysis", {}).get("score")
        genuine = properties.get("valid") is True and properties.get("action") == self.action
        return genuine and isinstance(score, (int, float)) and score >= self.min_score


@dataclass(frozen=True, slots=True)
class Friendly:
    """Friendly Captcha v2: the API key goes in a header."""

    template: str
    keys: KeyPair

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return the public value."""
        return {"sitekey": self.keys.sitekey}

    def token(self, fields: Fields) -> str:
        """Return the posted token."""
        return fields.get("frc-captcha-response")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Verify a token; what the widget fills in before it is solved starts with a dot and is none."""
        token = self.token(fields)
        if not token or token.startswith("."):
            return False
        call = {"response": token, "sitekey": self.keys.sitekey}
        headers = {"X-API-Key": self.keys.secret}
        reply = await vendor(Question(FRIENDLY, call, as_json=True, headers=headers))
        return reply.get("success") is True


@dataclass(frozen=True, slots=True)
class Altcha:
    """ALTCHA: the site signs challenges, checks their proof of work itself, and takes each once."""

    template: str
    key: str
    path: str
    clock: Callable[[], float] = time.time

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return where the widget fetches its challenge."""
        return {"challenge_url": self.path}

    def challenge(self, session: Session) -> tuple[bytes, str]:
        """Return a challenge that holds for two minutes."""
        challenge = altcha.new_challenge(self.key, expires=self.clock() + _ALTCHA_LASTS)
        session.challenges.add(challenge["challenge"])
        return json.dumps(challenge).encode(), "application/json"

    def token(self, fields: Fields) -> str:
        """Return the posted payload."""
        return fields.get("altcha")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Check signature, time and work of a challenge of this session."""
        challenge = altcha.verified(self.token(fields), self.key, now=self.clock())
        if challenge is None or challenge not in session.challenges:
            return False
        session.challenges.remove(challenge)
        return True


@dataclass(frozen=True, slots=True)
class Picture:
    """An image beside a field: what it shows is compared, once."""

    template: str
    path: str

    async def offer(self, session: Session, vendor: AskVendor) -> Mapping[str, str]:
        """Return where the image is."""
        return {"image_url": self.path}

    def challenge(self, session: Session) -> tuple[bytes, str]:
        """Return an image that nobody else has seen."""
        text = pictures.new_text()
        session.challenges.add(text)
        return pictures.drawn(text), "image/png"

    def token(self, fields: Fields) -> str:
        """Return what the visitor read."""
        return fields.get("captcha_answer")

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Compare what was read, in any case, with the images of this session."""
        read = self.token(fields).strip().upper()
        if not read.startswith(pictures.MARK) or read not in session.challenges:
            return False
        session.challenges.remove(read)
        return True
