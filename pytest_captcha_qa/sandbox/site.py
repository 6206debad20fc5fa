"""A staging site with protected forms."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.backend import AskVendor, ServesChallenge, Session, VendorUnavailable
from pytest_captcha_qa.sandbox.effects import OtherSitekey, Refuse
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.forms import FORMS, ProtectedForm
from pytest_captcha_qa.sandbox.pages import NOTHING, Html, render
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

_COOKIE = "sandbox_session"
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_UNAVAILABLE = "The captcha service does not answer. Please try again later."


class Rejected(Exception):
    """A submission is turned down."""

    def __init__(self, status: int, code: str, text: str) -> None:
        """Keep the HTTP status, a stable code and what the visitor reads."""
        super().__init__(code)
        self.status = status
        self.code = code
        self.text = text


@dataclass(slots=True)
class Sessions:
    """The visitors, known by a cookie."""

    _by_id: dict[str, Session] = field(default_factory=dict)

    def of(self, request: Request) -> Session:
        """Return the visitor's session, a new one for a new visitor."""
        known = self._by_id.get(request.cookies.get(_COOKIE, ""))
        if known is not None:
            return known
        session = Session(secrets.token_urlsafe(24), csrf=secrets.token_urlsafe(24))
        self._by_id[session.id] = session
        return session

    def log_in(self, session: Session, response: Response) -> None:
        """Open the account to the visitor, under a new cookie as is good practice."""
        self._by_id.pop(session.id, None)
        session.id, session.logged_in = secrets.token_urlsafe(24), True
        self._by_id[session.id] = session
        set_cookie(response, session)


def page_of(session: Session, title: str, body: Html, *, head: Html = NOTHING, status: int = 200) -> Response:
    """Return a whole page, and the visitor's cookie with it."""
    response = HTMLResponse(render("layout", title=title, head=head, body=body), status)
    set_cookie(response, session)
    return response


def set_cookie(response: Response, session: Session) -> None:
    """Give the visitor the cookie of their session."""
    response.set_cookie(_COOKIE, session.id, httponly=True, samesite="lax")


@dataclass(frozen=True, slots=True)
class FormPage:
    """Shows one form and takes its submissions."""

    form: ProtectedForm
    sessions: Sessions
    audit: Audit
    vendor: AskVendor
    faults: FaultPlan

    async def show(self, request: Request) -> Response:
        """Answer with the empty form."""
        self.audit.site.gets[self.form.slug] += 1
        return await self._render(self.sessions.of(request))

    async def challenge(self, request: Request) -> Response:
        """Answer with what the widget fetches, for the session of its page."""
        captcha, session = self.form.captcha, self.sessions.of(request)
        assert isinstance(captcha, ServesChallenge), "the route exists for such captchas only"
        content, kind = captcha.challenge(session)
        response = Response(content, media_type=kind, headers={"cache-control": "no-store"})
        set_cookie(response, session)
        return response

    async def take(self, request: Request) -> Response:
        """Judge a submission: 303 to the welcome page, or the form again with what is wrong."""
        try:
            fields = await read_fields(request)
        except UnreadableBody:
            return PlainTextResponse("The form cannot be read.\n", 400)
        session = self.sessions.of(request)
        self.audit.site.posted(self.form.slug, self.form.captcha.token(fields))
        try:
            await self._judge(fields, session)
        except Rejected as rejected:
            self.audit.site.rejected(self.form.slug, rejected.code)
            return await self._render(session, fields, rejected)
        self.audit.site.accepted[self.form.slug] += 1
        session.flash = f"Thank you! We have received: {self.form.title}."
        response = RedirectResponse("/welcome", 303)
        if self.form.logs_in:
            self.sessions.log_in(session, response)
        return response

    async def _judge(self, fields: Fields, session: Session) -> None:
        """Check the session's CSRF token, then the captcha, then the other fields. Raises Rejected."""
        if not secrets.compare_digest(fields.get("csrf_token").encode(), session.csrf.encode()):
            raise Rejected(403, "csrf", "This form has expired. Please send it again.")
        try:
            accepted = await self.form.captcha.accepts(fields, session, self.vendor)
        except VendorUnavailable as exc:
            raise Rejected(503, "vendor", _UNAVAILABLE) from exc
        if not accepted or self.faults.answer(Refuse, self._call("POST")) is not None:
            raise Rejected(422, "captcha", "The captcha check failed. Please try again.")
        if not (EMAIL.fullmatch(fields.get("email")) and fields.get("name").strip()):
            raise Rejected(422, "fields", "Please give your name and a valid e-mail address.")

    def _shown(self, offer: Mapping[str, str]) -> Mapping[str, str]:
        other = self.faults.answer(OtherSitekey, self._call("GET"))
        return {**offer, "sitekey": other.sitekey} if other is not None and "sitekey" in offer else offer

    def _call(self, method: str) -> Call:
        return Call(f"/{self.form.slug}", method, form=self.form.slug)

    async def _render(
        self, session: Session, fields: Fields | None = None, rejected: Rejected | None = None
    ) -> Response:
        """Return the form with a fresh widget; what was posted stays, except the token."""
        captcha = self.form.captcha
        try:
            offer = self._shown(await captcha.offer(session, self.vendor))
        except VendorUnavailable:
            body = render("message", title=self.form.title, text=_UNAVAILABLE)
            return page_of(session, self.form.title, body, status=503)
        body = render(
            "form",
            slug=self.form.slug,
            title=self.form.title,
            csrf=session.csrf,
            email=fields.get("email") if fields else "",
            name=fields.get("name") if fields else "",
            error=render("error", code=rejected.code, text=rejected.text) if rejected else NOTHING,
            widget=render(captcha.template, **offer),
        )
        head = render(f"{captcha.template}_head", **offer)
        return page_of(session, self.form.title, body, head=head, status=rejected.status if rejected else 200)


@dataclass(frozen=True, slots=True)
class Site:
    """The site's other pages."""

    sessions: Sessions
    audit: Audit
    release: str
    proofs: Mapping[str, str]

    async def index(self, request: Request) -> Response:
        """Link all forms."""
        items = Html("".join(render("index_item", slug=form.slug, title=form.title) for form in FORMS))
        return page_of(self.sessions.of(request), "Forms", render("index", items=items))

    async def welcome(self, request: Request) -> Response:
        """Show once what was received."""
        session = self.sessions.of(request)
        text, session.flash = session.flash or "Nice to see you.", ""
        return self._message(session, "Welcome", text)

    async def account(self, request: Request) -> Response:
        """Show the account to who has logged in; send others to the login form."""
        session = self.sessions.of(request)
        if not session.logged_in:
            return RedirectResponse("/turnstile", 303)
        self.audit.site.gets["account"] += 1
        return self._message(session, "Account", "You are logged in.")

    async def search(self, request: Request) -> Response:
        """Find nothing."""
        return self._message(self.sessions.of(request), "Search", "Nothing was found.")

    async def newsletter(self, request: Request) -> Response:
        """Subscribe nobody; counted, since no test has a reason to post this form."""
        self.audit.site.posts["newsletter"] += 1
        return self._message(self.sessions.of(request), "Newsletter", "This site sends no newsletter.")

    async def version(self, request: Request) -> Response:
        """Say which release is deployed."""
        return JSONResponse({"version": self.release})

    async def health(self, request: Request) -> Response:
        """Say that the site is up."""
        return PlainTextResponse("ok\n")

    async def proof(self, request: Request) -> Response:
        """Serve an ownership proof that was handed in by the control endpoint."""
        text = self.proofs.get(request.path_params["name"])
        return PlainTextResponse("Not found\n", 404) if text is None else PlainTextResponse(text)

    async def redirect(self, request: Request) -> Response:
        """Redirect wherever the query says, for tests of what follows redirects."""
        return RedirectResponse(request.query_params.get("to", "/"), 302)

    def _message(self, session: Session, title: str, text: str) -> Response:
        return page_of(session, title, render("message", title=title, text=text))


def build_app(
    audit: Audit,
    vendor: AskVendor,
    *,
    release: str,
    proofs: Mapping[str, str],
    faults: FaultPlan,
    more: Callable[[Sessions], list[Route]] = lambda sessions: [],
) -> Starlette:
    """Return the site as an ASGI application, with `more` routes for the same visitors."""
    sessions = Sessions()
    site = Site(sessions, audit, release, proofs)
    routes = [
        Route("/", site.index, methods=["GET"]),
        Route("/welcome", site.welcome, methods=["GET"]),
        Route("/account", site.account, methods=["GET"]),
        Route("/search", site.search, methods=["GET"]),
        Route("/newsletter", site.newsletter, methods=["POST"]),
        Route("/version", site.version, methods=["GET"]),
        Route("/healthz", site.health, methods=["GET"]),
        Route("/.well-known/captcha-qa/{name}.txt", site.proof, methods=["GET"]),
        Route("/redirect", site.redirect, methods=["GET"]),
    ]
    for form in FORMS:
        page = FormPage(form, sessions, audit, vendor, faults)
        routes.append(Route(f"/{form.slug}", page.show, methods=["GET"]))
        routes.append(Route(f"/{form.slug}", page.take, methods=["POST"]))
        if isinstance(form.captcha, ServesChallenge):
            routes.append(Route(f"/{form.slug}/challenge", page.challenge, methods=["GET"]))
    return Starlette(routes=[*routes, *more(sessions)])
