"""One attempt on one form, and the sequence every runner drives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from uuid import uuid4

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.around import judge_effect, wait_for_turn
from pytest_captcha_qa.engine.blame import Judgement, in_words, judge_answer, judge_verdict
from pytest_captcha_qa.engine.confirming import anew, confirm
from pytest_captcha_qa.engine.keys import InHand, SharedKey, key_of, times_of
from pytest_captcha_qa.engine.obtaining import Order
from pytest_captcha_qa.engine.ports import EffectQuestion, OpenedForm
from pytest_captcha_qa.engine.recording import Ended, attempt_line, outcome_of, seconds_by_step, started_line
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.steps import Steps
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.attempt import AttemptRequest, Expect, Outcome, Phase, Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.draft import Edited
from pytest_captcha_qa.model.form import Answer, Effect, VerifyVia
from pytest_captcha_qa.model.identity import Identity, fill, placeholder_values
from pytest_captcha_qa.model.policy import total_budget
from pytest_captcha_qa.model.record import AttemptLine, timestamp
from pytest_captcha_qa.model.token import Solution, Token

# Far from the numbers that the attempts of a test get.
_CONFIRMATION_NUMBER = 99


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
        if request.form not in services.forms:
            raise _unknown_form(request.form, services)
        self.id = uuid4().hex
        self.request = request
        self.form = services.forms[request.form]
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
        self._page: OpenedForm | None = None
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
            self._page = self._services.driver.open(self.form, url, self._services.grants, deadline, self.identity)
            self.phase = Phase.OPENED
        # Outside of the step: what the team's code takes is no time of the site.
        self._services.extensions.opened(self.form, self._page.page)
        return self._page

    def share_page(self, other: Attempt) -> None:
        """Go on with the page another attempt has opened, as a second submit of the same page does."""
        self._page, self.phase = other.page, Phase.OPENED
        self._steps.exchanges.share(other._steps.exchanges, "page")

    @property
    def awaits_submit(self) -> bool:
        """Whether its page is open and was not submitted yet."""
        return self.phase in (Phase.OPENED, Phase.OBTAINED)

    def renumber(self, ordinal: int) -> None:
        """Ask for the `ordinal`-th token of the subject."""
        self.request = replace(self.request, ordinal=ordinal)

    @property
    def page(self) -> OpenedForm:
        """The opened page."""
        assert self._page is not None, "open() comes first"
        return self._page

    def check_fields(self, fields: Mapping[str, str]) -> None:
        """Return quietly if the opened form takes these fields: a mistyped name shall cost no token.

        Raises:
            ConfigError: one that the form does not have.
        """
        self.page.check_fields(fields)

    def obtain(self, shared: SharedKey | None = None) -> Token:
        """Return the token of this attempt's key, or of a shared one: reused, resumed or solved."""
        obtainer = self._services.obtainer
        with self._step("blocked") as deadline:
            self._services.provider.supports(self.page.challenge)
            held = obtainer.obtain(self._order(shared, deadline), self.tally, shared.claimed if shared else None)
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
        self._await_turn()
        called = edited.called if edited else in_words(sent)
        judgement = judge_answer(self.form, self._post(sent, fields or {}, edited), Expect.REFUSE, called)
        if self.form.verify.via is VerifyVia.LOOKUP and judgement.verdict.status is VerifyStatus.PASS:
            judgement = judge_verdict(self.form, self._ask_verifier(None), Expect.REFUSE, called)
        if judgement.verdict.status is VerifyStatus.PASS:  # what should have been refused has its effect all the same
            self._tell_created()
        return self._conclude(judgement)

    def verify_expecting_refusal(self, sent: Solution) -> Outcome:
        """Return whether the endpoint or the vendor refuses what is sent as a token; the store is not touched."""
        self.expect = Expect.REFUSE
        return self._conclude(judge_verdict(self.form, self._ask_verifier(sent), Expect.REFUSE, in_words(sent)))

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
        line = self._written(attempt_line(self._about, self.request, self.form, ended, id=self.id, ts=self._now()))
        if self._outcome.fault is not None:
            self._services.evidence.keep(line, self._outcome, self._steps.exchanges.kept)

    def _written(self, line: AttemptLine) -> AttemptLine:
        """Write the line with what extensions add to it; without it, if an interrupt ends them."""
        try:
            line = replace(line, extra=self._services.extensions.extra(line))
        finally:
            self._services.records.write(line)
        return line

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
        """Return an attempt on the form's freshly opened page with a token of its own key; it is recorded as this one.

        The form may have kept what the first submit said of the person, where only a lookup tells of the refusal.
        """
        kept = self.form.verify.via is VerifyVia.LOOKUP
        identity = self.identity.numbered(_CONFIRMATION_NUMBER) if kept else self.identity
        request = replace(self.request, subject=f"{self.request.subject} confirmation", fresh=True)
        another = Attempt(request, self._services, identity=identity)
        another.phase, another.tally, another._steps = Phase.STARTED, self.tally, self._steps
        shared = self._hand.shared if self._hand is not None else None
        another.open()
        another.obtain(replace(shared, claimed=None) if shared else None)
        self._hand = another._hand
        return another

    # How the steps are done.

    def _submitted(self, fields: Mapping[str, str] | None) -> Judgement:
        self._await_turn()
        solution = self._spend()
        assert self._hand is not None, "obtain() comes first"
        with self._hand.given_back_if_unsent():
            answer = self._post(solution, fields or {})
        judgement = judge_answer(self.form, answer, Expect.ACCEPT)
        return self._looked_up(judgement) if judgement.result is Result.OK else judgement

    def _verified(self) -> Judgement:
        return judge_verdict(self.form, self._ask_verifier(self._spend()), Expect.ACCEPT)

    def _await_turn(self) -> None:
        """Wait as the form's rate asks, before the token is spent: it may expire meanwhile and is made anew then."""
        if self.form.spacing:
            with self._step("rate") as deadline:
                wait_for_turn(self.form, self.page.page.origin, self._services.obtainer, deadline)

    def _spend(self) -> Solution:
        """Consume the token; one that has expired is made anew in what is left of the attempt's seconds."""
        assert self.token is not None, "obtain() comes first"
        with self._step("blocked") as deadline:
            try:
                return self.token.take(within=deadline.remaining())
            except ValueError as before:
                raise ConfigError(
                    f"this token of form {self.form.slug!r} cannot be submitted, {before}: ask captcha_token for "
                    "another, or see it refused with expect='refuse'"
                ) from None

    def _post(self, solution: Solution | None, fields: Mapping[str, str], edited: Edited | None = None) -> Answer:
        page, filled, grants = self.page, self._fields(fields), self._services.grants
        with self._step("submit", self._services.timeouts.submit) as deadline:
            if edited is None:
                self.answer = page.submit(solution, filled, grants, deadline)
            else:
                self.answer = page.send(edited.edit(page.draft(solution, filled)), grants, deadline)
            self.phase = Phase.SUBMITTED
        return self.answer

    def _looked_up(self, accepted: Judgement) -> Judgement:
        """Return what the backend recorded of an accepted submit and whether that had its effect, as configured."""
        self._tell_created()
        if self.form.verify.via is VerifyVia.LOOKUP:
            accepted = judge_verdict(self.form, self._ask_verifier(None), Expect.ACCEPT)
        if self.form.confirm is None or accepted.result is not Result.OK:
            return accepted
        question = EffectQuestion(self.form, self.page.page, self.identity, self._placeholders())
        with self._step("confirm", self.form.confirm.within) as deadline:
            return judge_effect(accepted, question, self._services.effects, self._services.obtainer.stop, deadline)

    def _ask_verifier(self, solution: Solution | None) -> Verdict:
        context = self._placeholders()
        with self._step("verify", self._services.timeouts.verify) as deadline:
            return self._services.verifier_of(self.form).verify(
                self.form, self.page.challenge, solution, context, self._services.grants, deadline
            )

    def _conclude(self, judgement: Judgement) -> Outcome:
        self.phase = Phase.VERIFIED
        self._outcome = replace(judgement.outcome(self.expect), seconds=self._all_seconds())
        if self.expect is Expect.ACCEPT:
            self._close_key(judgement)
        return self._outcome

    def _close_key(self, judgement: Judgement) -> None:
        if self._hand is not None:
            self._hand.close(judgement, self.page.challenge)

    def _tell_created(self) -> None:
        made = [effect for effect in self.form.effects if effect is not Effect.NONE]
        if made:
            data = {"slug": self.form.slug, "effects": ",".join(made), "identity": self.identity.id}
            if self.form.cleanup is not None:  # who removes it needs to know what it is called on the site
                data |= {"email": self.identity.email, "username": self.identity.username}
            self._services.emit(events.Event(events.CREATED, data))

    def _order(self, shared: SharedKey | None, deadline: Deadline) -> Order:
        site, request = self.page.page.origin, self.request
        own = key_of(self._services, self.form, site, subject=request.subject, ordinal=request.ordinal)
        return Order(
            key=shared.key if shared else own,
            challenge=self.page.challenge,
            grants=self._services.grants,
            times=times_of(self._services, self.form),
            deadline=deadline,
            fresh=request.fresh,
            shared_as=shared.fingerprint if shared else None,
        )

    def _placeholders(self) -> dict[str, str]:
        return placeholder_values(self.identity, run_id=self._about.run_id, env=self._about.env)

    def _fields(self, given: Mapping[str, str]) -> dict[str, str]:
        values = self._placeholders()
        configured = {name: fill(template, values) for name, template in self.form.templates.items()}
        return configured | dict(self._services.field_values(self.form)) | dict(given)

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


def _unknown_form(name: str, services: Services) -> ConfigError:
    return UnknownName.among("form", name, services.forms, where=f"environment {services.about.env!r}")
