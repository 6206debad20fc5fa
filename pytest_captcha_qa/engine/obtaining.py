"""A token for one key: reuse it, wait for it, resume its task, or make it; then spend it once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.ports import Clock, GrantSource
from pytest_captcha_qa.engine.reactions import may_make_another_task
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import (
    AlreadyMine,
    Busy,
    Conflict,
    Done,
    Expired,
    Failed,
    Granted,
    Indeterminate,
    Lease,
    Lost,
    Ready,
    Resume,
    StateStore,
    Won,
)
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    DeadlineExceeded,
    KeyConflict,
    OwnerLost,
    ProviderError,
    SpentElsewhere,
    TaskUnknown,
    all_errors,
)
from pytest_captcha_qa.model.attempt import AttemptKey, Fingerprint
from pytest_captcha_qa.model.captcha import Binding, facts
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.model.token import Solution, Source, Token

_RENEWALS = 3


@dataclass
class Obtainer:
    """Asks the store before anything is sent to the provider (R1.2), and the solver when there is no other way."""

    store: StateStore
    solver: Solver
    clock: Clock
    stop: Stop
    emit: events.Emit = events.silent
    learn: Learn = forget
    random: random.Random = field(default_factory=random.Random)

    def obtain(self, order: Order, tally: Tally, claimed: Granted | Resume | None = None) -> Held:
        """Return the token of the order's key, with how this caller came by it.

        `claimed`: what the store answered to a claim that this caller has made already.

        Raises:
            SpentElsewhere: the key was used up, or perhaps, and the order does not ask for a fresh one.
            KeyConflict: the key belongs to another type, sitekey, page or action.
            ProviderError and the like: the solve failed, here or at the caller who made it.
            DeadlineExceeded, Stopped: the wait ended.
        """
        owner, waited = uuid4().hex, False
        while True:
            claim = claimed or self.store.claim(
                order.key.digest, order.fingerprint, owner, times=order.times, fresh=order.fresh
            )
            claimed = None
            match claim:
                case Ready():
                    return self._held(order, claim, Source.REUSED)
                case Granted() | Resume():
                    held = self._work(order, claim, tally)
                    if held is not None:
                        return held
                case Busy(retry_after):
                    waited = True
                    self.stop.wait(order.deadline.cap(retry_after * self.random.uniform(0.5, 1.0)))
                case Failed(retry_after=float(seconds)) if not waited:
                    waited = True  # what somebody met before this caller came is no answer to it
                    self.stop.wait(order.deadline.cap(seconds))
                case _:
                    raise self.refusal(order.key.form, claim)

    def _work(self, order: Order, claim: Granted | Resume, tally: Tally) -> Held | None:
        """Return the token of the task this owner makes or resumes; None to ask the store again."""

        def lost(error: CaptchaQAError) -> None:
            self._tell_lost_task(order, claim, error)

        try:
            if isinstance(claim, Resume):
                ready = self.solver.resume(order.challenge, order.grants, claim, order.deadline, tally, lost)
                return self._held(order, ready, Source.RESUMED, suspect=claim.suspect)
            self._tell_takeover(order, claim)
            ready = self.solver.solve(order.challenge, order.grants, claim, order.deadline, tally, lost)
            return self._held(order, ready, Source.SOLVED)
        except OwnerLost:
            return None
        except ProviderError as error:
            if not may_make_another_task(error, claim.tries):
                raise
            return None

    def _tell_takeover(self, order: Order, granted: Granted) -> None:
        if granted.event is not None:
            self.emit(events.Event(granted.event, order.named))
        if granted.replaced is not None:
            data: dict[str, events.EventValue] = {"why": granted.replaced, "generation": granted.lease.generation}
            self.emit(events.Event(events.TOKEN_RENEWED, order.named | data))

    def _tell_lost_task(self, order: Order, claim: Granted | Resume, error: CaptchaQAError) -> None:
        """Name the window through which a second task is made: every submit beyond the first is an event."""
        data = order.named | {"task_id": error.task_id}
        if isinstance(claim, Resume) and isinstance(error, TaskUnknown):
            # Some services let a token be read once: perhaps a worker did that and could not store it.
            self.emit(events.Event(events.TOKEN_LOST, data))
        else:
            self.emit(events.Event(events.TOKEN_RENEWED, data | {"why": error.code}))

    def _held(self, order: Order, ready: Ready, source: Source, *, suspect: bool = False) -> Held:
        self.learn(ready.solution.secrets)
        return Held(order, ready, source, self.clock.monotonic() - ready.age, suspect=suspect)

    def refusal(self, form: str, claim: Done | Indeterminate | Conflict | Failed) -> CaptchaQAError:
        """Return the error that a claim which gives no token stands for."""
        what = f"the token of form {form!r} for this subject"
        match claim:
            case Done(outcome):
                return SpentElsewhere(f"{what} was used already, with outcome {outcome}")
            case Indeterminate():
                self.emit(events.Event(events.SUBMIT_MAYBE_POSTED, {"slug": form}))
                return SpentElsewhere(
                    f"{what} was spent by an attempt that crashed; the form was perhaps posted, so it is not sent again"
                )
            case Conflict():
                return KeyConflict(
                    f"{what} is being made for another page, sitekey, type or action; wait until it has expired, or "
                    "give the two a different subject"
                )
            case Failed(code, retry_after):
                message = f"{what} could not be had: another caller with the same subject met {code} a moment ago"
                return error_of(code, message, retry_after)

    def token(self, held: Held, tally: Tally) -> Token:
        """Return the Token a test holds of what was obtained."""
        return Token(
            held.ready.solution,
            form=held.order.key.form,
            source=held.source,
            generation=held.ready.generation,
            age=lambda: self.clock.monotonic() - held.not_ready_at,
            spend=lambda token, within: self.spend(held, token, tally, within),
        )

    def spend(self, held: Held, token: Token, tally: Tally, within: float | None = None) -> Solution:
        """Return the solution after consuming it in the store; one that expired or was lost is made anew.

        `within`: the seconds a new one may take, if less than a solve may.

        Raises:
            SpentElsewhere: another consumer was first, and the order does not ask for a fresh one or the page does not
                allow it.
            DeadlineExceeded: it expired and cannot be replaced on this page, or not in time.
        """
        form, consumer = held.order.key.form, uuid4().hex
        solve = held.order.times.solve
        deadline = Deadline(
            solve if within is None else min(solve, within),
            what=f"the renewal of a token for {form!r}",
            now=self.clock.monotonic,
        )
        for renewals in range(_RENEWALS + 1):
            answer = self.store.spend(held.ready, consumer)
            if isinstance(answer, Won | AlreadyMine):
                held.lease, held.kept_at = answer.lease, self.clock.monotonic()
                return held.ready.solution
            if renewals < _RENEWALS:
                self._replace(held, token, answer, deadline, tally)
        raise SpentElsewhere(f"the token of form {form!r} was renewed {_RENEWALS} times and was never there to be used")

    def _replace(self, held: Held, token: Token, why: Expired | Lost, deadline: Deadline, tally: Tally) -> None:
        form = held.order.key.form
        if facts(held.order.challenge.type).binding is Binding.PAGE:
            again = "open the page again for another"
            if isinstance(why, Expired):
                raise DeadlineExceeded(f"the token of form {form!r} expired before it was used; {again}")
            raise SpentElsewhere(f"the token of form {form!r} was used by another caller; {again}")
        newer = self.obtain(replace(held.order, deadline=deadline), tally)
        held.ready, held.source, held.not_ready_at = newer.ready, newer.source, newer.not_ready_at
        held.suspect = newer.suspect
        token.renew(
            newer.ready.solution,
            source=newer.source,
            generation=newer.ready.generation,
            age=lambda: self.clock.monotonic() - held.not_ready_at,
        )


@dataclass(frozen=True)
class Order:
    """What is wanted: a token for this key and challenge, by this deadline.

    `shared_as`: what the store compares for a key that is claimed before a page shows its challenge.
    """

    key: AttemptKey
    challenge: Challenge
    grants: GrantSource
    times: KeyTimes
    deadline: Deadline
    fresh: bool = True
    shared_as: Fingerprint | None = None

    @property
    def named(self) -> dict[str, events.EventValue]:
        """What events say of the key: its form, and the start of its hash, by which `captcha-qa state` shows it."""
        return {"slug": self.key.form, "key": self.key.digest[:8]}

    @property
    def fingerprint(self) -> Fingerprint:
        """What the store compares before it shares a token."""
        page_bound = facts(self.challenge.type).binding is Binding.PAGE
        return self.shared_as or Fingerprint.of(self.challenge, page_bound=page_bound)


@dataclass
class Held:
    """A token in hand; after it was spent, `lease` is the right to close its key, last renewed at `kept_at`.

    `suspect`: the store was restarted since its task was submitted, so it may have been used without anybody knowing.
    """

    order: Order
    ready: Ready
    source: Source
    not_ready_at: float
    lease: Lease | None = None
    kept_at: float = float("-inf")
    suspect: bool = False


def error_of(code: str, message: str, retry_after: float | None = None) -> CaptchaQAError:
    """Return the error of this code, as another caller has met it."""
    cls = all_errors().get(code, ProviderError)
    try:
        error = cls(message)
    except TypeError:  # a class that needs more than a sentence
        error = ProviderError(message)
    error.retry_after = retry_after
    return error
