"""The vendors behind a test's script: each call is logged, and answered for its token as the test has said."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.calls import CallLog, LoggedCall, ReadCall
from pytest_captcha_qa.sandbox.grammars import Grammar, grammar_of
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.outcomes import Outcome, read_reply
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenRegistry
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields, replay
from pytest_captcha_qa.sandbox.yandex import speaks_yandex

_PLAIN = re.compile(rb"false|[0-9a-f]{32}")  # GeeTest v3, which answers in JSON only when asked for it

LEASE = 600.0
"""Seconds a session lasts after it was last heard of, by default and at most."""


@dataclass(slots=True)
class Session:
    """What one test run has made here; it goes with the run, also with one that was killed."""

    lease: float
    ends_at: float
    tokens: dict[str, IssuedToken] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(slots=True)
class Book:
    """The sessions with their tokens and scripts, by the fingerprints of tokens; and the log.

    `longest`: most seconds a session lasts after it was last heard of.
    """

    registry: TokenRegistry
    clock: Callable[[], float] = time.monotonic
    longest: float = LEASE
    log: CallLog = field(init=False)
    sessions: dict[str, Session] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Log by the same clock."""
        self.log = CallLog(self.clock)

    def session(self, name: str, lease: float = LEASE) -> Session:
        """Return a session, a new one for a new name; its lease begins anew."""
        self.sweep()
        session = self.sessions.setdefault(name, Session(min(lease, self.longest), 0.0))
        session.ends_at = self.clock() + session.lease
        return session

    def end(self, name: str) -> None:
        """Forget a session: its scripts, and its tokens, which nobody accepts any more."""
        session = self.sessions.pop(name, None)
        if session is not None:
            self.registry.forget([token.text for token in session.tokens.values()])

    def sweep(self) -> None:
        """End the sessions that were not heard of for their whole lease."""
        for name in [name for name, session in self.sessions.items() if session.ends_at <= self.clock()]:
            self.end(name)

    def find(self, token_id: str) -> tuple[str, Session] | None:
        """Return the session that has issued a token, with its name."""
        self.sweep()
        return next(((name, it) for name, it in self.sessions.items() if token_id in it.tokens), None)

    def adopt(self, session: Session, text: str) -> str | None:
        """Move a token that was made elsewhere to a session, and return its id; None if it was not made here."""
        token = self.registry.find(text)
        if token is None:
            return None
        token_id = fingerprint(text)
        for other in self.sessions.values():
            other.tokens.pop(token_id, None)
            other.outcomes.pop(token_id, None)
        session.tokens[token_id] = token
        return token_id


@dataclass(frozen=True, slots=True)
class Scripted:
    """The vendors' application with log and scripts in front of it; other paths are passed on."""

    app: ASGIApp
    book: Book
    impostors: Impostors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log a call and let its token's script, if there is one, answer it."""
        grammar = grammar_of(scope["path"]) if scope["type"] == "http" else None
        if grammar is None:
            await self.app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        call = await _read(scope, body, receive, grammar)
        entry, outcome = self._noted(call)
        app = outcome.wrap(self.app, call.grammar) if outcome is not None else self.app
        if outcome is not None and outcome.certificate is not None:
            app = self.impostors.before(app, outcome.certificate)

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry.status = message["status"]
            await send(message)

        await _judged(app, call.grammar, entry)(scope, replay(body, receive), note)

    def _noted(self, call: ReadCall) -> tuple[LoggedCall, Outcome | None]:
        found = self.book.find(call.fingerprint)
        outcome = found[1].outcomes.get(call.fingerprint) if found is not None else None
        issued = self.book.registry.find(call.token) is not None
        entry = self.book.log.called(call, found[0] if found is not None else "", issued=issued)
        entry.scripted = outcome is not None
        return entry, outcome


def _judged(app: ASGIApp, grammar: Grammar, entry: LoggedCall) -> ASGIApp:
    """Return the application as it is, with what it answers noted in the log."""

    async def judged(scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()

        async def look(message: Message) -> None:
            body.extend(message.get("body", b""))
            await send(message)

        await app(scope, receive, look)
        if body.startswith(b"{") or _PLAIN.fullmatch(body):
            entry.accepted = grammar.accepted(read_reply(bytes(body)))

    return judged


async def _read(scope: Scope, body: bytes, receive: Receive, grammar: Grammar) -> ReadCall:
    request = Request(scope, replay(body, receive))
    try:
        fields = await read_fields(request)
    except UnreadableBody:
        fields = Fields(())
    if grammar.vendor == "geetest_v4" and speaks_yandex(fields):
        grammar = grammar_of(request.url.path, yandex=True) or grammar
    key = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key") or ""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return ReadCall(grammar, request.url.path, request.method, kind, fields, key)
