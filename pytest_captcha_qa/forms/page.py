"""Forms over HTTP: opens the page, follows what is granted, and submits the form as a browser would."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    AccessNotConfigured,
    ConfigError,
    PageError,
    ScopeDenied,
    UnknownName,
)
from pytest_captcha_qa.forms.entries import Delivery, delivery, encoded, filled, form_data, without
from pytest_captcha_qa.forms.reading import PageReading, facts_of, read_form
from pytest_captcha_qa.forms.visit import ACCEPT, MOST_REDIRECTS, Visit, granted
from pytest_captcha_qa.forms.widgets import Fields
from pytest_captcha_qa.model.form import Answer, Challenge, FormSpec, Rule
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import ScopeGrant
from pytest_captcha_qa.transport import HttpClient, Payload

_SHOWN_NAME = 60  # characters; a longer field name of the page is not repeated in a message
_BECOME_GET = frozenset({301, 302, 303})  # 307 and 308 would post the token once more


class HttpFormDriver:
    """Implements FormDriver for plain HTML forms."""

    def __init__(self, client_factory: Callable[[], HttpClient]) -> None:
        """Keep where the clients come from: one with its own, empty cookie jar for each opened form."""
        self._new_client = client_factory

    def open(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline) -> OpenedHtmlForm:
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
        visit = Visit(client, grants, deadline)
        reply, markup = visit.page(url)
        granted(markup.base, f"it is the <base> of {markup.url.without_query}", grants)
        redirected = reply.url.without_query != url.without_query
        reading = read_form(markup, form, redirected=redirected)
        opened = OpenedHtmlForm(client, form, reading, charset=reply.charset)
        if form.verify.via.submits_form:
            opened.check(grants, redirected=redirected)
        return opened


class OpenedHtmlForm:
    """A form as its page showed it. It prints as its page's path and its type only."""

    def __init__(self, client: HttpClient, form: FormSpec, reading: PageReading, *, charset: str) -> None:
        """Made by HttpFormDriver; `charset` is the one the page came in."""
        self._client = client
        self._form = form
        self._reading = reading
        self._charset = charset

    @property
    def challenge(self) -> Challenge:
        """What the provider may be told."""
        return self._reading.challenge

    @property
    def page(self) -> Url:
        """Where the page finally was."""
        return self._reading.markup.url

    def check(self, grants: GrantSource, *, redirected: bool) -> None:
        """Return quietly if the form has the configured fields and a granted target."""
        names = self._reading.markup.control_names(self._reading.form)
        kinds = {(control.get("type") or "").lower() for control in self._reading.form.iter("input")}
        if redirected and "password" in kinds and not set(self._form.fields) <= set(names):
            raise AccessNotConfigured(
                f"the page of form {self._form.slug!r} leads to a login ({self.page.without_query}); "
                f"configure the access to the environment, or the steps before the form"
            )
        self._check_names(self._form.fields)
        self._grant(self._delivery().target, grants)

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
        self._check_names(fields)
        how = self._delivery()
        target, payload = self._request(how, solution, fields)
        grant = self._grant(target, grants)
        visit = Visit(self._client, grants, deadline)
        answer = visit.send(how.method, target, grant, payload).answer
        return self._page_that_is_judged(answer, visit)

    def _delivery(self) -> Delivery:
        return delivery(self._reading, charset=self._charset)

    def _grant(self, target: Url, grants: GrantSource) -> ScopeGrant:
        return granted(target, f"it is the action of the form on {self.page.without_query}", grants)

    def _request(self, how: Delivery, solution: Solution | None, fields: Mapping[str, str]) -> tuple[Url, Payload]:
        own = form_data(self._reading)
        token_fields = self._reading.token_fields
        entries = filled(without(own.entries, token_fields), fields)
        if solution is not None:
            entries += list(token_values(solution, token_fields).items())
        files = tuple(name for name in own.files if name not in fields)
        target, payload = encoded(how, entries, files)
        payload = payload.having(self._headers(how.method, target))
        if solution is not None:
            payload = payload.having(cookies=solution.cookies, user_agent=solution.user_agent)
        return target, payload

    def _headers(self, method: str, target: Url) -> dict[str, str]:
        # strict-origin-when-cross-origin is what browsers do unless a page asks for another policy.
        own = target.origin == self.page.origin
        headers = {**ACCEPT, "Referer": str(self.page) if own else f"{self.page.origin}/"}
        if method == "POST":
            headers["Origin"] = str(self.page.origin)
        return headers

    def _page_that_is_judged(self, answer: Answer, visit: Visit) -> Answer:
        """Return the answer, or what its redirects end at if only that page can meet the success rule."""
        refused = self._form.refused
        for _ in range(MOST_REDIRECTS):
            refusal = refused is not None and _judges_redirects(refused) and refused.matches(answer)
            if _judges_redirects(self._form.success) or refusal:
                break
            if answer.status not in _BECOME_GET or answer.location is None:
                break
            answer = self._after_redirect(answer.location, visit)
        return answer

    def _after_redirect(self, target: Url, visit: Visit) -> Answer:
        try:
            return visit.get(target, visit.grants.grant(target)).answer
        except (ScopeDenied, ConfigError) as denied:
            # The form was sent before: an error that says nothing was sent would give its token back.
            raise PageError(
                f"the form on {self.page.without_query} was sent, and its answer redirects to "
                f"{target.without_query}, which is not followed ({denied.message}); "
                f"a success rule with `location` judges the redirect itself"
            ) from None

    def _check_names(self, fields: Mapping[str, str]) -> None:
        known = set(self._reading.markup.control_names(self._reading.form)) - set(self._reading.token_fields)
        for name in fields:
            if name not in known:
                where = f"the form {self._form.slug!r} on {self.page.without_query}"
                shown = [other for other in known if other.isprintable() and len(other) <= _SHOWN_NAME]
                raise UnknownName.among("form field", name, shown, where=where)

    def __repr__(self) -> str:
        """Return page path and type."""
        return f"<OpenedHtmlForm {self.page.path} {self.challenge.type}>"


def token_values(solution: Solution, fields: Fields) -> dict[str, str]:
    """Return what each response field gets; a solution that has none of the parts goes into all of them."""
    parts = {name: solution.parts[part] for name, part in fields.items() if part in solution.parts}
    return {name: str(value) for name, value in parts.items()} or dict.fromkeys(fields, str(solution.text))


def _judges_redirects(rule: Rule) -> bool:
    """Return whether a rule speaks of a redirect itself, not of the page after it."""
    own = rule.location is not None or any(300 <= status < 400 for status in rule.status)
    return own or any(_judges_redirects(part) for part in rule.all)
