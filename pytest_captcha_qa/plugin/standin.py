"""What the fixture `captcha_standin` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.token import Token
from pytest_captcha_qa.plugin.boundary import call
from pytest_captcha_qa.plugin.case import FormPage
from pytest_captcha_qa.plugin.env import run_in
from pytest_captcha_qa.wiring.standin import ScriptedVendor


class StandInControl:
    """Has the vendor's stand-in answer about a token as a test says, and tells who asked.

    An outcome's names are those of docs/sandbox.md: `score`, `action`, `hostname`, `code`, `status`, `delay`, `body`,
    `certificate`, `values`, `without`; `age`: seconds the token is older than new.
    """

    def __init__(self, vendor: ScriptedVendor) -> None:
        """Made by the fixture `captcha_standin`."""
        self._vendor = vendor

    def token(self, page: FormPage, *, age: float = 0.0, **outcome: Any) -> str:
        """Return a token for the opened page, to be submitted with `expect="refuse"`."""
        __tracebackhide__ = True
        if not isinstance(page, FormPage):
            raise ConfigError(f"captcha_standin.token() takes a page of captcha_form(...), not {type(page).__name__}")
        return call(self._vendor.token, page.challenge, outcome, age=age)

    def script(self, token: Token, *, age: float = 0.0, **outcome: Any) -> None:
        """Say what is answered about an unspent token of `captcha_token(...)`; for accounts of a stand-in."""
        __tracebackhide__ = True
        if not isinstance(token, Token):
            raise ConfigError(
                f"captcha_standin.script() takes a token of captcha_token(...), not {type(token).__name__}"
            )
        call(self._vendor.script, token, outcome, age=age)

    def calls(self, after: int = 0) -> list[Mapping[str, Any]]:
        """Return the log after an entry's number, in order: calls about tokens of this process, and all marks."""
        __tracebackhide__ = True
        return call(self._vendor.calls, after)

    def mark(self, text: str) -> int:
        """Put a mark into the log, such as "row written", and return the number of its entry."""
        __tracebackhide__ = True
        return call(self._vendor.mark, text)

    def __repr__(self) -> str:
        return "<captcha_standin>"


def vendor(config: pytest.Config) -> ScriptedVendor:
    """Return the vendor of the environment under test: its account's stand-in, or the one of the demo's sandbox."""
    __tracebackhide__ = True
    run = run_in(config)

    def made() -> ScriptedVendor:
        engine = run.engine  # which starts the demo's sandbox
        return engine.vendor(run.stand_in)

    return call(made)
