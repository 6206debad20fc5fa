"""A solving service over HTTP; every method is one exchange, the engine decides about another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pytest_captcha_qa.engine.ports import PollTimes, ThreadsInfo
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    MissingSecret,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    ScopeDenied,
    TransportError,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import Reaction
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider import wire
from pytest_captcha_qa.provider.dialects import DIALECTS, ERRORS, POLL_ERRORS, Dialect, Mark, Method
from pytest_captcha_qa.scope import ScopeGrant, TokenSource, ensure
from pytest_captcha_qa.transport import ANSWER_LIMIT, HttpClient, Payload, Reply, urlencoded

_POLL_FLOOR = 0.02  # seconds; a scaled sandbox must not be polled in a busy loop
_UNKNOWN_PAUSE = 5.0  # seconds before a request is repeated whose answer nobody understood
_LONGEST_RETRY_AFTER = 3600.0
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} (?:GMT|\+0000)\Z")
_Errors = Mapping[Reaction, type[CaptchaQAError] | None]


class HttpProvider:
    """One service under one key. Its repr and its errors never show the key."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        key: str,
        client: HttpClient,
        base_url: Url | None = None,
        time_scale: float = 1.0,
    ) -> None:
        """Keep the account; `base_url` is needed where the dialect has no fixed address.

        `time_scale`: factor on all waiting, for a sandbox that solves faster.

        Raises:
            MissingSecret: the key is empty.
            ConfigError: the key has the wrong length, or there is no address.
            ScopeDenied: a sandbox that is not on this machine.
        """
        _check_key(dialect, key)
        self._dialect = dialect
        self._key = key
        self._client = client
        self._base = _address(dialect, base_url)
        self._scale = time_scale

    def __repr__(self) -> str:
        return f"<HttpProvider {self._dialect.name} at {self._base.without_query}, key ***>"

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return when to ask for the result, scaled."""
        first = self._method(challenge.type).first
        return PollTimes(self._scaled(first), self._scaled(self._dialect.interval))

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if the service solves the type and the challenge has all it needs.

        Raises:
            ConfigError: it does not; the message names the providers that do.
        """
        lacking = wire.missing(self._method(challenge.type), challenge)
        if lacking:
            raise ConfigError(
                f"{self._dialect.name} needs {' and '.join(lacking)} for {challenge.type}, "
                f"and {challenge.page.without_query} shows none"
            )

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Send the challenge and return the task id.

        Raises:
            ScopeDenied: the grant does not allow it; nothing was sent.
            ProviderError, KeyRejected, BalanceExhausted: it was not accepted, or nobody knows.
        """
        self.supports(challenge)
        self._permit(challenge, grant)
        pairs = wire.submit_pairs(self._method(challenge.type), challenge)
        reply = self._post("in.php", pairs, deadline)
        answer = self._good(reply, ERRORS, "the submit")
        task_id = wire.read_task_id(answer) if answer is not None else None
        if task_id is None:
            raise self._unavailable("the submit", "an answer without a task id")
        return task_id

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        """Return the solution, or None while it is not ready.

        Raises:
            ProviderUnavailable: no usable answer; the task is as it was, ask again.
            ProviderError: the service gave up, does not know the task, or sent an unmarked token as sandbox.
            KeyRejected, BalanceExhausted: the account is at its end.
        """
        method = self._method(challenge.type)
        reply = self._post("res.php", [("action", "get"), ("id", task_id), ("json", "1")], deadline)
        answer = self._good(reply, POLL_ERRORS, "the poll")
        if answer is None:
            return None
        solution = wire.read_solution(answer, method)
        if solution is None:
            raise self._unavailable("the poll", "an answer without a solution")
        if not _is_marked(solution, method.mark):
            raise ProviderError(f"{self._dialect.name} sent a token without the sandbox's mark; it is not used")
        return solution

    def balance(self, deadline: Deadline) -> float | None:
        """Return the account's balance in the service's own unit, None where it has none.

        Raises:
            ProviderError, KeyRejected, BalanceExhausted: there was no such answer.
        """
        if not self._dialect.has_balance:
            return None
        reply = self._post("res.php", [("action", "getbalance"), ("json", "1")], deadline)
        # As plain text the balance is a bare number, without the `OK|` of every other result.
        balance = wire.read_decimal(reply.text) if reply.status == 200 else None
        if balance is None:
            answer = self._good(reply, ERRORS, "the balance query")
            balance = wire.read_decimal(answer.value) if answer is not None else None
        if balance is None:
            raise self._unavailable("the balance query", "an answer without a balance")
        return balance

    def threads(self, deadline: Deadline) -> ThreadsInfo | None:
        """Return slots and their use, None where the service does not say.

        Raises:
            ProviderError, KeyRejected, BalanceExhausted: there was no such answer.
        """
        if not self._dialect.has_threads:
            return None
        reply = self._post("res.php", [("action", "threadsinfo"), ("json", "1")], deadline)
        answer = self._good(reply, ERRORS, "the threads query")
        counts = wire.read_threads(answer) if answer is not None else None
        if counts is None:
            raise self._unavailable("the threads query", "an answer without threads")
        return ThreadsInfo(*counts)

    def _method(self, kind: CaptchaType) -> Method:
        method = self._dialect.methods[kind]
        if method is None:
            others = [name for name, dialect in DIALECTS.items() if kind in dialect.types]
            known = f"use an account of {' or '.join(others)}" if others else "no provider here does"
            raise ConfigError(f"{self._dialect.name} does not solve {kind}: {known}")
        return method

    def _permit(self, challenge: Challenge, grant: ScopeGrant) -> None:
        ensure(grant, challenge.page)
        if self._dialect.source is TokenSource.SANDBOX and not challenge.page.origin.is_loopback:
            raise ScopeDenied(
                f"the sandbox solves for this machine only, not for {challenge.page.origin}",
                reason="sandbox_not_loopback",
            )
        if grant.source is not self._dialect.source:
            raise ScopeDenied(
                f"the grant for {grant.origin} is for {grant.source} tokens, {self._dialect.name} makes "
                f"{self._dialect.source} ones",
                reason="grant_other_source",
            )

    def _post(self, path: str, pairs: wire.Pairs, deadline: Deadline) -> Reply:
        payload, url = self._payload(pairs), self._base.join(path)
        try:
            return self._client.request("POST", url, deadline=deadline, grant=None, limit=ANSWER_LIMIT, payload=payload)
        except TransportError as error:
            failure = error
        raise ProviderUnavailable(f"{self._dialect.name}: {failure.message}", sent=failure.sent)

    def _payload(self, pairs: wire.Pairs) -> Payload:
        # In the body, not the URL, so that the key is in no access log.
        return urlencoded([("key", self._key), *pairs])

    def _good(self, reply: Reply, errors: _Errors, what: str) -> wire.Good | None:
        """Return the result of an answer, None for "not ready", or raise what its code stands for."""
        answer = wire.read_answer(reply.text, self._dialect.codes)
        if isinstance(answer, wire.Refusal):
            error = self._refusal(answer.code, errors, what)
            if error is None:
                return None
            raise error
        if reply.status != 200:
            raise self._bad_status(reply, errors, what)
        if isinstance(answer, wire.Noise):
            raise self._unavailable(what, answer.what)
        return answer

    def _refusal(self, code: str, errors: _Errors, what: str) -> CaptchaQAError | None:
        known = self._dialect.codes[code]
        error = errors[known.reaction]
        if error is None:
            return None
        pause = None if known.pause is None else known.pause * self._scale
        return error(f"{self._dialect.name} answered {what} with {code}: {known.meaning}", retry_after=pause)

    def _bad_status(self, reply: Reply, errors: _Errors, what: str) -> CaptchaQAError:
        pause = _retry_after(reply.headers.get("Retry-After", ""))
        busy = reply.status == 429 and errors is not POLL_ERRORS
        error = ProviderBusy if busy else ProviderUnavailable
        return error(f"{self._dialect.name} answered {what} with HTTP {reply.status}", retry_after=pause)

    def _unavailable(self, what: str, found: str) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self._dialect.name} answered {what} with {found}", retry_after=_UNKNOWN_PAUSE * self._scale
        )

    def _scaled(self, seconds: float) -> float:
        return max(_POLL_FLOOR, seconds * self._scale)


def _check_key(dialect: Dialect, key: str) -> None:
    if not key:
        raise MissingSecret(f"the account's key for {dialect.name} is empty")
    if dialect.key_length is not None and len(key) != dialect.key_length:
        raise ConfigError(
            f"the account's key has {len(key)} characters, a key of {dialect.name} has {dialect.key_length}"
        )


def _address(dialect: Dialect, base_url: Url | None) -> Url:
    if base_url is None and dialect.base_url is None:
        raise ConfigError(f"{dialect.name} has no fixed address: set the account's url_env")
    base = base_url or Url.parse(str(dialect.base_url))
    if dialect.source is TokenSource.SANDBOX and not base.origin.is_loopback:
        raise ScopeDenied(
            f"a sandbox at {base.origin} is not on this machine; start one with `captcha-qa sandbox`",
            reason="sandbox_not_loopback",
        )
    return base


def _is_marked(solution: Solution, mark: Mark | None) -> bool:
    return mark is None or solution.parts[mark.part].startswith(mark.head)


def _retry_after(text: str) -> float | None:
    """Return the seconds a `Retry-After` header asks for, as a number or a date; None if it says neither."""
    text = text.strip()
    seconds = wire.read_decimal(text)
    if seconds is None:
        moment = _moment(text)
        if moment is None:
            return None
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER)


def _moment(text: str) -> datetime | None:
    """Return the moment of a date as RFC 9110 writes it; the shape keeps every part within what a date can hold."""
    if not _HTTP_DATE.match(text):
        return None
    try:
        return parsedate_to_datetime(text)
    except ValueError:  # such as the 31st of February
        return None
