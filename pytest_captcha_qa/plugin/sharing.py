"""What `captcha_session` gives: the session of one login for all tests of a run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_captcha_qa.errors import CaptchaQAError, DeadlineExceeded, Stopped, StoreError
from pytest_captcha_qa.plugin.boundary import call
from pytest_captcha_qa.plugin.env import HttpSession, run_in
from pytest_captcha_qa.plugin.session import CaptchaRun
from pytest_captcha_qa.transport import KeptCookie
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.sharing import shared_cookies

# What kept one caller from the session and need not keep the next one.
_PASSING = (DeadlineExceeded, Stopped, StoreError)


class LoginSession:
    """A login that was made once for the run; what it left is kept in the store only."""

    def __init__(self, engine: Engine, form: str, kept: tuple[KeptCookie, ...]) -> None:
        """Made by the fixture `captcha_session`."""
        self._engine = engine
        self._kept = kept
        self.form = form

    @property
    def http(self) -> HttpSession:
        """An HTTP session that is logged in; each is one of its own, so that tests cannot disturb each other."""
        session = HttpSession(self._engine)
        session.client.take_over(self._kept)
        return session

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies of the environment's own origin by name; a repr masks them."""
        return self.http.cookies

    def storage_state(self) -> dict[str, Any]:
        """Return what Playwright's `browser.new_context(storage_state=...)` takes; it is secret."""
        return {"cookies": [cookie.for_browser() for cookie in self._kept], "origins": []}

    def __repr__(self) -> str:
        return f"<LoginSession of form {self.form!r}>"


class Sessions:
    """`captcha_session(form, **fields)` in one process; thread-safe."""

    def __init__(self, run: CaptchaRun) -> None:
        """Made by the fixture `captcha_session`."""
        self._run = run
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], LoginSession | CaptchaQAError] = {}
        self._lock = threading.Lock()

    def __call__(self, form: str, **fields: str) -> LoginSession:
        """Return the session of the run's one login on the form; `fields` override the configured ones.

        Other fields are another login. A login that failed fails every caller with the same error.
        """
        __tracebackhide__ = True
        return call(self._session, form, fields)

    def _session(self, form: str, fields: Mapping[str, str]) -> LoginSession:
        person = (form, tuple(sorted(fields.items())))
        with self._lock:
            if person not in self._known:
                self._known[person] = self._asked(form, fields)
            known = self._known[person]
        if isinstance(known, CaptchaQAError):
            raise known.with_traceback(None)
        return known

    def _asked(self, form: str, fields: Mapping[str, str]) -> LoginSession | CaptchaQAError:
        engine = self._run.engine
        try:
            return LoginSession(engine, form, shared_cookies(engine, form, fields, self._run.shared.of))
        except _PASSING:
            raise
        except CaptchaQAError as error:
            return error

    def __repr__(self) -> str:
        return "<captcha_session>"


def sessions(config: pytest.Config) -> Sessions:
    """Return what the fixture gives."""
    return Sessions(run_in(config))
