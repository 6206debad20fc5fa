"""The stand-in of an environment, as tests and probes script it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.model.token import TOKEN, Solution, Token
from pytest_captcha_qa.provider.standin import StandIn


class ScriptedVendor:
    """What tests and probes do with a stand-in: have it answer about a token as they say, and see who asked.

    An outcome's names are those of docs/sandbox.md: `score`, `action`, `hostname`, `code`, `status`, `delay`, `body`,
    `certificate`, `values`, `without`. Everything raises ProviderError or KeyRejected when the stand-in gives none.
    """

    def __init__(self, stand_in: StandIn, grants: GrantSource, learn: Learn = forget) -> None:
        """Keep the client, and who decides whether its tokens may be sent to a page; `learn` is told them."""
        self._stand_in = stand_in
        self._grants = grants
        self._learn = learn

    def __repr__(self) -> str:
        return f"<ScriptedVendor over {self._stand_in!r}>"

    def solution(self, challenge: Challenge, outcome: Mapping[str, Any], *, age: float = 0.0) -> Solution:
        """Return a new token for an opened page, about which the vendor will answer so; `age`: seconds it is old.

        Raises:
            ScopeDenied: the page's grant is not for tokens of a stand-in.
            ConfigError: its type has no vendor.
        """
        grant = self._grants.grant(challenge.page)
        solution = self._stand_in.issue(challenge, grant, age=age, outcome=outcome).solution
        self._learn(solution.secrets)
        return solution

    def token(self, challenge: Challenge, outcome: Mapping[str, Any], *, age: float = 0.0) -> str:
        """Return the text of such a token.

        Raises:
            ConfigError: its type has several values, or no vendor.
            ScopeDenied: the page's grant is not for tokens of a stand-in.
        """
        solution = self.solution(challenge, outcome, age=age)
        if TOKEN not in solution.parts:
            raise ConfigError(f"a solution of {challenge.type} is no single text; script one of captcha_token(...)")
        return solution.text

    def script(self, token: Token, outcome: Mapping[str, Any], *, age: float = 0.0) -> None:
        """Say what the vendor will answer about a token of this run that is not spent yet.

        Raises:
            ConfigError: the token was not made by a stand-in.
        """
        if token.task_id is None:
            raise ConfigError("this token has no task: only one that a stand-in has made can be scripted")
        self._stand_in.script_by_id(token.task_id, outcome, age=age)

    def calls(self, after: int = 0, *, own: bool = True) -> list[Mapping[str, Any]]:
        """Return the log after an entry's number: the calls about this session's tokens, or all, and all marks."""
        return self._stand_in.calls(after, own=own)

    def mark(self, text: str) -> int:
        """Put a mark into the log, and return the number of its entry."""
        return self._stand_in.mark(text)

    def close(self) -> None:
        """End the session: its tokens and scripts are gone."""
        self._stand_in.end()
