"""What the engine needs from the outside, as Protocols; adapters implement them, wiring joins them.

What it needs of a store that all workers share stands in `store`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import Outcome, Verdict
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.record import AttemptLine, Line
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.scope import Evidence, ScopeGrant


class Clock(Protocol):
    """The two clocks of an attempt: monotonic seconds for durations, UTC for records."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""

    def utc(self) -> float:
        """Return seconds since the epoch."""


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    def utc(self) -> float:
        """Return `time.time()`."""
        return time.time()


class EvidenceSource(Protocol):
    """Fetches and authenticates the proof an origin serves (R0.2)."""

    def evidence(self, origin: Origin) -> Evidence:
        """Return the authenticated proof of this concrete origin.

        Raises:
            ScopeDenied: there is none, it is not ours, or it came late or in a wrong shape.
            AccessNotConfigured: a login stood in its place.
            TargetUnavailable: the site is down.
        """


class GrantSource(Protocol):
    """Gives grants for URLs, asking scope with fresh evidence; the engine's side of R0.1."""

    def grant(self, url: Url) -> ScopeGrant:
        """Return a grant that covers the URL.

        Raises:
            ScopeDenied: the URL is not authorised.
        """


class Provider(Protocol):
    """One solving service under one account. Errors are ProviderError, KeyRejected, BalanceExhausted."""

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return when to ask for the result of this challenge; already scaled for a scaled sandbox."""

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if the dialect has the type and the challenge all it needs.

        Raises:
            ConfigError: it does not; the message names the dialects that do.
        """

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Send the challenge and return the task id."""

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        """Return the solution (without wait and task id), or None while it is not ready."""

    def balance(self, deadline: Deadline) -> float | None:
        """Return the account's balance, None where the service has none."""

    def threads(self, deadline: Deadline) -> ThreadsInfo | None:
        """Return slots and their use, None where the service does not say."""

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Tell the service what the team's backend made of a token; return whether it takes such a report."""


@dataclass(frozen=True, slots=True)
class PollTimes:
    """Seconds before the first poll of a task, and between two."""

    first: float
    interval: float


@dataclass(frozen=True, slots=True)
class ThreadsInfo:
    """Slots of an account and how many are in use."""

    threads: int
    working: int


class OpenedForm(Protocol):
    """The form that holds the widget, as the page showed it."""

    @property
    def challenge(self) -> Challenge:
        """What the provider may be told."""

    @property
    def page(self) -> Url:
        """Where the page finally was."""

    def check_fields(self, names: Iterable[str]) -> None:
        """Return quietly if `submit` takes fields of these names; nothing is sent.

        Raises:
            ConfigError: one that the form does not have, with the nearest that it has.
        """

    def submit(
        self, solution: Solution | None, fields: Mapping[str, str], grants: GrantSource, deadline: Deadline
    ) -> Answer:
        """Post the form with the solution's fields (None: with the token fields left out).

        Raises:
            ScopeDenied, ConfigError, DeadlineExceeded: not a byte was sent.
            TargetUnavailable: no answer came; `sent` tells whether a byte can have left.
            PageError: the form was sent and its answer leads where it must not.
        """

    def draft(self, solution: Solution | None, fields: Mapping[str, str]) -> Draft:
        """Return what `submit` would send, for a probe to change; nothing is sent."""

    def send(self, draft: Draft, grants: GrantSource, deadline: Deadline) -> Answer:
        """Send a draft to its own target, with a grant for that; answers and raises as `submit` does."""


class FormDriver(Protocol):
    """Opens pages and finds the protected form on them."""

    def open(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline, identity: Identity) -> OpenedForm:
        """Return the opened form; `identity` is who will fill it in, for the team's steps before it.

        Raises:
            PageError: the page is broken, in words that name it and what was found.
            ConfigError: several widgets and none chosen.
            TargetUnavailable: the site cannot be reached.
        """


class Verifier(Protocol):
    """Asks the team's own backend, or the vendor with the team's secret, about a token."""

    def verify(
        self,
        form: FormSpec,
        challenge: Challenge,
        solution: Solution | None,
        context: Mapping[str, str],
        grants: GrantSource,
        deadline: Deadline,
    ) -> Verdict:
        """Return the verdict; `solution` is None for `lookup`, which reads what was recorded.

        Raises:
            VerifierError: no documented answer came.
        """


@dataclass(frozen=True, slots=True)
class EffectQuestion:
    """Whose submit of which form must have had its effect; `context` holds the values of placeholders."""

    form: FormSpec
    page: Url
    identity: Identity
    context: Mapping[str, str] = field(repr=False)


class EffectCheck(Protocol):
    """Looks whether an accepted submit has had the effect that the configuration names."""

    def lacking(self, question: EffectQuestion, deadline: Deadline) -> str | None:
        """Return in words what is not there yet, None if the effect shows.

        Raises:
            VerifierError: no answer came.
        """


class NoEffects:
    """Finds every effect at once, for tools that look for none."""

    def lacking(self, question: EffectQuestion, deadline: Deadline) -> None:
        """Return None."""
        return None


class RecordSink(Protocol):
    """Where lines of records go; a line that cannot be written raises RecordError."""

    def write(self, line: Line) -> None:
        """Append one line."""


class EvidenceSink(Protocol):
    """Keeps what helps to understand a failed attempt."""

    def keep(self, line: AttemptLine, outcome: Outcome, exchanges: Sequence[Exchange]) -> None:
        """Keep what an attempt has sent and got; one that cannot be kept raises nothing."""


class NoEvidence:
    """An EvidenceSink that keeps nothing."""

    def keep(self, line: AttemptLine, outcome: Outcome, exchanges: Sequence[Exchange]) -> None:
        """Do nothing."""
