"""Fetches the proof from the origin itself and says what stood in its place."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import AccessNotConfigured, ScopeDenied, TargetUnavailable, TransportError
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused
from pytest_captcha_qa.ownership.proof import KEY_VARIABLE, SIZE_LIMIT, ProofKey, authenticate, proof_url
from pytest_captcha_qa.scope import Evidence, ScopeRules, unlisted
from pytest_captcha_qa.transport import HttpClient, ProofFetch, Reply

FETCH_SECONDS = 15.0

_LOGIN_PATH = re.compile(
    r"(?:\A|[/_.-])(?:log[-_]?in|sign[-_]?in|sso|auth|saml2?|oauth2?|oidc|session)(?:[/_.-]|\Z)",
    re.IGNORECASE,
)
_PASSWORD_FIELD = re.compile(r"<input\b[^>]{0,500}\btype\s*=\s*[\"']?password\b", re.IGNORECASE)


class ProofFetcher:
    """The `EvidenceSource` of one environment; every call fetches anew, grants are what is kept."""

    def __init__(
        self,
        client: HttpClient,
        key: ProofKey | None,
        rules: ScopeRules,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the client with the environment's access settings, and the team's key if there is one."""
        self._client = client
        self._key = key
        self._rules = rules
        self._monotonic = monotonic

    def evidence(self, origin: Origin) -> Evidence:
        """Return the authenticated proof of this concrete origin.

        Raises:
            ScopeDenied: the origin is not configured; there is no key; there is no proof, or not ours, or it
                came late or in a wrong shape.
            AccessNotConfigured: a login stood in its place.
            TargetUnavailable: the site is down; that is no grant either, and nothing was sent.
        """
        if (denied := unlisted(origin, self._rules)) is not None:
            raise denied
        key = self._required_key(origin)
        url = proof_url(origin, key)
        # Taken before the fetch, so that the ten minutes begin when the file was surely still served.
        fetched_at = self._monotonic()
        reply = self._fetch(url)
        if _is_login(reply, url):
            raise AccessNotConfigured(
                f"{url} answered with a login instead of the proof: serve the file without one, "
                f"or set the access under [env.{self._rules.env}.http]"
            )
        if (problem := _no_proof(reply, url, self._rules.env)) is not None:
            raise problem
        return authenticate(_decoded(reply, url), key, origin, fetched_at)

    def _required_key(self, origin: Origin) -> ProofKey:
        if self._key is None:
            raise ScopeDenied(
                f"{origin} needs an ownership proof and {KEY_VARIABLE} is not set: "
                f"run `captcha-qa authorise {self._rules.env}` and set {KEY_VARIABLE} wherever tests run",
                reason="proof_key_missing",
            )
        return self._key

    def _fetch(self, url: Url) -> Reply:
        deadline = Deadline(FETCH_SECONDS, what=f"the fetch of {url}")
        permission = ProofFetch(url.origin)
        try:
            return self._client.request("GET", url, deadline=deadline, grant=permission, limit=SIZE_LIMIT)
        except TransportError as error:
            raise _not_fetched(error, url) from None


# The site is there and does not answer; a name that does not resolve or a wrong certificate may be anybody's.
_DOWN = frozenset({"refused", "connect_timeout", "timeout", "reset", "resources"})
_GATEWAY = frozenset({502, 503, 504})


def _not_fetched(error: TransportError, url: Url) -> ScopeDenied | TargetUnavailable:
    if error.kind in _DOWN:
        return TargetUnavailable(f"the site is down, its proof could not be read: {error.message}", sent=False)
    if error.kind == "too_large":
        return ScopeDenied(f"what {url} serves is larger than 4 KiB and no proof", reason="proof_too_large")
    return ScopeDenied(f"the proof could not be fetched: {error.message}", reason="proof_unreachable")


def _is_login(reply: Reply, url: Url) -> bool:
    if reply.status in (401, 403):
        return True
    if reply.status == 200 and reply.content_type == "text/html":
        return _PASSWORD_FIELD.search(reply.text) is not None
    if reply.location is None:
        return False
    try:
        target = url.join(reply.location)
    except UrlRefused:
        return False
    # The same path on another host (www, https) is the site's canonical address and not a login.
    elsewhere = target.origin.host != url.origin.host and target.path != url.path
    return elsewhere or _LOGIN_PATH.search(target.path) is not None


def _no_proof(reply: Reply, url: Url, env: str) -> ScopeDenied | TargetUnavailable | None:
    if reply.status in _GATEWAY:
        return TargetUnavailable(f"the site is down: a gateway answered {reply.status} for {url}", sent=False)
    if 300 <= reply.status < 400:
        return ScopeDenied(f"{url} redirects; the proof must be served at that very address", reason="proof_redirected")
    if reply.status in (404, 410):
        return ScopeDenied(
            f"{url} does not exist; make the file with `captcha-qa authorise {env}` and serve it there",
            reason="proof_missing",
        )
    if reply.status != 200:
        return ScopeDenied(f"{url} answered {reply.status} instead of 200", reason="proof_unreachable")
    if reply.content_type != "text/plain":
        return ScopeDenied(
            f"{url} is not served as text/plain; a site that answers every path with a page of its own "
            "needs a rule for this file before that one",
            reason="proof_wrong_type",
        )
    return None


def _decoded(reply: Reply, url: Url) -> str:
    try:
        return reply.body.decode("utf-8")
    except UnicodeDecodeError:
        raise ScopeDenied(f"the proof at {url} cannot be read: it is not UTF-8", reason="proof_unreadable") from None
