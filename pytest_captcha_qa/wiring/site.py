"""A site under test, as a team's own code may ask about it and ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.form import Answer, FormSpec
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Payload, json_body, urlencoded

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


class HttpSession:
    """Requests to the environment's granted origins, with one cookie jar, the run's mark and no redirect followed."""

    def __init__(self, site: Site, client: HttpClient, deadline: Deadline | None = None) -> None:
        """Made by the fixture `captcha_http`, and for the functions that a form names, within their `deadline`."""
        self._site = site
        self._deadline = deadline
        self.client = client

    def get(self, path: str) -> Answer:
        """Return what the site answers to a GET of a path or URL on a granted origin."""
        __tracebackhide__ = True
        return self._request("GET", path, NO_PAYLOAD)

    def post(
        self, path: str, *, data: Mapping[str, str] | None = None, json: Mapping[str, object] | None = None
    ) -> Answer:
        """Return what the site answers to a POST of form fields or JSON."""
        __tracebackhide__ = True
        payload = json_body(json) if json is not None else urlencoded(list((data or {}).items()))
        return self._request("POST", path, payload)

    def _request(self, method: str, path: str, payload: Payload) -> Answer:
        url = self.url(path)
        grant = self._site.grants.grant(url)
        what = f"{method} {url.without_query}"
        deadline = self._deadline.part(_SECONDS, what=what) if self._deadline else Deadline(_SECONDS, what=what)
        return self.client.request(method, url, deadline=deadline, grant=grant, payload=payload).answer

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
