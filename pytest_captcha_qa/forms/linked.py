"""What a widget fetches from the site before it can be solved: an image, a challenge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytest_captcha_qa.errors import PageError, ScopeDenied
from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.visit import MOST_REDIRECTS, Visit, granted
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.url import Url, UrlRefused


@dataclass(frozen=True, slots=True)
class Linked:
    """How a type's page-specific data is fetched.

    `address`, `into`: the data that hold its address and, once it was fetched, itself; `called`: what a message calls
    it; `limit`: most bytes; `read`: what the provider is told of the body, `check`: the same of what the page shows
    inline. Both raise ValueError with words that go on after "it".
    """

    address: str
    into: str
    called: str
    accept: str
    limit: int
    read: Callable[[bytes], str]
    check: Callable[[str], str]

    def lacking(self, data: Mapping[str, str]) -> bool:
        """Return whether a page shows neither the thing nor its address."""
        return not data.get(self.address) and not data.get(self.into)


def completed(challenge: Challenge, linked: Linked, visit: Visit, markup: Markup) -> Challenge:
    """Return the challenge with what its widget fetches, and without the address, which nobody else needs.

    Raises:
        ScopeDenied: the address is not authorised; nothing was sent to it.
        PageError: it answers something else, or too much.
        TargetUnavailable: it does not answer.
    """
    inline = challenge.data.get(linked.into)
    try:
        value = linked.check(inline) if inline else linked.read(_fetched(challenge, linked, visit, markup))
    except ValueError as wrong:
        raise PageError(f"the {linked.called} of {challenge.type} on {markup.url.without_query} {wrong}") from None
    kept = {name: text for name, text in challenge.data.items() if name != linked.address}
    return replace(challenge, data={**kept, linked.into: value})


def _fetched(challenge: Challenge, linked: Linked, visit: Visit, markup: Markup) -> bytes:
    what = f"the {linked.called} of {challenge.type} on {markup.url.without_query}"
    target = _target(challenge.data[linked.address], markup.base, what)
    for _ in range(MOST_REDIRECTS + 1):
        grant = granted(target, f"{what} is there", visit.grants)
        reply = visit.resource(target, grant, accept=linked.accept, limit=linked.limit, page=markup.url)
        if not reply.location:
            break
        target = _target(reply.location, reply.url, what)
    if reply.status != 200:
        raise PageError(f"{what} cannot be had: {reply.url.without_query} answers {reply.status}")
    return reply.body


def _target(reference: str, base: Url, what: str) -> Url:
    try:
        return base.join(reference)
    except (UrlRefused, ValueError) as refused:
        raise ScopeDenied(f"the address of {what} is refused: {refused}", reason="url_refused") from None
