"""Deadlines, limits, retries and error reactions as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_captcha_qa.model.captcha import CaptchaFacts


class OnStoreLoss(StrEnum):
    """What a worker does when the shared store cannot be reached (R1.7)."""

    CONTINUE = "continue"
    OWNED = "owned"  # only keys already held go on
    STOP = "stop"


class Reaction(StrEnum):
    """What the engine does about a provider's error (R3.3)."""

    POLL_ON = "poll_on"  # not an error: ask again
    RETRY = "retry"  # the same request again after a delay
    REQUEUE = "requeue"  # a new submit later, fewer in flight
    SLOW_DOWN = "slow_down"  # the same, and nobody submits for the account before the pause is over
    CHECK_BALANCE = "check_balance"  # busy or out of money: threadsinfo tells
    DROP = "drop"  # the task is lost
    ONCE_MORE = "once_more"  # a new task, once
    FAIL = "fail"  # our request is wrong, never repeat it
    STOP = "stop"  # halt the account and say so
    OUT_OF_MONEY = "out_of_money"  # halt until the balance is back


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`tries` in all; the pause in seconds starts at `first`, doubles, and never exceeds `ceiling`."""

    tries: int = 3
    first: float = 2.0
    ceiling: float = 30.0

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row."""
        doublings = min(max(0, failures - 1), 64)  # far more would overflow a float
        return float(min(self.ceiling, self.first * 2**doublings))


LONGEST_PAUSE = 600.0
"""Most seconds for which the word of a service stops an account: the longest block that one documents.

A gateway before it that says "in an hour", or "next week", is asked again after these; what it says then counts anew.
"""

TOLD_PAUSE = 60.0
"""Seconds from which on such a pause is an event: nobody who looks at a run that stands still shall have to guess."""


def pause_asked(seconds: float | None) -> float:
    """Return the seconds to wait for a service that asks for so many; 0 if it asks for none, or for what is none."""
    return min(seconds, LONGEST_PAUSE) if seconds is not None and seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds given to each stage of an attempt; every call is also held to what is left of the whole.

    `provider_call`: services answer a submit or a poll in well under a second; three calls that get no answer, with
    their pauses, must still end within half a minute; `solve`: least seconds of a solve, for a service that is slower
    than the type's facts say.
    """

    page: float = 30.0
    submit: float = 30.0
    verify: float = 30.0
    provider_call: float = 8.0
    proof: float = 15.0
    solve: float = 0.0

    def solve_deadline(self, facts: CaptchaFacts) -> float:
        """Return the seconds after which waiting for a token of the type makes no sense."""
        return max(facts.solve_deadline, self.solve)


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """What one provider account allows; shared by all its workers.

    `spacing`: seconds between two submits; `run_budget`: most submits of one run.
    """

    max_in_flight: int = 10
    spacing: float = 0.0
    run_budget: int | None = None
    slot_lease: float = 30.0


@dataclass(frozen=True, slots=True)
class KeyTimes:
    """How long the store keeps a key in each state, in seconds (state.md).

    `lease` is renewed at `renew`; `http`: deadline of a submit; `solve`: deadline of a solve; `redelivery`: retry
    interval x tries left; `keep`: how long a token may be handed out.
    """

    lease: float
    renew: float
    http: float
    solve: float
    redelivery: float
    keep: float

    @property
    def tombstone(self) -> float:
        """Seconds a finished key is remembered: longer than its task and every redelivery."""
        return self.solve + 2 * self.redelivery

    @classmethod
    def of(
        cls,
        facts: CaptchaFacts,
        *,
        timeouts: Timeouts,
        retry_interval: float = 30.0,
        tries: int = 3,
        lease: float = 30.0,
    ) -> KeyTimes:
        """Return the times that fit a type and the orchestrator's retry interval."""
        return cls(
            lease=lease,
            renew=lease / 3,
            http=timeouts.provider_call,
            solve=timeouts.solve_deadline(facts),
            redelivery=retry_interval * tries,
            keep=facts.keep,
        )

    def problems(self) -> list[str]:
        """Return why these times cannot work, in words; empty if they can (R1.8)."""
        found = []
        if self.keep <= 0:
            found.append(f"a token may be kept {self.keep:g} s: the margin eats the whole validity")
        if self.renew * 2 > self.lease:
            found.append(f"a lease of {self.lease:g} s renewed every {self.renew:g} s lapses after one lost renewal")
        if self.lease <= self.renew + self.http:
            found.append(
                f"a lease of {self.lease:g} s renewed every {self.renew:g} s lapses while one call of the provider, "
                f"which may take {self.http:g} s, is waited for"
            )
        if self.redelivery <= 0:
            found.append("the retry interval must be positive")
        elif self.redelivery < self.lease:
            found.append(
                f"all retries are over after {self.redelivery:g} s, while a worker that crashed holds its key for "
                f"{self.lease:g} s: the task it had paid for may be forgotten by then and would be paid for again"
            )
        if self.tombstone <= self.solve:
            found.append("a finished key would be forgotten before its task can be redelivered")
        return found

    def polling_problems(self, first: float, interval: float) -> list[str]:
        """Return why polls at these times cannot work, in words; `first`, `interval`: seconds, as in PollTimes."""
        found = []
        if first >= self.solve:
            found.append(f"the first poll comes after {first:g} s, when the {self.solve:g} s of a solve are over")
        if interval >= self.keep:
            found.append(
                f"a token found by polls {interval:g} s apart may be that old, and is kept for {self.keep:g} s: it "
                "would be expired when it is found"
            )
        return found


def total_budget(facts: CaptchaFacts, timeouts: Timeouts, margin: float = 60.0) -> float:
    """Return the seconds one whole attempt may take: solve, page, submit and a margin (R4.2)."""
    return timeouts.solve_deadline(facts) + timeouts.page + timeouts.submit + margin


Reactions = Mapping[str, Reaction]
