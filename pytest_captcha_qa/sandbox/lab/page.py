"""Serves the forms of the lab: their pages, their submits, and what shows that a submit had its effect."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.backend import AskVendor, Session, VendorUnavailable
from pytest_captcha_qa.sandbox.lab.posts import ACTION, Crash, Memory, Post
from pytest_captcha_qa.sandbox.lab.table import LAB, LabForm
from pytest_captcha_qa.sandbox.pages import NOTHING, Html, render
from pytest_captcha_qa.sandbox.site import EMAIL, Rejected, Sessions, page_of, set_cookie
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, read_fields

MOST_REFUSALS = 20
"""How often one token may be refused before its sender is asked to slow down."""

_READABLE = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "application/json"})
_REFUSED = "The captcha check failed. Please try again."
_CODES = " (invalid-input-response, timeout-or-duplicate)"


@dataclass(frozen=True, slots=True)
class LabPage:
    """Shows one form and takes its submits."""

    form: LabForm
    sessions: Sessions
    audit: Audit
    vendor: AskVendor
    memory: Memory

    async def show(self, request: Request) -> Response:
        """Answer with the empty form."""
        self.audit.site.gets[self.form.slug] += 1
        return await self._render(self.sessions.of(request))

    async def take(self, request: Request) -> Response:
        """Judge a submit, and accept or refuse it in the form's own way."""
        return await self._taken(request, checked=True)

    async def take_unchecked(self, request: Request) -> Response:
        """Accept a submit at a route that somebody forgot."""
        return await self._taken(request, checked=False)

    async def effect(self, request: Request) -> Response:
        """Tell whether a person was registered."""
        there = request.query_params.get("email", "") in self.memory.people
        return JSONResponse({"registered": there}, 200 if there else 404)

    async def _taken(self, request: Request, *, checked: bool) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind not in _READABLE and not (kind and self.form.probe == "M21"):
            return PlainTextResponse("The form cannot be read.\n", 415)
        try:
            fields = await read_fields(request)
        except UnreadableBody:
            return PlainTextResponse("The form cannot be read.\n", 400)
        post = self._post(request, fields)
        self.audit.site.posted(self.form.slug, self._token(post))
        try:
            await self._judge(post, checked=checked)
        except Rejected as rejected:
            self.audit.site.rejected(self.form.slug, rejected.code)
            return await self._refusal(post, rejected)
        except Crash:
            self.audit.site.rejected(self.form.slug, "crash")
            return PlainTextResponse("Internal Server Error", 500)
        self._remember(post)
        return self._welcome(post.session)

    def _post(self, request: Request, fields: Fields) -> Post:
        form = self.form
        session = self.sessions.of(request)
        return Post(form.kind, form.keys, form.rules, fields, request.headers, session, self.memory, self.vendor)

    def _token(self, post: Post) -> str:
        return post.token if self.form.captcha is None else self.form.captcha.token(post.fields)

    async def _judge(self, post: Post, *, checked: bool) -> None:
        """Check the session's CSRF token, then the captcha, then the other fields. Raises Rejected, Crash."""
        csrf = post.fields.get("csrf_token") or post.headers.get("x-csrf-token", "")
        if self.form.csrf and not secrets.compare_digest(csrf.encode(), post.session.csrf.encode()):
            raise Rejected(403, "csrf", "This form has expired. Please send it again.")
        email = post.fields.get("email")
        if self.form.oracle and email in self.memory.people:
            raise Rejected(409, "known", "This address is registered already.")
        if self.form.early and EMAIL.fullmatch(email):
            self.memory.people.add(email)
        if checked and not await self._holds(post):
            self._count_refusal(post)
            raise Rejected(422, "captcha", _REFUSED + (_CODES if self.form.tells else ""))
        if not (EMAIL.fullmatch(email) and post.fields.get("name").strip()):
            raise Rejected(422, "fields", "Please give your name and a valid e-mail address.")

    async def _holds(self, post: Post) -> bool:
        try:
            if self.form.captcha is not None:
                return await self.form.captcha.accepts(post.fields, post.session, self.vendor)
            return await self.form.check(post)
        except VendorUnavailable:
            return False

    def _count_refusal(self, post: Post) -> None:
        token = self._token(post)
        self.memory.refusals[token] += 1
        if self.form.limited and token and self.memory.refusals[token] > MOST_REFUSALS:
            raise Rejected(429, "limit", "Too many tries. Please wait a while.")

    def _remember(self, post: Post) -> None:
        self.audit.site.accepted[self.form.slug] += 1
        self.memory.passed.setdefault(self._token(post), self.memory.clock())
        self.memory.people.add(post.fields.get("email"))
        self.memory.sessions.add(post.session.id)

    def _welcome(self, session: Session) -> Response:
        if self.form.api:
            return JSONResponse({"ok": True}, 201)
        session.flash = f"Thank you! We have received: {self.form.title}."
        return RedirectResponse("/welcome", 303)

    async def _refusal(self, post: Post, rejected: Rejected) -> Response:
        if self.form.api:
            return JSONResponse({"ok": False, "code": rejected.code, "message": rejected.text}, rejected.status)
        return await self._render(post.session, post, rejected)

    async def _render(self, session: Session, post: Post | None = None, rejected: Rejected | None = None) -> Response:
        form = self.form
        offer = await self._offer(session)
        template = form.kind.template if form.captcha is None else form.captcha.template
        if form.api and form.slug.endswith("page"):
            body, head = render("single_page", title=form.title, path=form.path, **offer), "single_page_head"
        else:
            body, head = self._form(session, offer, template, post, rejected), f"{template}_head"
        meta = Html(render("single_page_head", csrf=session.csrf)) if form.api else NOTHING
        shown = meta if head == "single_page_head" else Html(meta + render(head, **offer))
        status = rejected.status if rejected else 200
        response = page_of(session, form.title, body, head=shown, status=status)
        return self._dressed(response, session, status)

    def _form(
        self,
        session: Session,
        offer: Mapping[str, str],
        template: str,
        post: Post | None,
        rejected: Rejected | None,
    ) -> Html:
        widget = render(template, **offer)
        if post is not None and self.form.echoes and post.token:
            widget = render("echoed", name=post.kind.field_name, token=post.token)
        return render(
            "form",
            slug=self.form.path.lstrip("/"),
            title=self.form.title,
            csrf=session.csrf,
            email=post.fields.get("email") if post else "",
            name=post.fields.get("name") if post else "",
            error=render("error", code=rejected.code, text=rejected.text) if rejected else NOTHING,
            widget=widget,
        )

    async def _offer(self, session: Session) -> Mapping[str, str]:
        if self.form.captcha is None:
            return {"sitekey": self.form.keys.sitekey, "action": ACTION}
        return await self.form.captcha.offer(session, self.vendor)

    def _dressed(self, response: Response, session: Session, status: int) -> Response:
        text = self.form.dress(bytes(response.body).decode())
        dressed = HTMLResponse(text, status, dict(self.form.headers))
        set_cookie(dressed, session)
        return dressed


def lab_routes(
    audit: Audit, vendor: AskVendor, sessions: Sessions, *, clock: Callable[[], float] = time.monotonic
) -> list[Route]:
    """Return the routes of all forms of the lab; `vendor` should give up early."""
    pages = [LabPage(form, sessions, audit, vendor, Memory(clock)) for form in LAB]
    return [route for page in pages for route in _routes(page)]


def _routes(page: LabPage) -> list[Route]:
    path = page.form.path
    unchecked = [Route(path + suffix, page.take_unchecked, methods=[verb]) for verb, suffix in page.form.routes]
    return [
        Route(path, page.show, methods=["GET"]),
        Route(path, page.take, methods=["POST"]),
        Route(f"{path}/effect", page.effect, methods=["GET"]),
        *unchecked,
    ]
