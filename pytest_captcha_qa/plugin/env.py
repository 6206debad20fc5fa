"""What the fixtures give: the environment, an HTTP session on it, a solver, the case of one test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn
from uuid import uuid4

import pytest

from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.form import Answer, FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.token import Token
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.plugin.boundary import call
from pytest_captcha_qa.plugin.case import Case, Situation
from pytest_captcha_qa.plugin.passive import WITHOUT_ENVIRONMENT
from pytest_captcha_qa.plugin.reports import CASE
from pytest_captcha_qa.plugin.session import CaptchaRun, run_of
from pytest_captcha_qa.transport import NO_PAYLOAD, HttpClient, Payload, json_body, urlencoded
from pytest_captcha_qa.wiring.engine import Engine

_SECONDS = 30.0


class CaptchaEnv:
    """The environment under test, as a test may ask about it."""

    def __init__(self, engine: Engine) -> None:
        """Made by the fixture `captcha_env`."""
        environment = engine.environment
        self.name = environment.name
        self.kind = str(environment.kind)
        self.origin = str(environment.base_url.origin)
        self.forms: Mapping[str, FormSpec] = environment.forms
        self.release = engine.release
        self.key_mode = str(environment.account.key_mode)
        self.run_id = engine.setup.run_id

    def __repr__(self) -> str:
        return f"<CaptchaEnv {self.name} ({self.kind}) at {self.origin}>"


class HttpSession:
    """Requests to the environment's granted origins, with one cookie jar, the run's mark and no redirect followed."""

    def __init__(self, engine: Engine) -> None:
        """Made by the fixture `captcha_http`."""
        self._engine = engine
        self.client: HttpClient = engine.new_session()

    def get(self, path: str) -> Answer:
        """Return what the site answers to a GET of a path or URL on a granted origin."""
        __tracebackhide__ = True
        return call(self._request, "GET", path, NO_PAYLOAD)

    def post(
        self, path: str, *, data: Mapping[str, str] | None = None, json: Mapping[str, object] | None = None
    ) -> Answer:
        """Return what the site answers to a POST of form fields or JSON."""
        __tracebackhide__ = True
        payload = json_body(json) if json is not None else urlencoded(list((data or {}).items()))
        return call(self._request, "POST", path, payload)

    def _request(self, method: str, path: str, payload: Payload) -> Answer:
        url = self._url(path)
        grant = self._engine.grants.grant(url)
        deadline = Deadline(_SECONDS, what=f"{method} {url.without_query}")
        reply = self.client.request(method, url, deadline=deadline, grant=grant, payload=payload)
        return reply.answer

    def _url(self, path: str) -> Url:
        try:
            return self._engine.environment.base_url.join(path)
        except UrlRefused as refused:
            raise ConfigError(f"captcha_http cannot ask for this address: {refused}") from None

    def __repr__(self) -> str:
        return f"<HttpSession of {self._engine.environment.name}>"


class Solver:
    """Obtains tokens outside of a single test; what it started is recorded when the session ends."""

    def __init__(self, run: CaptchaRun) -> None:
        """Made by the fixture `captcha_solver`."""
        self._run = run
        self._attempts: list[Attempt] = []

    def solve(self, form: str, *, subject: str | None = None, timeout: float | None = None) -> Token:
        """Return a token of the form; callers that give the same subject share one. `timeout` in seconds."""
        __tracebackhide__ = True
        return call(self._solve, form, subject or uuid4().hex, timeout)

    def close(self) -> None:
        """Record what was obtained and not submitted through the harness."""
        for attempt in self._attempts:
            attempt.record()

    def _solve(self, form: str, subject: str, timeout: float | None) -> Token:
        request = AttemptRequest(form, subject, timeout=timeout)
        attempt = Attempt(request, self._run.engine.services())
        attempt.start()
        self._attempts.append(attempt)
        try:
            attempt.open()
            return attempt.obtain()
        except BaseException as error:
            attempt.record(error)
            raise


def environment(config: pytest.Config) -> CaptchaEnv:
    """Return the environment under test."""
    __tracebackhide__ = True
    return call(lambda: CaptchaEnv(_run(config).engine))


def http(config: pytest.Config) -> HttpSession:
    """Return an HTTP session of its own."""
    __tracebackhide__ = True
    return call(lambda: HttpSession(_run(config).engine))


def identity(config: pytest.Config) -> Identity:
    """Return a new synthetic person."""
    __tracebackhide__ = True
    return call(lambda: _run(config).engine.new_identity())


def solver(config: pytest.Config) -> Solver:
    """Return the session's solver."""
    return Solver(_run(config))


def case(config: pytest.Config, item: pytest.Item, situation: Situation, session: HttpSession) -> Case:
    """Return the case of one test, known to its reports."""
    __tracebackhide__ = True
    run = _run(config)

    def build() -> Case:
        _check_overrides(situation, session)
        return Case(run.engine.services(session=session.client), situation)

    item.stash[CASE] = made = call(build)
    return made


def _check_overrides(situation: Situation, session: object) -> None:
    overrides: tuple[tuple[str, object, type], ...] = (
        ("captcha_identity", situation.identity, Identity),
        ("captcha_form_args", situation.fields, Mapping),
        ("captcha_http", session, HttpSession),
    )
    for name, value, wanted in overrides:
        if not isinstance(value, wanted):
            raise ConfigError(
                f"the fixture {name} of {situation.nodeid} returns {type(value).__name__}, not {wanted.__name__}; "
                f"an override takes the built-in {name} as its argument and returns it, changed or not"
            )


def _run(config: pytest.Config) -> CaptchaRun:
    return run_of(config) or _skipped()


def _skipped() -> NoReturn:
    pytest.skip(WITHOUT_ENVIRONMENT)
