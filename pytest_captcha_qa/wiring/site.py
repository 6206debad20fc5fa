"""A site under test, as a team's own code may ask about it and ask it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.submits import header_name
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.forms.sending import origin_headers
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Payload, json_body, urlencoded

Data = Mapping[str, str] | None
Json = Mapping[str, object] | None
Headers = Mapping[str, str] | None

_SECONDS = 30.0


@dataclass(frozen=True)
class Site:
    """One environment in one run: what it is, and who grants requests to it."""

    environment: EnvironmentConfig
    grants: GrantSource
    run_id: str
    release: str | None = None


class CaptchaEnv:
    """The environment under test, as a test or a function of the team may ask about it."""

    def __init__(self, site: Site) -> None:
        """Made by the fixture `captcha_env`, and for the functions that a form names."""
        environment = site.environment
        self.name = environment.name
        self.kind = str(environment.kind)
        self.origin = str(environment.base_url.origin)
        self.forms: Mapping[str, FormSpec] = environment.forms
        self.release = site.release
        self.key_mode = str(environment.account.key_mode)
        self.run_id = site.run_id

    def __repr__(self) -> str:
        return f"<CaptchaEnv {self.name} ({self.kind}) at {self.origin}>"


class MaskedCookies(Mapping[str, str]):
    """Cookies by name, whose values do not show in a repr."""

    def __init__(self, cookies: Mapping[str, str]) -> None:
        self._cookies = dict(cookies)

    def __getitem__(self, name: str) -> str:
        return self._cookies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cookies)

    def __len__(self) -> int:
        return len(self._cookies)

    def __repr__(self) -> str:
        return f"<cookies {', '.join(sorted(self._cookies)) or 'none'}; values masked>"


class HttpSession:
    """Requests to the environment's granted origins, with one cookie jar, the run's mark and no redirect followed.

    `headers` of a request go beside those of the client, which cannot be replaced. What changes something is sent with
    the Referer and Origin that a browser sends from the page that was read last.
    """

    def __init__(self, site: Site, client: HttpClient, deadline: Deadline | None = None) -> None:
        """Made by the fixture `captcha_http`, and for the functions that a form names, within their `deadline`."""
        self._site = site
        self._deadline = deadline
        self._page = site.environment.base_url
        self.client = client

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies of the environment's own origin by name; a repr masks them."""
        return MaskedCookies(self.client.cookies(self._site.environment.base_url.origin))

    def get(self, path: str, *, headers: Headers = None) -> Answer:
        """Return what the site answers to a GET of a path or URL on a granted origin."""
        __tracebackhide__ = True
        return self._request("GET", path, _with_headers(NO_PAYLOAD, headers))

    def post(self, path: str, *, data: Data = None, json: Json = None, headers: Headers = None) -> Answer:
        """Return what the site answers to a POST of form fields or JSON."""
        __tracebackhide__ = True
        return self._request("POST", path, _with_headers(_body(data or {}, json), headers))

    def put(self, path: str, *, data: Data = None, json: Json = None, headers: Headers = None) -> Answer:
        """Return what the site answers to a PUT of form fields or JSON."""
        __tracebackhide__ = True
        return self._request("PUT", path, _with_headers(_body(data or {}, json), headers))

    def patch(self, path: str, *, data: Data = None, json: Json = None, headers: Headers = None) -> Answer:
        """Return what the site answers to a PATCH of form fields or JSON."""
        __tracebackhide__ = True
        return self._request("PATCH", path, _with_headers(_body(data or {}, json), headers))

    def delete(self, path: str, *, json: Json = None, headers: Headers = None) -> Answer:
        """Return what the site answers to a DELETE, with JSON if it is given."""
        __tracebackhide__ = True
        return self._request("DELETE", path, _with_headers(_body(None, json), headers))

    def _request(self, method: str, path: str, payload: Payload) -> Answer:
        url = self.url(path)
        grant = self._site.grants.grant(url)
        what = f"{method} {url.without_query}"
        deadline = self._deadline.part(_SECONDS, what=what) if self._deadline else Deadline(_SECONDS, what=what)
        if method != "GET":
            payload = payload.having({**origin_headers(method, self._page, url), **payload.headers})
        answer = self.client.request(method, url, deadline=deadline, grant=grant, payload=payload).answer
        self._page = url if method == "GET" else self._page
        return answer

    def url(self, path: str) -> Url:
        """Return the address of a path on the site.

        Raises:
            ConfigError: it cannot mean one thing only.
        """
        try:
            return self._site.environment.base_url.join(path)
        except (UrlRefused, ValueError) as refused:
            raise ConfigError(f"the HTTP session cannot ask for this address: {refused}") from None

    def __repr__(self) -> str:
        return f"<HttpSession of {self._site.environment.name}>"


def _body(data: Data, json: Json) -> Payload:
    if json is not None:
        return json_body(json)
    return NO_PAYLOAD if data is None else urlencoded(list(data.items()))


def _with_headers(payload: Payload, headers: Headers) -> Payload:
    for name in headers or {}:
        if name.lower() != "authorization":
            _check_header(name)
    return payload.having(headers or {})


def _check_header(name: str) -> None:
    try:
        header_name(name)
    except ValueError as refused:
        raise ConfigError(f"the HTTP session cannot send the header {name!r}: it {refused}") from None
