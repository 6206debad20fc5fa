"""Forms over HTTP: opens the page, follows what is granted, and submits the form as a browser would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    AccessNotConfigured,
    PageError,
    UnknownName,
)
from pytest_captcha_qa.forms.described import OpenedDescribedForm
from pytest_captcha_qa.forms.drafting import drafted, written
from pytest_captcha_qa.forms.entries import MULTIPART, Delivery, Entries, delivery, encoded, filled, form_data, without
from pytest_captcha_qa.forms.linked import completed
from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.reading import PageReading, facts_of, read_challenge, read_form
from pytest_captcha_qa.forms.sending import origin_headers, page_that_is_judged, read_files, token_values
from pytest_captcha_qa.forms.visit import ACCEPT, Visit, granted
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.captcha import is_test_sitekey
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Challenge, EnvKind, FormSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import ScopeGrant
from pytest_captcha_qa.transport import File, HttpClient, Payload

_SHOWN_NAME = 60  # characters; a longer field name of the page is not repeated in a message


class HttpFormDriver:
    """Opens plain HTML forms, and pages whose submit the configuration describes."""

    def __init__(self, client_factory: Callable[[], HttpClient]) -> None:
        """Keep where the clients come from: one with its own, empty cookie jar for each opened form."""
        self._new_client = client_factory

    def open(
        self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline
    ) -> OpenedHtmlForm | OpenedDescribedForm:
        """Return the form that holds the widget, with the client that has the page's cookies.

        Raises:
            PageError: the page is broken, in words that name it and what was found.
            AccessNotConfigured: a login stands in its place.
            ConfigError: several widgets and none chosen, or a field that the form does not have.
            ScopeDenied: the page, a redirect, its base or the form's target is not authorised.
            TargetUnavailable: the site cannot be reached.
        """
        facts_of(form.type)
        client = self._new_client()
        visit = Visit(client, grants, deadline, form.headers)
        reply, markup = visit.page(url)
        grant = granted(markup.base, f"it is the <base> of {markup.url.without_query}", grants)
        redirected = reply.url.without_query != url.without_query
        read = read_form if form.submit is None else read_challenge
        reading = read(markup, form, redirected=redirected)
        _refuse_test_key(reading.challenge, grant)
        reading = replace(reading, challenge=_whole(reading.challenge, visit, markup))
        opened: OpenedHtmlForm | OpenedDescribedForm
        if isinstance(reading, PageReading):
            opened = OpenedHtmlForm(client, form, reading, charset=reply.charset, redirected=redirected)
        else:
            opened = OpenedDescribedForm(client, form, reading)
        if form.verify.via.submits_form:
            opened.check(grants)
        return opened


def _refuse_test_key(challenge: Challenge, grant: ScopeGrant) -> None:
    """Raise if production shows an official test key.

    Raises:
        PageError: it does, and the vendor lets everybody pass with it.
    """
    if grant.kind is EnvKind.PRODUCTION and is_test_sitekey(challenge.sitekey):
        raise PageError(
            f"{challenge.page.without_query} is production and shows the official test key {challenge.sitekey}, "
            f"with which the vendor lets everybody pass"
        )


def _whole(challenge: Challenge, visit: Visit, markup: Markup) -> Challenge:
    """Return the challenge with what its widget fetches."""
    linked = facts_of(challenge.type).linked
    return challenge if linked is None else completed(challenge, linked, visit, markup)


class OpenedHtmlForm:
    """A form as its page showed it. It prints as its page's path and its type only."""

    def __init__(
        self, client: HttpClient, form: FormSpec, reading: PageReading, *, charset: str, redirected: bool
    ) -> None:
        """Made by HttpFormDriver; `charset`: the page's; `redirected`: it is not the page that was asked for."""
        self._client = client
        self._form = form
        self._reading = reading
        self._charset = charset
        self._redirected = redirected

    @property
    def challenge(self) -> Challenge:
        """What the provider may be told."""
        return self._reading.challenge

    @property
    def page(self) -> Url:
        """Where the page finally was."""
        return self._reading.markup.url

    def check(self, grants: GrantSource) -> None:
        """Return quietly if the form has the configured fields and a granted target."""
        names = self._reading.markup.control_names(self._reading.form)
        kinds = {(control.get("type") or "").lower() for control in self._reading.form.iter("input")}
        if self._redirected and "password" in kinds and not set(self._form.fields) <= set(names):
            raise AccessNotConfigured(
                f"the page of form {self._form.slug!r} leads to a login ({self.page.without_query}); "
                "configure the access to the environment under [env.NAME.http], "
                f"or log in first with forms.{self._form.slug}.prepare"
            )
        self.check_fields([*self._form.fields, *self._form.files])
        how = self._delivery()
        if self._form.files and how.enctype != MULTIPART:
            raise PageError(
                f"the form {self._form.slug!r} on {self.page.without_query} is sent as {how.enctype}, which carries no "
                f"file; a form with files needs enctype={MULTIPART}"
            )
        self._grant(how.target, grants)

    def check_fields(self, names: Iterable[str]) -> None:
        """Return quietly if the form has controls of these names, hidden ones included, beside those of the token.

        Raises:
            UnknownName: one that it does not have.
        """
        known = set(self._reading.markup.control_names(self._reading.form)) - set(self._reading.token_fields)
        for name in names:
            if name not in known:
                where = f"the form {self._form.slug!r} on {self.page.without_query}"
                shown = [other for other in known if other.isprintable() and len(other) <= _SHOWN_NAME]
                raise UnknownName.among("form field", name, shown, where=where)

    def submit(
        self, solution: Solution | None, fields: Mapping[str, str], grants: GrantSource, deadline: Deadline
    ) -> Answer:
        """Send the form with these fields and the solution's; without a solution its fields are left out.

        The answer is the first one, or the page that redirects end at if the success rule speaks of a page.

        Raises:
            ConfigError: a field that the form does not have.
            ScopeDenied: the form's target is not authorised; nothing was sent.
            PageError: a redirect that has to be followed leads where it must not.
            TargetUnavailable: no answer came; `sent` tells whether the token can have left.
        """
        self.check_fields(fields)
        how = self._delivery()
        target, payload = self._request(how, solution, fields)
        grant = self._grant(target, grants)
        visit = Visit(self._client, grants, deadline, self._form.headers)
        answer = visit.send(how.method, target, grant, payload).answer
        return page_that_is_judged(self._form, self.page, answer, visit)

    def draft(self, solution: Solution | None, fields: Mapping[str, str]) -> Draft:
        """Return what `submit` would send, for a probe to change; nothing is sent.

        Raises:
            ConfigError: a field that the form does not have.
        """
        self.check_fields(fields)
        entries, _ = self._entries(solution, fields)
        return drafted(self._delivery(), entries, list(self._reading.token_fields))

    def send(self, draft: Draft, grants: GrantSource, deadline: Deadline) -> Answer:
        """Send a draft as it is, to its own target, and return what `submit` returns; the same errors are raised."""
        target, payload = written(draft, list(read_files(self._form).values()))
        grant = self._grant(target, grants)
        headers = {**self._headers(draft.method, target), **payload.headers}
        client = self._client.new_session() if draft.sessionless else self._client
        visit = Visit(client, grants, deadline, self._form.headers)
        answer = visit.send(draft.method, target, grant, payload.having(headers)).answer
        return page_that_is_judged(self._form, self.page, answer, visit)

    def _delivery(self) -> Delivery:
        return delivery(self._reading, charset=self._charset)

    def _grant(self, target: Url, grants: GrantSource) -> ScopeGrant:
        return granted(target, f"it is the action of the form on {self.page.without_query}", grants)

    def _request(self, how: Delivery, solution: Solution | None, fields: Mapping[str, str]) -> tuple[Url, Payload]:
        entries, file_names = self._entries(solution, fields)
        chosen = {name: File(name, "", b"") for name in file_names if name not in fields} | read_files(self._form)
        target, payload = encoded(how, entries, list(chosen.values()))
        payload = payload.having(self._headers(how.method, target))
        if solution is not None:
            payload = payload.having(cookies=solution.cookies, user_agent=solution.user_agent)
        return target, payload

    def _entries(self, solution: Solution | None, fields: Mapping[str, str]) -> tuple[Entries, tuple[str, ...]]:
        own, token_fields = form_data(self._reading), self._reading.token_fields
        entries = filled(without(own.entries, token_fields), fields)
        if solution is not None:
            entries += list(token_values(solution, token_fields).items())
        return entries, own.files

    def _headers(self, method: str, target: Url) -> dict[str, str]:
        return {**ACCEPT, **origin_headers(method, self.page, target), **self._form.headers}

    def __repr__(self) -> str:
        """Return page path and type."""
        return f"<OpenedHtmlForm {self.page.path} {self.challenge.type}>"
