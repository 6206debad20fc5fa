"""Reads a form's page as it is, also one that cannot be driven, for the probes that read only."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, PageError, ScopeDenied
from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.reading import facts_of, login_instead
from pytest_captcha_qa.forms.visit import Visit
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport import HttpClient, Reply

MOST_BUNDLES = 6
BUNDLE_LIMIT = 2 * 1024 * 1024
"""Most scripts of a page that are read, and most bytes of each."""


def look(client: HttpClient, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline) -> SeenPage:
    """Return what the page shows, and the scripts that lie on its own origin.

    Raises:
        ScopeDenied: the page or a redirect is not authorised.
        PageError, AccessNotConfigured, TargetUnavailable: something else was answered.
    """
    visit = Visit(client, grants, deadline, form.headers)
    reply, markup = visit.page(url)
    _check_place(form, markup, redirected=reply.url.without_query != url.without_query)
    return SeenPage(
        url=markup.url,
        status=reply.status,
        text=reply.text,
        policies=tuple(_policies(reply, markup)),
        sitekeys=tuple(_sitekeys(form, markup)),
        scripts=markup.sources,
        bundles=tuple(_bundles(markup, visit)),
    )


def _check_place(form: FormSpec, markup: Markup, *, redirected: bool) -> None:
    """Return quietly unless a login stands in the page's place; a page with an unreadable widget is none."""
    try:
        widgets = list(facts_of(form.type).find(markup))
    except CaptchaQAError:
        return
    login = login_instead(markup, form, widgets, redirected=redirected)
    if login is not None:
        raise login


def _policies(reply: Reply, markup: Markup) -> Iterator[str]:
    header = reply.headers.get("Content-Security-Policy")
    yield from (header.split(",") if header else ())
    for meta in markup.root.iter("meta"):
        if (meta.get("http-equiv") or "").strip().lower() == "content-security-policy":
            yield meta.get("content") or ""


def _sitekeys(form: FormSpec, markup: Markup) -> Iterator[str | None]:
    """Yield the sitekey of each widget of the form's type; a type without sitekeys counts as having one."""
    facts = facts_of(form.type)
    try:
        for widget in facts.find(markup):
            named = widget.sitekey or ("set by a script" if widget.scripted else None)
            yield named if facts.has_sitekey else "none needed"
    except CaptchaQAError:
        return  # a widget that cannot even be read is none that works


def _bundles(markup: Markup, visit: Visit) -> Iterator[tuple[str, str]]:
    own = [url for source in markup.sources if (url := _own(source, markup)) is not None]
    for url in own[:MOST_BUNDLES]:
        grant = visit.grants.grant(url)
        try:
            reply = visit.resource(url, grant, accept="*/*", limit=BUNDLE_LIMIT, page=markup.url)
        except PageError:
            continue  # longer than is read
        if reply.status == 200:
            yield url.without_query, reply.text


def _own(source: str, markup: Markup) -> Url | None:
    try:
        url = markup.base.join(source)
    except (UrlRefused, ValueError, ScopeDenied, ConfigError):
        return None
    return url if url.origin == markup.url.origin else None
