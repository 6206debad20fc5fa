"""The attempts of one test: which form is open, which token is in hand, what came of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.ports import FormDriver, GrantSource, OpenedForm
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.attempt import AttemptRequest, Expect, Outcome, Verdict
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.token import Token
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.plugin.boundary import call
from pytest_captcha_qa.plugin.memory import Memory
from pytest_captcha_qa.plugin.sent import expectation, in_the_tokens_place, replayed, skip_if_meaningless

_T = TypeVar("_T")


class FormPage:
    """The opened page of a form, as a test holds it."""

    def __init__(self, case: Case, attempt: Attempt) -> None:
        """Made by the fixture `captcha_form`."""
        self._case = case
        self._attempt = attempt
        self.form = attempt.form.name
        self.type = str(attempt.form.type)
        self.sitekey = attempt.visit.page.challenge.sitekey
        self.url = attempt.visit.page.page.without_query

    @property
    def challenge(self) -> Challenge:
        """What the page shows of its captcha."""
        return self._attempt.visit.page.challenge

    def submit(self, *, token: Token | str | None = None, expect: str = "accept", **fields: str) -> Outcome:
        """Return whether the site did what is expected with the form.

        With `expect="accept"` the token is spent first (None: this test's token for the form). With
        `expect="refuse"` any string may be sent in the token's place, or a token that was spent already; None leaves
        the field out, and the store is not touched. `fields` override the configured ones.
        """
        __tracebackhide__ = True
        return call(self._case.submit, self._attempt, token, expect, fields)

    def __repr__(self) -> str:
        return f"<FormPage {self.form} ({self.type}) at {self.url}>"


@dataclass(frozen=True)
class Situation:
    """What a test brings along: its names, its identity, and the fields that conftest adds to every submit.

    `tries`: which execution of the test this is, from 1; reruns count up. `submits`: whether it submits what it takes
    tokens for; one that only takes tokens sends them itself, with whatever fields it likes.
    """

    nodeid: str
    subject: str
    tries: int
    identity: Identity
    fields: Mapping[str, str]
    submits: bool = False


class _OnePageAtATime:
    """Opens the pages of one session one after the other: the first sets the cookies that all of them need."""

    def __init__(self, driver: FormDriver) -> None:
        self._driver = driver
        self._lock = threading.Lock()

    def open(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline, identity: Identity) -> OpenedForm:
        """Return the opened form."""
        with self._lock:
            return self._driver.open(form, url, grants, deadline, identity)


class Case:
    """What one test does with forms and tokens; thread-safe, so that async tests may use threads."""

    def __init__(self, services: Services, situation: Situation) -> None:
        self._memory = Memory()
        self._services = self._memory.of(replace(services, driver=_OnePageAtATime(services.driver)))
        self._situation = situation
        self._attempts: list[Attempt] = []
        self._handed_out: set[str] = set()
        self._submitted: set[str] = set()
        self._ordinals: Counter[str] = Counter()
        self._whole_sequences = 0
        self._used: dict[str, None] = {}
        self._lock = threading.RLock()
        self.outcomes: list[Outcome] = []

    # What the fixtures offer.

    def form(self, name: str) -> FormPage:
        """Return the opened page of the form: the one its token was obtained from, if that is still unused."""
        with self._lock:
            unused = (a for a in self._open_attempts(name) if a.id not in self._handed_out)
            attempt = next(unused, None) or self._opened(name)
            self._handed_out.add(attempt.id)
            return FormPage(self, attempt)

    def token(self, name: str) -> Token:
        """Return this test's unspent token of the form, or the next one."""
        with self._lock:
            for token in (a.token for a in self._attempts if a.form.name == name):
                if token is not None and not token.spent:
                    return token
            without = (a for a in self._open_attempts(name) if a.token is None)
            return self._obtained(next(without, None) or self._opened(name))

    def attempt(self, name: str) -> Outcome:
        """Return what came of the whole sequence on the form."""
        with self._lock:
            request = replace(self._request(name), ordinal=self._next_ordinal(name))
            identity = self._next_identity()
            self._whole_sequences += 1
        outcome = run_attempt(request, self._services, identity=identity, fields=self._situation.fields)
        self.outcomes.append(outcome)
        return outcome

    def verify(self, token: Token, *, expect: str = "accept") -> Verdict:
        """Return what the team's own backend, or the vendor, says of the token, which is spent by it.

        With `expect="refuse"` it takes a token that was spent already: the verdict on a replay.

        Raises:
            ConfigError: the form is verified by its own submit.
        """
        attempt = self._owner(token)
        if attempt.form.verify.via.submits_form:
            raise ConfigError(
                f"form {attempt.form.slug!r} is verified via {attempt.form.verify.via!s}: its own submit tells; use "
                "captcha_form(...).submit(token=...), or configure verify via endpoint or siteverify"
            )
        if expectation(expect) is Expect.ACCEPT:
            return self._finished(attempt, attempt.verify_token).verdict
        skip_if_meaningless(self._services.about.key_mode, attempt.form.type, token)
        replay, sent = self._next_on_page(attempt), replayed(token)
        return self._finished(replay, lambda: replay.verify_expecting_refusal(sent)).verdict

    def submit(self, attempt: Attempt, token: Token | str | None, expect: str, fields: Mapping[str, str]) -> Outcome:
        """Return the outcome of a submit of the page; a second one on the same page is an attempt of its own."""
        wanted = expectation(expect)
        posted = {**self._situation.fields, **fields}
        if wanted is Expect.REFUSE:
            skip_if_meaningless(self._services.about.key_mode, attempt.form.type, token)
        sent = in_the_tokens_place(token) if wanted is Expect.REFUSE else None
        attempt = self._taken_for_submit(attempt)
        self._recorded_if_it_fails(attempt, lambda: attempt.check_fields(posted))
        if wanted is Expect.REFUSE:
            return self._finished(attempt, lambda: attempt.submit_expecting_refusal(sent, posted))
        self._provide_token(attempt, token)
        return self._finished(attempt, lambda: attempt.submit(posted))

    def close(self) -> None:
        """Record the attempts that the test left open."""
        with self._lock:
            for attempt in self._attempts:
                attempt.record()

    @property
    def used_forms(self) -> tuple[str, ...]:
        """The forms this test has used so far."""
        return tuple(self._used)

    @property
    def recorded(self) -> Sequence[AttemptLine]:
        """The attempts of this test that are over."""
        return self._memory.recorded

    @property
    def started(self) -> Mapping[str, str]:
        """When each attempt of this test began, by its id."""
        return self._memory.started

    @property
    def failed(self) -> Sequence[tuple[AttemptLine, Outcome]]:
        """Those of them that failed, with what came of them."""
        return self._memory.failed

    # How it is done.

    def _taken_for_submit(self, attempt: Attempt) -> Attempt:
        """Return the page's attempt if nobody has submitted it, else one of its own on the same page."""
        with self._lock:
            if attempt.id in self._submitted or not attempt.awaits_submit:
                attempt = self._next_on_page(attempt)
            self._submitted.add(attempt.id)
            return attempt

    def _provide_token(self, attempt: Attempt, token: Token | str | None) -> None:
        if token is None:
            if attempt.token is None or attempt.token.spent:
                self._obtained(attempt)
        elif not isinstance(token, Token):
            raise ConfigError(
                "with expect='accept' the token comes from captcha_token(...); a text is for expect='refuse'"
            )
        elif token.form != attempt.form.name:
            raise ConfigError(
                f"this token is of form {token.form!r} and form {attempt.form.slug!r} cannot be submitted with it; "
                "to see it refused, spend it first and submit with expect='refuse'"
            )
        elif token is not attempt.token:
            attempt.adopt(self._owner(token))

    def _owner(self, token: Token) -> Attempt:
        for attempt in self._attempts:
            if attempt.token is token:
                return attempt
        raise ConfigError("this token was not obtained by this test; take it from captcha_token(...)")

    def _open_attempts(self, name: str) -> list[Attempt]:
        return [a for a in self._attempts if a.form.name == name and a.awaits_submit]

    def _request(self, name: str) -> AttemptRequest:
        if name in self._services.forms:
            self._used[self._services.forms[name].slug] = None
        return AttemptRequest(
            name,
            self._situation.subject,
            nodeid=self._situation.nodeid,
            attempt=self._situation.tries,
        )

    def _started(self, name: str) -> Attempt:
        attempt = Attempt(self._request(name), self._services, identity=self._next_identity())
        attempt.start()
        self._attempts.append(attempt)
        return attempt

    def _next_identity(self) -> Identity:
        return self._situation.identity.numbered(1 + len(self._attempts) + self._whole_sequences)

    def _next_ordinal(self, name: str) -> int:
        """Return the number of the next token of the form in this test; the same in each of its reruns."""
        with self._lock:
            self._ordinals[name] += 1
            return self._ordinals[name]

    def _opened(self, name: str) -> Attempt:
        attempt = self._started(name)
        self._recorded_if_it_fails(attempt, attempt.open)
        return attempt

    def _next_on_page(self, earlier: Attempt) -> Attempt:
        attempt = self._started(earlier.form.name)
        attempt.share_page(earlier)
        return attempt

    def _obtained(self, attempt: Attempt) -> Token:
        if self._situation.submits and attempt.form.verify.via.submits_form:
            self._recorded_if_it_fails(attempt, lambda: attempt.check_fields(self._situation.fields))
        attempt.renumber(self._next_ordinal(attempt.form.name))
        return self._recorded_if_it_fails(attempt, attempt.obtain)

    def _finished(self, attempt: Attempt, step: Callable[[], Outcome]) -> Outcome:
        outcome = self._recorded_if_it_fails(attempt, step)
        attempt.record()
        self.outcomes.append(outcome)
        return outcome

    def _recorded_if_it_fails(self, attempt: Attempt, step: Callable[[], _T]) -> _T:
        try:
            return step()
        except BaseException as error:
            attempt.record(error)
            raise
