"""Pages whose widget a script submits: what it would send is described by the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, PageError, ScopeDenied, UnknownName
from pytest_captcha_qa.forms.drafting import written
from pytest_captcha_qa.forms.reading import ChallengeReading
from pytest_captcha_qa.forms.sending import origin_headers, page_that_is_judged, read_files, token_values
from pytest_captcha_qa.forms.visit import Visit, granted
from pytest_captcha_qa.forms.widget import Fields
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.body import copied, pruned, put
from pytest_captcha_qa.model.draft import Draft, Wire
from pytest_captcha_qa.model.form import Challenge, Encoding, FormSpec, SubmitSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.scope import ScopeGrant
from pytest_captcha_qa.transport import File, HttpClient, Payload, json_body, multipart, urlencoded

_ACCEPT = {"Accept": "application/json, text/plain, */*", "Accept-Language": "en-US,en;q=0.5"}
"""What scripts of a page send along."""


class OpenedDescribedForm:
    """A page with a widget, and the submit that the configuration describes. It prints as path and type only."""

    def __init__(self, client: HttpClient, form: FormSpec, reading: ChallengeReading) -> None:
        """Made by HttpFormDriver."""
        assert form.submit is not None, "HttpFormDriver makes it for forms with a described submit only"
        self._client = client
        self._form = form
        self._submit: SubmitSpec = form.submit
        self._reading = reading

    @property
    def challenge(self) -> Challenge:
        """What the provider may be told."""
        return self._reading.challenge

    @property
    def page(self) -> Url:
        """Where the page finally was."""
        return self._reading.markup.url

    def check(self, grants: GrantSource) -> None:
        """Return quietly if the target is granted, the page has its CSRF value, and the solution its places."""
        self._token_places()
        self._csrf()
        self._grant(self._target(), grants)

    def check_fields(self, names: Iterable[str]) -> None:
        """Return quietly if the described body or the configured fields have places of these names.

        Raises:
            UnknownName: one that they do not have.
        """
        known = {*self._submit.values, *self._form.fields}
        for name in names:
            if name not in known:
                raise UnknownName.among("value", name, known, where=f"the body of forms.{self._form.slug}.submit")

    def submit(
        self, solution: Solution | None, fields: Mapping[str, str], grants: GrantSource, deadline: Deadline
    ) -> Answer:
        """Send what is described with these values in the body and the solution's parts; None: without them.

        The answer is the first one, or the page that redirects end at if the success rule speaks of a page.

        Raises:
            ConfigError: a value that the body has no place for, or a CSRF value that is gone.
            ScopeDenied: the target is not authorised; nothing was sent.
            PageError: a redirect that has to be followed leads where it must not.
            TargetUnavailable: no answer came; `sent` tells whether the token can have left.
        """
        self.check_fields(fields)
        target = self._target()
        payload = self._payload(solution, fields).having(self._headers(target))
        if solution is not None:
            payload = payload.having(cookies=solution.cookies, user_agent=solution.user_agent)
        grant = self._grant(target, grants)
        visit = Visit(self._client, grants, deadline, self._form.headers)
        answer = visit.send(self._submit.method, target, grant, payload).answer
        return page_that_is_judged(self._form, self.page, answer, visit)

    def draft(self, solution: Solution | None, fields: Mapping[str, str]) -> Draft:
        """Return what `submit` would send, for a probe to change; nothing is sent.

        Raises:
            ConfigError: a value that the body has no place for.
        """
        self.check_fields(fields)
        places, nested = self._token_places(), self._submit.encoding is Encoding.JSON
        token = token_values(solution, places) if solution is not None else {}
        values = self._submit.values | dict(fields) | token
        body = pruned(self._submit.body, places) if nested else None
        wire = _WIRES[self._submit.encoding]
        return Draft(self._submit.method, self._target(), wire, tuple(values.items()), tuple(places), body)

    def send(self, draft: Draft, grants: GrantSource, deadline: Deadline) -> Answer:
        """Send a draft as it is, to its own target, and return what `submit` returns; the same errors are raised."""
        target, payload = written(draft, list(read_files(self._form).values()))
        grant = self._grant(target, grants)
        headers = {**self._headers(target), **payload.headers}
        client = self._client.new_session() if draft.sessionless else self._client
        visit = Visit(client, grants, deadline, self._form.headers)
        answer = visit.send(draft.method, target, grant, payload.having(headers)).answer
        return page_that_is_judged(self._form, self.page, answer, visit)

    # Where it goes.

    def _target(self) -> Url:
        try:
            return self.page.join(self._submit.url)
        except (UrlRefused, ValueError) as refused:
            raise ScopeDenied(
                f"forms.{self._form.slug}.submit.url is refused: {refused}", reason="url_refused"
            ) from None

    def _grant(self, target: Url, grants: GrantSource) -> ScopeGrant:
        return granted(target, f"it is forms.{self._form.slug}.submit.url", grants)

    def _headers(self, target: Url) -> dict[str, str]:
        headers = {**_ACCEPT, **origin_headers(self._submit.method, self.page, target), **self._form.headers}
        if self._submit.csrf is not None:
            headers[self._submit.csrf.header] = self._csrf()
        return headers

    def _csrf(self) -> str:
        """Return the value that the page gave its script to repeat, empty if none is described.

        Raises:
            PageError: the page does not give it.
        """
        csrf = self._submit.csrf
        if csrf is None:
            return ""
        found = self._cookie(csrf.cookie) or self._content(csrf.meta) or self._value(csrf.field)
        if not found:
            kind, name = next((k, n) for k in ("cookie", "meta", "field") if (n := getattr(csrf, k)))
            raise PageError(
                f"{self.page.without_query} has no {_CALLED[kind]} {name!r}, whose value the submit of form "
                f"{self._form.slug!r} repeats in the header {csrf.header}"
            )
        if not found.isprintable() or not found.isascii():
            raise PageError(f"the CSRF value of {self.page.without_query} cannot stand in a header")
        return found

    def _cookie(self, name: str | None) -> str:
        if name is None:
            return ""
        kept = {**self._client.cookies(self._target().origin), **self._client.cookies(self.page.origin)}
        return unquote(kept.get(name, ""))

    def _content(self, name: str | None) -> str:
        metas = self._reading.markup.root.iter("meta") if name else ()
        return next((meta.get("content") or "" for meta in metas if meta.get("name") == name), "").strip()

    def _value(self, name: str | None) -> str:
        inputs = self._reading.markup.root.iter("input") if name else ()
        return next((control.get("value") or "" for control in inputs if control.get("name") == name), "")

    # What it carries.

    def _token_places(self) -> Fields:
        """Return the path or field of each part of the solution.

        Raises:
            UnknownName: `token_at` names a part that the type does not have.
        """
        own, configured = self._reading.token_fields, self._submit.token_at
        for part in configured:
            if part not in own.values():
                where = f"forms.{self._form.slug}.submit.token_at"
                raise UnknownName.among(f"part of a {self._form.type} solution", part, own.values(), where=where)
        return {path: part for part, path in configured.items()} or own

    def _payload(self, solution: Solution | None, fields: Mapping[str, str]) -> Payload:
        values = dict(fields)
        if solution is not None:
            values |= token_values(solution, self._token_places())
        return _ENCODERS[self._submit.encoding](self._body(values), list(read_files(self._form).values()))

    def _body(self, values: Mapping[str, str]) -> dict[str, Any]:
        body: dict[str, Any] = copied(self._submit.body)
        if self._submit.encoding is not Encoding.JSON:
            return {**body, **values}
        for path, value in values.items():
            try:
                put(body, path, value)
            except ValueError as wrong:
                raise ConfigError(f"the body of forms.{self._form.slug}.submit has no such place: {wrong}") from None
        return body

    def __repr__(self) -> str:
        return f"<OpenedDescribedForm {self.page.path} {self.challenge.type}>"


_CALLED = {
    "cookie": "cookie",
    "meta": "<meta> element with a content and the name",
    "field": "input with a value and the name",
}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(body: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, _as_text(value)) for name, value in body.items()]


_WIRES = {Encoding.JSON: Wire.JSON, Encoding.FORM: Wire.FORM, Encoding.MULTIPART: Wire.MULTIPART}

_ENCODERS: Mapping[Encoding, Callable[[dict[str, Any], list[File]], Payload]] = {
    Encoding.JSON: lambda body, files: json_body(body),
    Encoding.FORM: lambda body, files: urlencoded(_pairs(body)),
    Encoding.MULTIPART: lambda body, files: multipart(_pairs(body), files),
}
