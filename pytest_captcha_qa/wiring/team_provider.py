"""A provider that an extension of the team makes, behind the scope check.

Its code sees no challenge before a grant covers the challenge's page. It always counts as a live provider: that the
sandbox and test keys need no proof on loopback (R0.3) rests on adapters of ours, not on what a provider says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NoReturn

from pytest_captcha_qa.config.accounts import AccountConfig
from pytest_captcha_qa.config.disclosure import TOLD
from pytest_captcha_qa.engine.ports import GrantSource, PollTimes, Provider, ThreadsInfo
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    ConfigError,
    DeadlineExceeded,
    KeyRejected,
    ProviderError,
    ProviderUnavailable,
    ScopeDenied,
    Stopped,
)
from pytest_captcha_qa.model.captcha import is_test_sitekey
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.redact import Learn
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.provider.account import of_test_key
from pytest_captcha_qa.provider.marks import would_leave
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.scope import ScopeGrant, TokenSource, ensure
from pytest_captcha_qa.wiring.extensions import PROVIDER, Extension, unmade
from pytest_captcha_qa.wiring.functions import TeamFunction

METHODS = ("polling", "supports", "submit", "poll", "balance", "threads")
SHORTEST_PAUSE = 0.1
"""Least seconds between two polls, whatever the provider says."""

_TASK_ID = re.compile(r"[A-Za-z0-9._:-]{1,80}\Z")
_LONGEST_ASKED = 1e9  # far beyond what any pause is cut to; no infinity
_MAY_RAISE = (ProviderError, KeyRejected, BalanceExhausted, DeadlineExceeded, Stopped)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What the account says, for who makes its provider: what it is called, its key, its address."""

    account: str
    key: str | None = field(repr=False)
    url: str | None


def team_provider(
    account: AccountConfig, extensions: Sequence[Extension], grants: GrantSource, learn: Learn, clean: Clean | None
) -> Provider:
    """Return the provider that the first of the extensions makes which knows its name.

    Raises:
        ConfigError: none does, or what it made is no provider of live tokens.
        MissingSecret: the account's key or address is empty.
    """
    key, url = account.key.text() if account.key is not None else None, account.url
    settings = ProviderSettings(account.name, key, str(url) if url is not None else None)
    for extension in extensions:
        make = extension.functions.get(PROVIDER)
        made = make(account.provider, settings) if make is not None else None
        if make is not None and made is not None:
            return TeamProvider(account.provider, made, make, grants, learn, clean)
    raise ConfigError(unmade(account, [one.name for one in extensions if PROVIDER in one.functions]))


class TeamProvider:
    """Implements Provider over an object of the team; no text of its errors goes on, only their kind."""

    def __init__(
        self,
        name: str,
        made: object,
        make: TeamFunction,
        grants: GrantSource,
        learn: Learn,
        clean: Clean | None,
    ) -> None:
        """Keep what `make` has made.

        Raises:
            ConfigError: it lacks a method of `engine.ports.Provider`, or says that its tokens are not live.
        """
        self._name = f"provider {name!r} of {make.name.rpartition(':')[0]}"
        self._key = make.key
        self._made = made
        self._grants = grants
        self._learn = learn
        self._clean = clean
        self._admitted: set[Origin] = set()
        lacking = [method for method in METHODS if not callable(getattr(made, method, None))]
        if lacking:
            raise ConfigError(f"{self._key}: the {self._name} is none: it lacks {', '.join(lacking)}")
        if getattr(made, "source", TokenSource.LIVE) != TokenSource.LIVE:
            raise ConfigError(
                f"{self._key}: the {self._name} says that its tokens are not live; those of an extension always count "
                "as live, so that their targets need a proof on this machine too (R0.3): leave its `source` out"
            )

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return when to ask for the result, not more often than ten times a second."""
        times = self._call("polling", self._told(challenge))
        if not isinstance(times, PollTimes):
            self._refuse("polling", "PollTimes")
        return PollTimes(max(SHORTEST_PAUSE, times.first), max(SHORTEST_PAUSE, times.interval))

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if it takes the challenge.

        Raises:
            ScopeDenied: no grant covers the challenge's page.
            ConfigError: it does not, or the page shows a test key, with which any token would pass for a real one.
        """
        told = self._told(challenge)
        if is_test_sitekey(challenge.sitekey):
            raise ConfigError(of_test_key(challenge, f"the {self._name}"))
        self._call("supports", told)

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Hand over the challenge and return the task id.

        Raises:
            ScopeDenied: the grant does not allow it; the team's code was not called.
            ProviderError, KeyRejected, BalanceExhausted: it was not accepted, or nobody knows.
        """
        self._admit(grant, challenge.page)
        task_id = self._call("submit", self._told(challenge), grant, deadline, otherwise=self._perhaps_sent)
        if not isinstance(task_id, str) or not _TASK_ID.match(task_id) or self._holds_a_secret(task_id):
            raise ProviderUnavailable(f"the {self._name} answered the submit without a usable task id")
        return str.__str__(task_id)

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        """Return the solution, or None while it is not ready.

        Raises:
            ProviderError, KeyRejected, BalanceExhausted, ConfigError: why there will be none.
        """
        solution = self._call("poll", self._told(challenge), task_id, deadline)
        if solution is None:
            return None
        if not isinstance(solution, Solution) or not _is_whole(solution):
            self._refuse("poll", "a Solution of texts, or None while there is none")
        if would_leave(solution, challenge):
            raise ProviderError(f"the {self._name} sent a token of the sandbox, which is for this machine only")
        self._learn([*solution.parts.values(), *solution.cookies.values()])
        return solution

    def balance(self, deadline: Deadline) -> float | None:
        """Return the account's balance, None where it has none."""
        balance = self._call("balance", deadline)
        if balance is not None and (not isinstance(balance, int | float) or isinstance(balance, bool)):
            self._refuse("balance", "a number or None")
        return None if balance is None else float(balance)

    def threads(self, deadline: Deadline) -> ThreadsInfo | None:
        """Return slots and their use, None where the service does not say."""
        threads = self._call("threads", deadline)
        if threads is not None and not isinstance(threads, ThreadsInfo):
            self._refuse("threads", "ThreadsInfo or None")
        return threads

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Tell the team's object what the backend made of a token, if it has a `report`; return whether it has."""
        if not callable(getattr(self._made, "report", None)):
            return False
        self._call("report", task_id, good, deadline)
        return True

    def _told(self, challenge: Challenge) -> Challenge:
        """Return what the team's code may see of a challenge, once a grant covers its page: what `check` says is told.

        An origin that was granted stays admitted, so that a proof that lapses meanwhile loses no paid task.
        """
        page = challenge.page
        if page.origin not in self._admitted:
            self._admit(self._grants.grant(page), page)
        told = TOLD[challenge.type]
        return Challenge(
            challenge.type,
            challenge.sitekey,
            Url(page.origin, page.path, ""),
            action=challenge.action if "action" in told else None,
            cdata=challenge.cdata if "cdata" in told else None,
            min_score=challenge.min_score if "min_score" in told else None,
            data=MappingProxyType(dict(challenge.data)),
        )

    def _admit(self, grant: ScopeGrant, page: Url) -> None:
        ensure(grant, page)
        if grant.source is not TokenSource.LIVE:
            raise ScopeDenied(
                f"the grant for {grant.origin} is for {grant.source} tokens, the {self._name} makes live ones",
                reason="grant_other_source",
            )
        self._admitted.add(page.origin)

    def _call(
        self, method: str, *arguments: object, otherwise: Callable[[CaptchaQAError, str], CaptchaQAError] | None = None
    ) -> object:
        """Return what a method of the team's object returns; `otherwise` makes the error for what is none of ours."""
        team = TeamFunction(self._key, f"{self._name}: {method}", getattr(self._made, method), ConfigError)
        try:
            return team(*arguments)
        except _MAY_RAISE as error:
            said = f"the {self._name} ended {method} with {type(error).__name__}"
            error.message, error.args = said, (said,)
            error.retry_after = _seconds_or_none(error.retry_after)
            raise error.with_traceback(None) from None
        except CaptchaQAError as error:
            raise (otherwise or self._broken)(error, method) from None

    def _broken(self, error: CaptchaQAError, method: str) -> CaptchaQAError:
        """Return the error for a fault of the network or of the team's code."""
        if isinstance(error.__cause__, OSError):
            return self._perhaps_sent(error, method)
        if error.__cause__ is not None:
            return ConfigError(error.message)
        return ConfigError(f"{self._key}: the {self._name} ended {method} with {type(error).__name__}")

    def _perhaps_sent(self, error: CaptchaQAError, method: str) -> CaptchaQAError:
        """Return the error after which nobody knows whether the service has heard of it, so that it counts as paid."""
        kind = type(error.__cause__ or error).__name__
        return ProviderUnavailable(f"the {self._name} failed with {kind} in {method}")

    def _refuse(self, method: str, wanted: str) -> NoReturn:
        raise ConfigError(f"{self._key}: the {self._name} returned something from {method} that is not {wanted}")

    def _holds_a_secret(self, text: str) -> bool:
        return self._clean is not None and self._clean(text) != text


def _seconds_or_none(asked: object) -> float | None:
    """Return the seconds that the team's code asks for, None for what are none."""
    if isinstance(asked, int | float) and 0 <= asked <= _LONGEST_ASKED:
        return float(asked)
    return None


def _is_whole(solution: Solution) -> bool:
    """Return whether a solution can be sent: texts only, and nothing in a header that would end it."""
    headers = [*solution.cookies, *solution.cookies.values(), solution.user_agent or ""]
    texts = [*solution.parts, *solution.parts.values(), *headers]
    sendable = all(isinstance(text, str) for text in texts) and any(solution.parts.values())
    return sendable and all(text.isascii() and (text.isprintable()) for text in headers)
