"""One client's way through the pages of a site: only what is granted is asked and followed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    AccessNotConfigured,
    PageError,
    ScopeDenied,
    TargetUnavailable,
    TransportError,
)
from pytest_captcha_qa.forms.markup import Markup, parse
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.scope import ScopeGrant
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Payload, Reply

MOST_REDIRECTS = 5
ACCEPT = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
    "Upgrade-Insecure-Requests": "1",
}
"""What browsers send along when they ask for a page."""

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LOGIN_WANTED = frozenset({401, 403})
_NOT_THE_FORM = frozenset({429, 502, 503, 504})  # a limit or a gateway answered in its place
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})


class Visit:
    """One client's way through pages, each with its own grant."""

    def __init__(
        self, client: HttpClient, grants: GrantSource, deadline: Deadline, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        """Keep what is asked with; `headers` replace those that browsers send along when they ask for a page."""
        self._client = client
        self._deadline = deadline
        self._headers = headers
        self.grants = grants

    def page(self, url: Url) -> tuple[Reply, Markup]:
        """Return the HTML page that an address, its redirects and automatic refreshes end at."""
        grant = self.grants.grant(url)
        for _ in range(MOST_REDIRECTS + 1):
            reply = self.get(url, grant)
            if reply.status in _REDIRECTS:
                target = _redirect_target(reply)
            else:
                markup = _html(reply)
                refresh = _refresh_target(markup)
                if refresh is None:
                    return reply, markup
                target = refresh
            why = f"{url.without_query} redirects to it"
            url, grant = target, granted(target, why, self.grants)
        raise PageError(f"{url.without_query} was reached after {MOST_REDIRECTS} redirects and redirects again")

    def send(self, method: str, url: Url, grant: ScopeGrant, payload: Payload) -> Reply:
        """Send a submit and return its answer; the error tells whether any of it can have left."""
        try:
            return self._client.request(method, url, deadline=self._deadline, grant=grant, payload=payload)
        except TransportError as error:
            raise TargetUnavailable(error.message, sent=error.sent) from None

    def get(self, url: Url, grant: ScopeGrant) -> Reply:
        """Read a page, before a submit or after it."""
        payload = NO_PAYLOAD.having({**ACCEPT, **self._headers})
        try:
            return self._client.request("GET", url, deadline=self._deadline, grant=grant, payload=payload)
        except TransportError as error:
            if error.kind == "too_large":
                raise PageError(error.message) from None
            raise TargetUnavailable(error.message) from None

    def resource(self, url: Url, grant: ScopeGrant, *, accept: str, limit: int, page: Url) -> Reply:
        """Read what a page embeds, as a browser that is on it; at most `limit` bytes."""
        headers = {"Accept": accept, "Accept-Language": ACCEPT["Accept-Language"], "Referer": referrer(page, url)}
        payload = NO_PAYLOAD.having({**headers, **self._headers})
        try:
            return self._client.request("GET", url, deadline=self._deadline, grant=grant, limit=limit, payload=payload)
        except TransportError as error:
            if error.kind == "too_large":
                raise PageError(error.message) from None
            raise TargetUnavailable(error.message) from None


def referrer(page: Url, target: Url) -> str:
    """Return what a browser says about the page it comes from, unless that asks for another policy."""
    # strict-origin-when-cross-origin is what browsers do by themselves.
    return str(page) if target.origin == page.origin else f"{page.origin}/"


def granted(target: Url, why: str, grants: GrantSource) -> ScopeGrant:
    """Return a grant for an address that a page named; a refusal tells which page did."""
    try:
        return grants.grant(target)
    except ScopeDenied as denied:
        raise ScopeDenied(
            f"{target.without_query} is not authorised, and nothing was sent to it; {why}. {denied.message}",
            reason=denied.reason,
        ) from None


def _html(reply: Reply) -> Markup:
    """Return the page that was answered.

    Raises:
        AccessNotConfigured, TargetUnavailable, PageError: something else was.
    """
    where, status = reply.url.without_query, reply.status
    if status in _LOGIN_WANTED:
        raise AccessNotConfigured(
            f"{where} answers {status}: it wants a login or refuses this client; "
            "configure the access to the environment under [env.NAME.http], or log in first with the form's prepare"
        )
    if status in _NOT_THE_FORM:
        raise TargetUnavailable(f"{where} answers {status}: the site is not available now", status=status)
    if status != 200:
        raise PageError(f"{where} answers {status} in place of the page with the form", status=status)
    if reply.content_type not in _HTML:
        raise PageError(f"{where} answers with {reply.content_type!a}, which is no HTML page")
    return parse(reply.text, reply.url)


def _redirect_target(reply: Reply) -> Url:
    if reply.location is None:
        raise PageError(
            f"{reply.url.without_query} answers {reply.status} without saying where to go", status=reply.status
        )
    return _target(reply.url, reply.url, reply.location)


def _refresh_target(markup: Markup) -> Url | None:
    """Return where an automatic refresh leads, None if the page stays."""
    if markup.refresh is None:
        return None
    target = _target(markup.url, markup.base, markup.refresh)
    return None if target == markup.url else target


def _target(page: Url, base: Url, reference: str) -> Url:
    try:
        return base.join(reference)
    except (UrlRefused, ValueError) as refused:
        raise ScopeDenied(
            f"the address {page.without_query} redirects to is refused: {refused}", reason="url_refused"
        ) from None
