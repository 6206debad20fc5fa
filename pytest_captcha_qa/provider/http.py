"""A solving service over HTTP; every method is one exchange, the engine decides about another."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from pytest_captcha_qa.engine.ports import PollTimes, ThreadsInfo
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    ProviderError,
    ProviderNotRunning,
    ProviderUnavailable,
    RateLimited,
    ScopeDenied,
    TaskSilent,
    TransportError,
)
from pytest_captcha_qa.model.captcha import CaptchaType, is_test_sitekey
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.solver_proxy import SolverProxy
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider import wire
from pytest_captcha_qa.provider.account import address_of, check_key, check_proxy, of_test_key
from pytest_captcha_qa.provider.codes import ERRORS
from pytest_captcha_qa.provider.dialects import Dialect, Method, Report, unsolved
from pytest_captcha_qa.provider.marks import is_marked, would_leave
from pytest_captcha_qa.scope import ScopeGrant, TokenSource, ensure
from pytest_captcha_qa.transport import ANSWER_LIMIT, NO_PAYLOAD, HttpClient, Reply, urlencoded
from pytest_captcha_qa.transport.retry_after import seconds_to_wait

_POLL_FLOOR = 0.02  # seconds; a scaled sandbox must not be polled in a busy loop
_UNKNOWN_PAUSE = 5.0  # seconds before a request is repeated whose answer nobody understood
_SHORTEST_MASKED = 4  # characters; a shorter key is part of many words


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
        solver_proxy: SolverProxy | None = None,
    ) -> None:
        """Keep the account; `base_url` is needed where the dialect has no fixed address.

        `time_scale`: factor on all waiting, for a sandbox that solves faster; `solver_proxy`: through which the
        service should solve, where it can.

        Raises:
            MissingSecret: the key is empty.
            ConfigError: the key has the wrong length, there is no address, or the proxy is of a kind it does not take.
            ScopeDenied: a sandbox that is not on this machine.
        """
        check_key(dialect, key)
        check_proxy(dialect, solver_proxy)
        self._dialect = dialect
        self._key = key
        self._client = client
        self._base = address_of(dialect, base_url)
        self._scale = time_scale
        self._proxy = solver_proxy

    def __repr__(self) -> str:
        return f"<HttpProvider {self._dialect.name} at {self._base.without_query}, key ***>"

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return when to ask for the result, scaled."""
        first = self._method(challenge.type).first
        return PollTimes(self._scaled(first), self._scaled(self._dialect.interval))

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if the service solves the type and the challenge has all it needs.

        Raises:
            ConfigError: it does not; the message names the providers that do. Or the page shows a test key.
        """
        if is_test_sitekey(challenge.sitekey):
            raise ConfigError(of_test_key(challenge, self._dialect.name))
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
        pairs = wire.submit_pairs(self._method(challenge.type), challenge, self._proxy)
        answer = self._good(self._call("POST", "in.php", pairs, deadline), "the submit")
        task_id = wire.read_task_id(answer) if answer is not None else None
        if task_id is None or self._masked(task_id) != task_id:  # one that repeats the key would stand in records
            raise self._unavailable("the submit", "an answer without a task id")
        return task_id

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        """Return the solution, or None while it is not ready.

        Raises:
            ProviderUnavailable, ProviderBusy: no usable answer; the task is as it was, ask again.
            TaskSilent: an empty answer, by which some services say that there is nothing to say about the task.
            ProviderError: the service gave up, does not know the task, or sent an unmarked token as sandbox, or a
                marked one for another machine.
            KeyRejected, BalanceExhausted: the account is at its end.
        """
        method, dialect = self._method(challenge.type), self._dialect
        pairs = [("action", dialect.result_action), ("id", task_id), ("json", "1")]
        reply = self._call(dialect.result_verb, "res.php", pairs, deadline)
        if dialect.silent and reply.status == 200 and not reply.text.strip():
            raise TaskSilent(f"{dialect.name} has nothing to say about the task")
        answer = self._good(reply, "the poll")
        if answer is None:
            return None
        answer, price = wire.without_price(answer) if dialect.has_prices else (answer, None)
        solution = wire.read_solution(answer, method)
        if solution is None:
            raise self._unavailable("the poll", "an answer without a solution")
        if method.mark is not None and not is_marked(solution, method.mark):
            raise ProviderError(f"{dialect.name} sent a token without the sandbox's mark; it is not used")
        if would_leave(solution, challenge):
            raise ProviderError(
                f"{dialect.name} at {self._base.origin} is a sandbox: its token is for this machine only and is not "
                f"sent to {challenge.page.origin}; see which address the account names"
            )
        return replace(solution, price=price)

    def balance(self, deadline: Deadline) -> float | None:
        """Return the account's balance in the service's own unit, None where it has none.

        Raises:
            ProviderError, KeyRejected, BalanceExhausted: there was no such answer.
        """
        if not self._dialect.has_balance:
            return None
        reply = self._call("POST", "res.php", [("action", "getbalance"), ("json", "1")], deadline)
        # As plain text the balance is a bare number, without the `OK|` of every other result.
        balance = wire.read_decimal(reply.text) if reply.status == 200 else None
        if balance is None:
            answer = self._good(reply, "the balance query")
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
        reply = self._call("POST", "res.php", [("action", "threadsinfo"), ("json", "1")], deadline)
        answer = self._good(reply, "the threads query")
        counts = wire.read_threads(answer) if answer is not None else None
        if counts is None:
            raise self._unavailable("the threads query", "an answer without threads")
        return ThreadsInfo(*counts)

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Tell the service what the team's backend made of a token; return whether it takes such a report.

        Raises:
            ProviderError, KeyRejected, BalanceExhausted: it did not take this one.
        """
        report = Report.GOOD if good else Report.BAD
        if report not in self._dialect.reports:
            return False
        pairs = [("action", str(report)), ("id", task_id), ("json", "1")]
        reply = self._call(self._dialect.result_verb, "res.php", pairs, deadline)
        if not wire.is_report_recorded(reply.text):
            self._good(reply, "the report")
        return True

    def _method(self, kind: CaptchaType) -> Method:
        method = self._dialect.methods[kind]
        if method is None:
            raise ConfigError(unsolved(self._dialect, kind))
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

    def _call(self, verb: str, path: str, pairs: wire.Pairs, deadline: Deadline) -> Reply:
        try:
            return self._exchange(verb, path, pairs, deadline)
        except TransportError as error:
            failure = error
        raise self._not_reached(failure)

    def _exchange(self, verb: str, path: str, pairs: wire.Pairs, deadline: Deadline) -> Reply:
        """Send one request: with all in its body, where the key is in no access log, if the service reads it there."""
        pairs, url, payload = [("key", self._key), *pairs], self._base.join(path), NO_PAYLOAD
        if verb == "GET":
            url = self._base.join(f"{path}?{urlencode(pairs)}")
        else:
            payload = urlencoded(pairs)
        return self._client.request(verb, url, deadline=deadline, grant=None, limit=ANSWER_LIMIT, payload=payload)

    def _not_reached(self, failure: TransportError) -> ProviderUnavailable:
        if self._dialect.local and failure.kind == "refused":
            return ProviderNotRunning(
                f"{self._dialect.name} is not running at {self._base.origin}: start the app there, or set its address",
                sent=False,
            )
        return ProviderUnavailable(f"{self._dialect.name}: {failure.message}", sent=failure.sent)

    def _good(self, reply: Reply, what: str) -> wire.Good | None:
        """Return the result of an answer, None for "not ready", or raise what its code stands for."""
        answer = wire.read_answer(reply.text, self._dialect.codes)
        if isinstance(answer, wire.Refusal):
            error = self._refusal(answer.code, what)
            if error is None:
                return None
            raise error
        if reply.status != 200:
            raise self._bad_status(reply, what)
        if isinstance(answer, wire.Noise):
            raise self._unavailable(what, f"HTTP 200 and {answer.what}")
        return answer

    def _refusal(self, code: str, what: str) -> CaptchaQAError | None:
        known = self._dialect.codes[code]
        error = ERRORS[known.reaction]
        if error is None:
            return None
        pause = None if known.pause is None else known.pause * self._scale
        return error(f"{self._dialect.name} answered {what} with {code}: {known.meaning}", retry_after=pause)

    def _bad_status(self, reply: Reply, what: str) -> CaptchaQAError:
        pause = seconds_to_wait(reply.headers.get("Retry-After", ""))
        error = RateLimited if reply.status == 429 else ProviderUnavailable
        found = wire.described(reply.text)
        return error(self._told(f"answered {what} with HTTP {reply.status} and {found}"), retry_after=pause)

    def _unavailable(self, what: str, found: str) -> ProviderUnavailable:
        return ProviderUnavailable(
            self._told(f"answered {what} with {found}"), retry_after=_UNKNOWN_PAUSE * self._scale
        )

    def _told(self, found: str) -> str:
        """Return the sentence without the key, which an answer may repeat as the name of a value."""
        return f"{self._dialect.name} {self._masked(found)}"

    def _masked(self, text: str) -> str:
        return text.replace(self._key, "***") if len(self._key) >= _SHORTEST_MASKED else text

    def _scaled(self, seconds: float) -> float:
        return max(_POLL_FLOOR, seconds * self._scale)
