"""The client of a stand-in (docs/standin.md): it makes marked tokens, and answers about each as a test has said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    ConfigError,
    KeyRejected,
    ProviderError,
    ProviderNotRunning,
    ProviderUnavailable,
    RequestRejected,
    ScopeDenied,
    TaskUnknown,
    TransportError,
)
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import SANDBOX
from pytest_captcha_qa.scope import ScopeGrant, TokenSource, ensure
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Reply, json_body

SECONDS = 10.0
"""How long one call of the stand-in may take."""

_ID = re.compile(r"[0-9a-f]{16}")
_LOG_LIMIT = 8 * 1024 * 1024
_NO_OUTCOME: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token of the stand-in: its id, which may be shown, and what is sent."""

    id: str
    solution: Solution
    used: bool


class StandIn:
    """The client of one stand-in, as one session of it. Its repr and its errors never show the admin key."""

    def __init__(self, base: Url, *, key: str = "", client: HttpClient | None = None, session: str = "") -> None:
        """Keep where it is; `session` names what is made here, and is ended by `end`.

        Raises:
            ScopeDenied: the address is plain http and not on this machine, so that the key would be readable.
        """
        if not base.origin.is_loopback and base.origin.is_plain:
            raise ScopeDenied(
                f"the stand-in at {base.origin} is not on this machine and speaks plain http: use its https address",
                reason="standin_plain",
            )
        self.session = session or f"run-{uuid4().hex[:12]}"
        self._base = base
        self._key = key
        self._client = client or HttpClient()

    def __repr__(self) -> str:
        return f"<StandIn at {self._base.origin}, session {self.session}>"

    def issue(
        self,
        challenge: Challenge,
        grant: ScopeGrant,
        *,
        age: float = 0.0,
        outcome: Mapping[str, Any] = _NO_OUTCOME,
        deadline: Deadline | None = None,
    ) -> IssuedToken:
        """Return a new token for an opened page; `age`: seconds it is older than new; `outcome`: see docs/sandbox.md.

        Raises:
            ScopeDenied: the grant does not allow it; nothing was sent.
            ConfigError: the type has no vendor.
            ProviderError, KeyRejected: the stand-in made none.
        """
        check_type(challenge)
        _permit(challenge, grant)
        wish = {
            "type": str(challenge.type),
            "sitekey": challenge.sitekey,
            "page": challenge.page.without_query,
            "session": self.session,
            "action": challenge.action or "",
            "cdata": challenge.cdata or "",
            "challenge": challenge.data.get("challenge", ""),
            "age": age,
            **({"outcome": dict(outcome)} if outcome else {}),
        }
        return _token(self._call("POST", "/tokens", wish, deadline=deadline), challenge)

    def find(self, token_id: str, challenge: Challenge, deadline: Deadline | None = None) -> IssuedToken:
        """Return a token that was issued for the challenge.

        Raises:
            TaskUnknown: the stand-in has none with this id; its session has ended.
            ProviderError, KeyRejected: it gave no answer.
        """
        return _token(self._call("GET", f"/tokens/{_checked(token_id)}", deadline=deadline), challenge)

    def script(self, token: str, outcome: Mapping[str, Any] = _NO_OUTCOME, *, age: float = 0.0) -> None:
        """Say what will be answered about a token, given by its text, and how much older it is.

        Raises:
            TaskUnknown: the stand-in did not make it.
            ProviderError, KeyRejected: it did not take the outcome.
        """
        change: dict[str, Any] = {"session": self.session, "token": token, "age": age}
        self._call("PATCH", "/tokens", {**change, **({"outcome": dict(outcome)} if outcome else {})})

    def script_by_id(self, token_id: str, outcome: Mapping[str, Any] = _NO_OUTCOME, *, age: float = 0.0) -> None:
        """Say the same about a token given by its id.

        Raises:
            TaskUnknown: the stand-in has none with this id.
            ProviderError, KeyRejected: it did not take the outcome.
        """
        change: dict[str, Any] = {"age": age, **({"outcome": dict(outcome)} if outcome else {})}
        self._call("PATCH", f"/tokens/{_checked(token_id)}", change)

    def calls(self, after: int = 0, *, own: bool = False) -> list[Mapping[str, Any]]:
        """Return the log after an entry's number, its marks included: see docs/sandbox.md.

        `own`: only the calls about tokens of this session.

        Raises:
            ProviderError, KeyRejected: it gave no answer.
        """
        of_session = f"&session={self.session}" if own else ""
        found = self._call("GET", f"/calls?after={after}{of_session}").get("calls")
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def mark(self, text: str) -> int:
        """Put a mark into the log, and return the number of its entry.

        Raises:
            ProviderError, KeyRejected: it gave no answer.
        """
        return int(self._call("POST", "/marks", {"mark": text}).get("order", 0))

    def use(self) -> Mapping[str, Any]:
        """Return who has asked it so far: `calls`, `last_call_ago` in seconds, `secrets` as fingerprints.

        Raises:
            ProviderError, KeyRejected: it gave no answer.
        """
        return self._call("GET", "")

    def end(self) -> Mapping[str, Any]:
        """End the session, its tokens and scripts with it, and return the same as `use`.

        Raises:
            ProviderError, KeyRejected: it gave no answer.
        """
        return self._call("DELETE", f"/sessions/{self.session}")

    def _call(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, *, deadline: Deadline | None = None
    ) -> dict[str, Any]:
        payload = NO_PAYLOAD if body is None else json_body(body)
        if self._key:
            payload = payload.having({"Authorization": f"Bearer {self._key}"})
        within = deadline or Deadline(SECONDS, what="the stand-in")
        url = self._base.join(f"/standin{path}")
        try:
            reply = self._client.request(verb, url, deadline=within, grant=None, limit=_LOG_LIMIT, payload=payload)
        except TransportError as error:
            failure = error
        else:
            return self._good(reply)
        raise self._not_reached(failure)

    def _not_reached(self, failure: TransportError) -> ProviderUnavailable:
        if failure.kind == "refused":
            return ProviderNotRunning(
                f"no stand-in is running at {self._base.origin}: start it with `captcha-qa standin`", sent=False
            )
        return ProviderUnavailable(f"the stand-in at {self._base.origin}: {failure.message}", sent=failure.sent)

    def _good(self, reply: Reply) -> dict[str, Any]:
        at = f"the stand-in at {self._base.origin}"
        if reply.status == 401:
            raise KeyRejected(f"{at} wants its admin key: name the variable that holds it in the account's api_key_env")
        told = _object(reply.text)
        if reply.status == 404 and "error" in told:
            raise TaskUnknown(f"{at} has no such token: its session has ended, or another stand-in made it")
        if reply.status == 400 and "error" in told:
            raise RequestRejected(f"{at} cannot use what it was sent: {_shown(told['error'])}")
        if reply.status not in (200, 201) or not told:
            raise ProviderUnavailable(f"{at} answered HTTP {reply.status}, which is no answer of a stand-in")
        return told


def check_type(challenge: Challenge) -> None:
    """Return quietly if the type has a vendor to stand in for.

    Raises:
        ConfigError: it has none; the message says what to use.
    """
    if not facts(challenge.type).has_vendor:
        raise ConfigError(without_vendor(challenge.type))


def without_vendor(kind: CaptchaType) -> str:
    """Return in a sentence that a type has no vendor, and what to do."""
    return (
        f"{kind} is checked by your own site, so there is no vendor to stand in for: use an account of a solving "
        f"service, or of the sandbox, for this form"
    )


def _permit(challenge: Challenge, grant: ScopeGrant) -> None:
    """Return quietly if marked tokens may be sent to the page (R0.3): a sandbox's stay on this machine.

    Raises:
        ScopeDenied: they may not.
    """
    ensure(grant, challenge.page)
    at_sandbox = grant.source is TokenSource.SANDBOX and challenge.page.origin.is_loopback
    if grant.kind is EnvKind.PRODUCTION or not (at_sandbox or grant.source is TokenSource.STANDIN):
        raise ScopeDenied(
            f"the grant for {grant.origin} ({grant.kind}) is for {grant.source} tokens, not for those of a stand-in",
            reason="grant_other_source",
        )


def _checked(token_id: str) -> str:
    if not _ID.fullmatch(token_id):
        raise TaskUnknown("the task was not made by a stand-in; its id is none of one")
    return token_id


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _shown(reason: object) -> str:
    return "".join(char for char in str(reason)[:200] if char.isprintable())


def _token(told: Mapping[str, Any], challenge: Challenge) -> IssuedToken:
    text, parts, token_id = told.get("token"), told.get("parts"), told.get("id")
    if not (isinstance(text, str) and isinstance(token_id, str) and token_id):
        raise ProviderUnavailable("the stand-in answered without a token")
    values = {str(name): str(value) for name, value in parts.items()} if isinstance(parts, dict) else {}
    solution = Solution(values or {TOKEN: text})
    method = SANDBOX.methods[challenge.type]
    mark = method.mark if method is not None else None
    if mark is None or not solution.parts.get(mark.part, "").startswith(mark.head):
        raise ProviderError("the stand-in sent a token without its mark; it is not used")
    return IssuedToken(token_id, solution, told.get("used") is True)
