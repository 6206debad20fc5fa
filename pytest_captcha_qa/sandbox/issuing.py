"""The stand-in's own endpoints: they issue marked tokens, script what becomes of them, and show the log.

Nothing here knows a solving service, and no answer holds a token that was not made here.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.described import DescriptionProblem, build
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.outcomes import AGAIN, NOTICE, Outcome, again, notice
from pytest_captcha_qa.sandbox.scripted import LEASE, Book, Scripted, Session
from pytest_captcha_qa.sandbox.tokens import IssuedToken
from pytest_captcha_qa.sandbox.types import ISSUED
from pytest_captcha_qa.sandbox.web import UnreadableBody, read_json

ROOT = "/standin"
_WITH_VENDOR = frozenset(name for name, facts in ISSUED.items() if facts.has_vendor)

_LONGEST_TEXT = 2048


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of a new token; `age`: seconds it is older than new; `lease`: of a session that is new."""

    type: str
    sitekey: str
    session: str
    page: str = ""
    action: str = ""
    cdata: str = ""
    challenge: str = ""
    age: float = 0.0
    lease: float = LEASE

    def __post_init__(self) -> None:
        """Refuse what no vendor has issued."""
        if self.type not in _WITH_VENDOR:
            raise DescriptionProblem(f"'type' is one of {', '.join(sorted(_WITH_VENDOR))}")
        texts = (self.sitekey, self.session, self.page, self.action, self.cdata, self.challenge)
        if not (self.sitekey and self.session) or any(len(text) > _LONGEST_TEXT for text in texts):
            raise DescriptionProblem(
                f"'sitekey' and 'session' are needed, and no text is over {_LONGEST_TEXT} characters"
            )
        if not 0 < self.lease <= LEASE:
            raise DescriptionProblem(f"'lease' is at most {LEASE:.0f} seconds")
        if urlsplit(self.page).query:
            raise DescriptionProblem("'page' is told without its query")

    @property
    def binding(self) -> Binding:
        """What the token is bound to."""
        return Binding(self.type, self.sitekey, self.page, self.action, self.cdata, self.challenge)


@dataclass(frozen=True, slots=True)
class Change:
    """What is changed of a token that is there; `token`: its text, instead of the id in the path."""

    session: str = ""
    token: str = field(default="", repr=False)
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class Issuing:
    """The endpoints, over one book."""

    book: Book

    async def state(self, request: Request) -> Response:
        """Say who asked, and which sessions there are."""
        self.book.sweep()
        sessions = {name: len(session.tokens) for name, session in self.book.sessions.items()}
        return JSONResponse({"stand_in": "captcha-qa", **self.book.log.use(), "sessions": sessions})

    async def issue(self, request: Request) -> Response:
        """Make a token for a session."""
        data = await _object(request)
        outcome = _outcome(data)
        wish = build(Wish, data)
        session = self.book.session(wish.session, wish.lease)
        token = self.book.registry.issue(wish.binding)
        self.book.registry.age(token, wish.age)
        return self._told(session, token, outcome, 201)

    async def show(self, request: Request) -> Response:
        """Show a token that a session has."""
        found = self.book.find(request.path_params["id"])
        if found is None:
            return _missing()
        session = self.book.session(found[0])
        return self._told(session, session.tokens[request.path_params["id"]], None)

    async def change(self, request: Request) -> Response:
        """Script or age a token: one of a session by its id, one that was made elsewhere by its text."""
        data = await _object(request)
        outcome = _outcome(data)
        change = build(Change, data)
        found = self._named(request.path_params.get("id", ""), change)
        if found is None:
            return _missing()
        session, token_id = found
        token = session.tokens[token_id]
        self.book.registry.age(token, change.age)
        return self._told(session, token, outcome)

    async def calls(self, request: Request) -> Response:
        """Show the log after an entry, that of one session if it is named; marks belong to all."""
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdecimal() and len(after) < 10):
            raise DescriptionProblem("'after' is the number of an entry")
        wanted = request.query_params.get("session")
        if wanted in self.book.sessions:
            self.book.session(str(wanted))
        entries = self.book.log.after(int(after))
        shown = [it for it in entries if wanted is None or it["mark"] or it["session"] == wanted]
        return JSONResponse({"calls": shown, "last": self.book.log.last})

    async def mark(self, request: Request) -> Response:
        """Put a mark into the log."""
        text = (await _object(request)).get("mark")
        if not (isinstance(text, str) and 0 < len(text) <= 200):
            raise DescriptionProblem("'mark' is a text of at most 200 characters")
        return JSONResponse({"order": self.book.log.mark(text).order}, 201)

    async def end(self, request: Request) -> Response:
        """End a session: its scripts and tokens are gone; say who asked until then."""
        self.book.end(request.path_params["name"])
        return JSONResponse(self.book.log.use())

    def _named(self, token_id: str, change: Change) -> tuple[Session, str] | None:
        if token_id:
            found = self.book.find(token_id)
            return (self.book.session(found[0]), token_id) if found is not None else None
        if not (change.session and change.token):
            raise DescriptionProblem("'session' and 'token' are needed here")
        session = self.book.session(change.session)
        adopted = self.book.adopt(session, change.token)
        return (session, adopted) if adopted is not None else None

    def _told(self, session: Session, token: IssuedToken, outcome: Outcome | None, status: int = 200) -> Response:
        token_id = fingerprint(token.text)
        session.tokens[token_id] = token
        if outcome is not None:
            session.outcomes[token_id] = outcome
        parts = ISSUED[token.binding.type].parts
        told = {
            "id": token_id,
            "token": token.text,
            "parts": dict(parts(token.text, token.binding)) if parts else {},
            "expires_in": round(token.expires_at - self.book.registry.clock(), 3),
            "used": token.used,
        }
        return JSONResponse(told, status, headers={"cache-control": "no-store"})


async def _object(request: Request) -> dict[str, Any]:
    try:
        data = await read_json(request)
    except UnreadableBody as problem:
        raise DescriptionProblem(str(problem)) from None
    if not isinstance(data, dict):
        raise DescriptionProblem("the body is a JSON object")
    return data


def _outcome(data: dict[str, Any]) -> Outcome | None:
    """Take the outcome out of a description."""
    return Outcome.from_data(data.pop("outcome")) if "outcome" in data else None


def _missing() -> Response:
    return JSONResponse(
        {"error": "no session has such a token; it was never issued here, or its session has ended"}, 404
    )


async def _problem(request: Request, problem: Exception) -> Response:
    return JSONResponse({"error": str(problem)}, 400)


@dataclass(frozen=True, slots=True)
class AdminOnly:
    """Guards the stand-in's own endpoints: no page in a browser calls them, and where there is a key, who has it."""

    app: ASGIApp
    key: str = field(default="", repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401 or 403."""
        headers = Headers(scope=scope)
        sent = headers.get("authorization", "").removeprefix("Bearer ").encode()
        if "origin" in headers:
            await PlainTextResponse("No page may call this server.\n", 403)(scope, receive, send)
        elif self.key and not hmac.compare_digest(sent, self.key.encode()):
            await PlainTextResponse("The admin key is missing or wrong.\n", 401)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def with_admin(vendors: ASGIApp, book: Book, impostors: Impostors, key: str = "") -> ASGIApp:
    """Return the vendors' application with log, scripts and the stand-in's own endpoints."""
    own = Issuing(book)
    routes = [
        Route(ROOT, own.state, methods=["GET"]),
        Route(f"{ROOT}/tokens", own.issue, methods=["POST"]),
        Route(f"{ROOT}/tokens", own.change, methods=["PATCH"]),
        Route(f"{ROOT}/tokens/{{id}}", own.show, methods=["GET"]),
        Route(f"{ROOT}/tokens/{{id}}", own.change, methods=["PATCH"]),
        Route(f"{ROOT}/calls", own.calls, methods=["GET"]),
        Route(f"{ROOT}/marks", own.mark, methods=["POST"]),
        Route(f"{ROOT}/sessions/{{name}}", own.end, methods=["DELETE"]),
    ]
    admin = AdminOnly(Starlette(routes=routes, exception_handlers={DescriptionProblem: _problem}), key)
    pages: Mapping[str, Any] = {AGAIN: again, NOTICE: notice}
    plain = Starlette(routes=[Route(path, page, methods=["GET", "POST"]) for path, page in pages.items()])
    scripted = Scripted(vendors, book, impostors)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        is_own = path == ROOT or path.startswith(f"{ROOT}/")
        app: ASGIApp = admin if is_own else plain if path in pages else scripted
        await app(scope, receive, send)

    return route
