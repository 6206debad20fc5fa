"""What the fixtures give: the environment, an HTTP session on it, a solver, the case of one test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn
from uuid import uuid4

import pytest

from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.token import Token
from pytest_captcha_qa.plugin.boundary import call
from pytest_captcha_qa.plugin.case import Case, Situation
from pytest_captcha_qa.plugin.passive import WITHOUT_ENVIRONMENT
from pytest_captcha_qa.plugin.reports import CASE
from pytest_captcha_qa.plugin.session import CaptchaRun, run_of
from pytest_captcha_qa.transport import Payload
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.site import CaptchaEnv
from pytest_captcha_qa.wiring.site import HttpSession as SiteSession


class HttpSession(SiteSession):
    """The session of a test; what fails in it shows no secret on its way out."""

    def __init__(self, engine: Engine) -> None:
        """Made by the fixture `captcha_http`."""
        super().__init__(engine.site, engine.new_session())

    def _request(self, method: str, path: str, payload: Payload) -> Answer:
        __tracebackhide__ = True
        return call(super()._request, method, path, payload)


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
        attempt = Attempt(request, self._run.shared.of(self._run.engine.services()))
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
    return call(lambda: CaptchaEnv(run_in(config).engine.site))


def http(config: pytest.Config) -> HttpSession:
    """Return an HTTP session of its own."""
    __tracebackhide__ = True
    return call(lambda: HttpSession(run_in(config).engine))


def identity(config: pytest.Config) -> Identity:
    """Return a new synthetic person."""
    __tracebackhide__ = True
    return call(lambda: run_in(config).engine.new_identity())


def solver(config: pytest.Config) -> Solver:
    """Return the session's solver."""
    return Solver(run_in(config))


def case(config: pytest.Config, item: pytest.Item, situation: Situation, session: HttpSession) -> Case:
    """Return the case of one test, known to its reports."""
    __tracebackhide__ = True
    run = run_in(config)

    def build() -> Case:
        _check_overrides(situation, session)
        _check_domain(situation, run.environment.identity_domain)
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


def _check_domain(situation: Situation, sink: str | None) -> None:
    if not situation.identity.belongs_to(sink):
        raise ConfigError(
            f"the identity that captcha_identity gives {situation.nodeid} has an address on a domain where real people "
            "may read it: use a reserved one, such as example.com, or your own sink, [env.NAME.identity] domain"
        )


def run_in(config: pytest.Config) -> CaptchaRun:
    """Return the session's run; without an environment the test is skipped."""
    return run_of(config) or _skipped()


def _skipped() -> NoReturn:
    pytest.skip(WITHOUT_ENVIRONMENT)
