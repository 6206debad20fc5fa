"""One attempt on one form, and the sequence every runner drives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from uuid import uuid4

from pytest_captcha_qa.engine.blame import Judgement, in_words, judge_answer, judge_verdict
from pytest_captcha_qa.engine.confirming import anew, confirm, person_of_second, request_of_second
from pytest_captcha_qa.engine.keys import InHand, SharedKey, order_of
from pytest_captcha_qa.engine.ports import OpenedForm
from pytest_captcha_qa.engine.recording import (
    Ended,
    attempt_line,
    outcome_of,
    seconds_by_step,
    started_line,
    write_extended,
)
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.steps import Steps
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.engine.visiting import Visit
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest, Expect, Outcome, Phase, Result, VerifyStatus
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.draft import Edited
from pytest_captcha_qa.model.form import VerifyVia
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.policy import total_budget
from pytest_captcha_qa.model.record import timestamp
from pytest_captcha_qa.model.token import Solution, Token


def run_attempt(
    request: AttemptRequest,
    services: Services,
    *,
    identity: Identity | None = None,
    fields: Mapping[str, str] | None = None,
) -> Outcome:
    """Return what came of the whole sequence; it is recorded on every path.

    `identity`: the person to submit, by default a new one; `fields` override the configured ones.

    Raises:
        CaptchaQAError: the tool or something it needs is broken; a bad verdict is a value, not an error.
    """
    with Attempt(request, services, identity=identity) as attempt:
        attempt.start()
        attempt.open()
        submits = attempt.form.verify.via.submits_form
        if submits:
            attempt.check_fields(fields or {})
        attempt.obtain()
        attempt.submit(fields) if submits else attempt.verify_token()
    return attempt.outcome


class Attempt:
    """One attempt in progress. Its steps may be called one by one; leaving it records it."""

    def __init__(self, request: AttemptRequest, services: Services, *, identity: Identity | None = None) -> None:
        self.id = uuid4().hex
        self.request = request
        self.form = services.form(request.form)
        self.phase = Phase.CREATED
        self.expect = Expect.ACCEPT
        self.identity = identity or services.identity()
        self.tally = Tally()
        self.token: Token | None = None
        self.answer: Answer | None = None
        self._services = services
        self._about = services.about
        seconds = request.timeout or total_budget(facts(self.form.type), services.timeouts)
        self._steps = Steps(self.form.slug, seconds, services.clock)
        self._visit: Visit | None = None
        self._hand: InHand | None = None
        self._lent = False
        self._outcome: Outcome | None = None

    # The steps, in the order of the mission.

    def start(self) -> None:
        """Write the `started` line, so that a crash from here on leaves a lost attempt, not a hole."""
        line = started_line(self._about, self.request, self.form, id=self.id, ts=self._now())
        self._services.records.write(line)
        self.phase = Phase.STARTED

    def open(self) -> OpenedForm:
        """Return the form on its granted page."""
        with self._step("page", self._services.timeouts.page) as deadline:
            url = self._services.page_of(self.form)
            self._services.grants.grant(url)
            self.phase = Phase.AUTHORISED
            page = self._services.driver.open(self.form, url, self._services.grants, deadline, self.identity)
            self._stand_before(page)
        # Outside of the step: what the team's code takes is no time of the site.
        self._services.extensions.opened(self.form, page.page)
        return page

    def share_page(self, other: Attempt) -> None:
        """Go on with the page another attempt has opened, as a second submit of the same page does."""
        self._stand_before(other.visit.page)
        self._steps.exchanges.share(other._steps.exchanges, "page")

    @property
    def awaits_submit(self) -> bool:
        """Whether its page is open and was not submitted yet."""
        return self.phase in (Phase.OPENED, Phase.OBTAINED)

    def renumber(self, ordinal: int) -> None:
        """Ask for the `ordinal`-th token of the subject."""
        self.request = replace(self.request, ordinal=ordinal)

    @property
    def visit(self) -> Visit:
        """What can be done at the opened form."""
        assert self._visit is not None, "open() comes first"
        return self._visit

    def check_fields(self, fields: Mapping[str, str]) -> None:
        """Return quietly if the opened form takes these fields: a mistyped name shall cost no token.

        Raises:
            ConfigError: one that the form does not have.
        """
        self.visit.page.check_fields(fields)

    def obtain(self, shared: SharedKey | None = None) -> Token:
        """Return the token of this attempt's key, or of a shared one: reused, resumed or solved."""
        obtainer = self._services.obtainer
        with self._step("blocked") as deadline:
            order = order_of(self._services, self.form, self.request, self.visit.page, deadline, shared)
            self._services.provider.supports(order.challenge)
            held = obtainer.obtain(order, self.tally, shared.claimed if shared else None)
            self.token = obtainer.token(held, self.tally)
            self._hand = InHand(self._services, self.form, self.token, held, shared)
            self.phase = Phase.OBTAINED
        return self.token

    def adopt(self, other: Attempt) -> None:
        """Submit the token another attempt of this test has obtained; what it cost is recorded here, if nowhere yet."""
        self.token, self._hand, self.phase = other.token, other._hand, Phase.OBTAINED
        if other.phase is Phase.RECORDED:
            return
        other._lent = True
        self.tally, other.tally = other.tally, Tally()
        self._steps.take_over("blocked", other._steps)

    def submit(self, fields: Mapping[str, str] | None = None) -> Outcome:
        """Return what the site made of the form with this attempt's token, which is spent first.

        If that is refused, the form is opened and submitted once more with another one (see `blame`).
        """
        return self._conclude(self._confirmed(self._submitted(fields), lambda another: another._submitted(fields)))

    def submit_expecting_refusal(
        self, sent: Solution | None, fields: Mapping[str, str] | None = None, edited: Edited | None = None
    ) -> Outcome:
        """Return whether the site refused what is sent in the token's place; the store is not touched.

        Of a form that answers the same either way, the lookup tells. `edited`: how a probe changes the submit.
        """
        self.expect = Expect.REFUSE
        self.visit.await_turn()
        called = edited.called if edited else in_words(sent)
        judgement = judge_answer(self.form, self._post(sent, fields or {}, edited), Expect.REFUSE, called)
        if self.form.verify.via is VerifyVia.LOOKUP and judgement.verdict.status is VerifyStatus.PASS:
            judgement = judge_verdict(self.form, self.visit.ask_verifier(None), Expect.REFUSE, called)
        if judgement.verdict.status is VerifyStatus.PASS:  # what should have been refused has its effect all the same
            self.visit.tell_created()
        return self._conclude(judgement)

    def verify_expecting_refusal(self, sent: Solution) -> Outcome:
        """Return whether the endpoint or the vendor refuses what is sent as a token; the store is not touched."""
        self.expect = Expect.REFUSE
        return self._conclude(judge_verdict(self.form, self.visit.ask_verifier(sent), Expect.REFUSE, in_words(sent)))

    def verify_token(self) -> Outcome:
        """Return what the endpoint or the vendor says of this attempt's token; the form is not submitted.

        If that is refused, they are asked about another one.
        """
        return self._conclude(self._confirmed(self._verified(), Attempt._verified))

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        assert self._outcome is not None, "the attempt is not over"
        return self._outcome

    # Leaving it, on whatever path.

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.record(error)

    def record(self, error: BaseException | None = None) -> None:
        """Write the `attempt` line once; `error` is what ended it, if anything did."""
        if self.phase in (Phase.CREATED, Phase.RECORDED):
            return
        if self._outcome is None:  # a verdict stands, whatever happened after it
            spent = self.expect is Expect.ACCEPT and self.token is not None and self.token.spent
            self._outcome = outcome_of(error, self.expect, tokens=int(spent))
        self.phase = Phase.RECORDED
        held = self._hand.held if self._hand is not None and not self._lent else None
        ended = Ended(self._outcome, error, held, self.tally, self._all_seconds())
        line = attempt_line(self._about, self.request, self.form, ended, id=self.id, ts=self._now())
        line = write_extended(line, self._services.extensions, self._services.records)
        if self._outcome.fault is not None:
            self._services.evidence.keep(line, self._outcome, self._steps.exchanges.kept)

    # A refused token gets a second one beside it.

    def _confirmed(self, first: Judgement, again: Callable[[Attempt], Judgement]) -> Judgement:
        if not first.may_be_the_tokens_fault:
            return first
        self._close_key(first)
        if self._hand is not None and self._hand.held.suspect:
            renewed = anew(first, lambda: again(self._with_another_token()), self.form, self._services)
            return self._confirmed(renewed, again)
        task_id = self._hand.task_id if self._hand is not None else None
        return confirm(first, lambda: again(self._with_another_token()), self.form, self._services, task_id=task_id)

    def _with_another_token(self) -> Attempt:
        """Return an attempt on the form, freshly opened, with a token of its own key; it is recorded as this one."""
        person = person_of_second(self.form, self.identity)
        another = Attempt(request_of_second(self.request), self._services, identity=person)
        another.phase, another.tally, another._steps = Phase.STARTED, self.tally, self._steps
        shared = self._hand.shared if self._hand is not None else None
        another.open()
        another.obtain(replace(shared, claimed=None) if shared else None)
        self._hand = another._hand
        return another

    # How the steps are done.

    def _stand_before(self, page: OpenedForm) -> None:
        self._visit = Visit(self.form, page, self.identity, self._services, self._step)
        self.phase = Phase.OPENED

    def _submitted(self, fields: Mapping[str, str] | None) -> Judgement:
        self.visit.await_turn()
        solution = self._spend()
        with self._in_hand.given_back_if_unsent():
            answer = self._post(solution, fields or {})
        judgement = judge_answer(self.form, answer, Expect.ACCEPT)
        return self.visit.looked_up(judgement) if judgement.result is Result.OK else judgement

    def _verified(self) -> Judgement:
        return judge_verdict(self.form, self.visit.ask_verifier(self._spend()), Expect.ACCEPT)

    @property
    def _in_hand(self) -> InHand:
        assert self._hand is not None, "obtain() comes first"
        return self._hand

    def _spend(self) -> Solution:
        """Consume the token; one that has expired is made anew in what is left of the attempt's seconds."""
        with self._step("blocked") as deadline:
            return self._in_hand.spend(deadline)

    def _post(self, sent: Solution | None, fields: Mapping[str, str], edited: Edited | None = None) -> Answer:
        self.answer = self.visit.post(sent, fields, edited)
        self.phase = Phase.SUBMITTED
        return self.answer

    def _conclude(self, judgement: Judgement) -> Outcome:
        self.phase = Phase.VERIFIED
        self._outcome = replace(judgement.outcome(self.expect), seconds=self._all_seconds())
        if self.expect is Expect.ACCEPT:
            self._close_key(judgement)
        return self._outcome

    def _close_key(self, judgement: Judgement) -> None:
        if self._hand is not None:
            self._hand.close(judgement, self.visit.page.challenge)

    @contextmanager
    def _step(self, name: str, at_most: float | None = None) -> Iterator[Deadline]:
        assert self.phase not in (Phase.CREATED, Phase.RECORDED), "every step lies between start() and record()"
        hand = self._hand
        with self._steps.during(name, at_most) as deadline, hand.kept_during(deadline) if hand else nullcontext():
            yield deadline

    def _all_seconds(self) -> dict[str, float]:
        return seconds_by_step(self._steps.seconds, self.tally)

    def _now(self) -> str:
        return timestamp(self._services.clock.utc())
