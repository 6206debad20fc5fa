"""The client: what goes into a request, who may get it, what is read of the answer."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from types import MappingProxyType

import requests
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar, get_cookie_header

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.watching import saw
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied, TransportError
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.scope import ScopeGrant, ensure
from pytest_captcha_qa.transport.access import HttpAccess
from pytest_captcha_qa.transport.connections import Adapter, Call, calling, hide_queries
from pytest_captcha_qa.transport.cookies import KeptCookie
from pytest_captcha_qa.transport.describing import described
from pytest_captcha_qa.transport.faults import KINDS, LIBRARY_ERRORS, kind_of
from pytest_captcha_qa.transport.payload import NO_PAYLOAD, Payload
from pytest_captcha_qa.transport.reply import Reply
from pytest_captcha_qa.transport.threads import ThreadsExhausted

PAGE_LIMIT = 2 * 1024 * 1024
ANSWER_LIMIT = 64 * 1024
"""Most bytes read of a page, and of the answer of a provider, a vendor or of a proof; decoded."""

USER_AGENT = "Mozilla/5.0 (compatible; pytest-captcha-qa)"
_CHUNK = 16 * 1024
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProofFetch:
    """The one permission that is no grant: to read the proof of a configured origin (R0.1, R0.2)."""

    origin: Origin

    def covers(self, method: str, url: Url) -> bool:
        """Return whether the request reads a proof file of the origin."""
        proof = url.path.startswith("/.well-known/captcha-qa/") and not url.query
        return method == "GET" and url.origin == self.origin and proof


Permission = ScopeGrant | ProofFetch


_NO_ACCESS = HttpAccess()


class _Connections:
    """The adapter that all sessions of a client share; a forked child gets its own."""

    def __init__(self) -> None:
        self._adapter = Adapter()

    @property
    def adapter(self) -> Adapter:
        if self._adapter.pid != os.getpid():
            self._adapter = Adapter()
        return self._adapter


class HttpClient:
    """Sends requests, one a call, and keeps the cookies each origin set. Thread-safe."""

    def __init__(
        self,
        access: HttpAccess = _NO_ACCESS,
        *,
        marks: Mapping[str, str] = _NOTHING,
        user_agent: str = USER_AGENT,
        learn: Learn = forget,
        foreign_ca_file: str | None = None,
    ) -> None:
        """Keep how to reach the environment; `marks` are headers of every request to a target (R0.9).

        `learn` is told the values of the cookies that targets set; `foreign_ca_file`: PEM of the authorities to trust
        instead of the public ones for an address that is no target, such as a stand-in.

        Raises:
            ConfigError: a certificate file does not exist, or a header, cookie or proxy cannot be used.
        """
        access.check(marks)
        hide_queries()
        self._access = access
        self._marks = dict(marks)
        self._user_agent = user_agent
        self._learn = learn
        self._foreign_ca_file = foreign_ca_file
        self._connections = _Connections()
        self._jars: dict[Origin, RequestsCookieJar] = {}

    def new_session(self) -> HttpClient:
        """Return a client without cookies that shares this one's connections; one an attempt."""
        session = copy(self)
        session._jars = {}
        return session

    def close(self) -> None:
        """Close all idle connections, also those of the sessions."""
        self._connections.adapter.close()

    def cookies(self, origin: Origin) -> dict[str, str]:
        """Return the cookies that this origin set, by name; they are secrets."""
        return {cookie.name: cookie.value or "" for cookie in self._jar(origin)}

    def remember(self, origin: Origin, cookies: Mapping[str, str]) -> None:
        """Add cookies to those this origin set, as if it had."""
        for name, value in cookies.items():
            self._jar(origin).set(name, value, domain=_cookie_domain(origin), path="/")

    def kept_cookies(self) -> list[KeptCookie]:
        """Return all that origins have set, to go on with in another client; it is secret."""
        return [KeptCookie.of(origin, cookie) for origin, jar in list(self._jars.items()) for cookie in jar]

    def take_over(self, cookies: Iterable[KeptCookie]) -> None:
        """Go on with the cookies of another client."""
        for kept in cookies:
            self._learn([kept.value])
            self._jar(kept.origin).set_cookie(kept.for_jar())

    def request(
        self,
        method: str,
        url: Url,
        *,
        deadline: Deadline,
        grant: Permission | None,
        limit: int = PAGE_LIMIT,
        payload: Payload = NO_PAYLOAD,
    ) -> Reply:
        """Send one request and return its answer, redirects and error statuses included.

        Without a grant the address is a provider's or a vendor's: no marks, credentials or cookies go there.

        Raises:
            ScopeDenied: the grant does not cover the URL, or a loopback name leads elsewhere.
            TransportError: no complete answer of at most `limit` decoded bytes came before the deadline.
        """
        outcome = self._outcome(method, url, deadline=deadline, grant=grant, limit=limit, payload=payload)
        if isinstance(outcome, Reply):
            return outcome
        # Raised here, outside any `except`: the libraries' exceptions hold the request, its key and its body.
        raise outcome

    def _outcome(
        self,
        method: str,
        url: Url,
        *,
        deadline: Deadline,
        grant: Permission | None,
        limit: int,
        payload: Payload,
    ) -> Reply | CaptchaQAError:
        seconds = deadline.remaining()
        if seconds <= 0:
            return _error("timeout", method, url, sent=False)
        try:
            with calling(seconds, loopback=url.origin.is_loopback) as call:
                return self._exchange(method, url, call, grant=grant, limit=limit, payload=payload)
        except ThreadsExhausted as error:  # nobody can watch the call, so it is not begun
            return _error(kind_of(error), method, url, sent=False)

    def _exchange(
        self, method: str, url: Url, call: Call, *, grant: Permission | None, limit: int, payload: Payload
    ) -> Reply | CaptchaQAError:
        request: requests.PreparedRequest | None = None
        outcome: Reply | TransportError
        try:
            _permit(method, url, grant)
            request = self._prepared(method, url, payload, own=grant is not None)
            with self._send(request, url, call, own=grant is not None) as answer:
                outcome = _outcome_of(answer, _body(answer, limit), method, url)
        except ScopeDenied as denied:
            return denied.with_traceback(None)
        except LIBRARY_ERRORS as error:
            outcome = _error(call.late if call.is_late else kind_of(error), method, url, sent=call.sent)
        else:
            # A body without a stated length just ends when the watchdog cuts it.
            outcome = _error("timeout", method, url) if call.is_late else outcome
        if grant is not None and request is not None:
            self._tell(request, url, outcome)
        return outcome

    def _tell(self, request: requests.PreparedRequest, url: Url, outcome: Reply | TransportError) -> None:
        """Let the attempt under way see what it has sent to a target."""
        answer = outcome if isinstance(outcome, Reply) else outcome.message
        cookies = self.cookies(url.origin).values()
        saw(lambda: described(request, url, answer, marks=self._marks, cookies=cookies))

    def _send(self, request: requests.PreparedRequest, url: Url, call: Call, *, own: bool) -> requests.Response:
        access = self._access if own else _NO_ACCESS
        ca_file = access.ca_file if own else self._foreign_ca_file
        proxy = None if url.origin.is_loopback else access.proxy
        answer = self._connections.adapter.send(
            request,
            stream=True,
            timeout=call.remaining,
            verify=ca_file or True,
            cert=access.client_cert_file,
            proxies={"http": proxy, "https": proxy} if proxy else {},
        )
        if own:
            extract_cookies_to_jar(self._jar(url.origin), request, answer.raw)  # type: ignore[no-untyped-call]
            self._learn(self.cookies(url.origin).values())
        return answer

    def _prepared(self, method: str, url: Url, payload: Payload, *, own: bool) -> requests.PreparedRequest:
        headers = {
            "User-Agent": payload.user_agent or self._user_agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate",
            **payload.headers,
        }
        if own:
            headers |= self._own_headers()
        request = requests.Request(method, str(url), headers=headers, data=payload.body).prepare()
        cookies = self._cookie_header(request, url, payload.cookies) if own else ""
        if cookies:
            request.headers["Cookie"] = cookies
        return request

    def _own_headers(self) -> dict[str, str]:
        headers = {**self._access.headers}
        if self._access.basic_auth is not None:
            headers["Authorization"] = "Basic " + b64encode(":".join(self._access.basic_auth).encode()).decode()
        return headers | self._marks

    def _cookie_header(self, request: requests.PreparedRequest, url: Url, more: Mapping[str, str]) -> str:
        kept = get_cookie_header(self._jar(url.origin), request)  # type: ignore[no-untyped-call]
        given = {**self._access.cookies, **more}
        return "; ".join([*([kept] if kept else []), *(f"{name}={value}" for name, value in given.items())])

    def _jar(self, origin: Origin) -> RequestsCookieJar:
        # The library's jar goes by host; a cookie of one port must not reach another, which may be foreign.
        if origin not in self._jars:
            # Browsers take this machine for secure also without TLS, so a site under test may count on that.
            secure = ("https", "http") if origin.is_loopback else ("https",)
            policy = DefaultCookiePolicy(secure_protocols=secure)
            self._jars.setdefault(origin, RequestsCookieJar(policy))
        return self._jars[origin]


def _body(answer: requests.Response, limit: int) -> bytes | str:
    """Return the decoded body, or the kind of failure."""
    if answer.headers.get("Content-Encoding", "").strip().lower() not in _ENCODINGS:
        return "unreadable"
    chunks: list[bytes] = []
    length = 0
    # At most a chunk is decoded at a time, so a small body that unpacks to gigabytes ends at the limit.
    while chunk := answer.raw.read(_CHUNK, decode_content=True):
        length += len(chunk)
        if length > limit:
            return "too_large"
        chunks.append(chunk)
    return b"".join(chunks)


def _outcome_of(answer: requests.Response, body: bytes | str, method: str, url: Url) -> Reply | TransportError:
    """Return the answer with its body, or the error for why there is none."""
    if isinstance(body, str):
        return _error(body, method, url)
    return Reply(answer.status_code, url, answer.headers, body)


def _permit(method: str, url: Url, grant: Permission | None) -> None:
    if isinstance(grant, ProofFetch):
        if not grant.covers(method, url):
            raise ScopeDenied(
                f"{method} {url.without_query} does not read the proof of {grant.origin}",
                reason="grant_mismatch",
            )
    elif grant is not None:
        ensure(grant, url)


def _error(kind: str, method: str, url: Url, *, sent: bool = True) -> TransportError:
    return TransportError(f"{method} {url.without_query}: {KINDS[kind]}", kind=kind, sent=sent)


def _cookie_domain(origin: Origin) -> str:
    host = origin.host.strip("[]")
    return host if "." in host or ":" in host else f"{host}.local"
