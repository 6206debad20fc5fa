"""What one person does at an opened form: fill it in, submit it, and ask what came of that."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.around import judge_effect, wait_for_turn
from pytest_captcha_qa.engine.blame import Judgement, judge_verdict
from pytest_captcha_qa.engine.ports import EffectQuestion, OpenedForm
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import Expect, Result, Verdict
from pytest_captcha_qa.model.draft import Edited
from pytest_captcha_qa.model.form import Effect, FormSpec, VerifyVia
from pytest_captcha_qa.model.identity import Identity, fill, placeholder_values
from pytest_captcha_qa.model.token import Solution


class Step(Protocol):
    """Measures what is done within it, and says until when."""

    def __call__(self, name: str, at_most: float | None = None) -> AbstractContextManager[Deadline]:
        """Give the step what is left of the attempt's seconds, or `at_most` so many of them."""


@dataclass
class Visit:
    """A form that one person has open; what is done there are steps of an attempt."""

    form: FormSpec
    page: OpenedForm
    identity: Identity
    services: Services
    step: Step

    def await_turn(self) -> None:
        """Wait as the form's rate asks, before the token is spent: it may expire meanwhile and is made anew then."""
        if self.form.spacing:
            with self.step("rate") as deadline:
                wait_for_turn(self.form, self.page.page.origin, self.services.obtainer, deadline)

    def post(self, solution: Solution | None, fields: Mapping[str, str], edited: Edited | None = None) -> Answer:
        """Return the site's answer to the filled form; `fields` override the configured ones."""
        filled, grants = self._filled(fields), self.services.grants
        with self.step("submit", self.services.timeouts.submit) as deadline:
            if edited is None:
                return self.page.submit(solution, filled, grants, deadline)
            return self.page.send(edited.edit(self.page.draft(solution, filled)), grants, deadline)

    def ask_verifier(self, solution: Solution | None) -> Verdict:
        """Return what the backend says of a token, or (None) of what this person has submitted."""
        context = self._placeholders()
        with self.step("verify", self.services.timeouts.verify) as deadline:
            return self.services.verifier_of(self.form).verify(
                self.form, self.page.challenge, solution, context, self.services.grants, deadline
            )

    def looked_up(self, accepted: Judgement) -> Judgement:
        """Return what the backend recorded of an accepted submit and whether that had its effect, as configured."""
        self.tell_created()
        if self.form.verify.via is VerifyVia.LOOKUP:
            accepted = judge_verdict(self.form, self.ask_verifier(None), Expect.ACCEPT)
        if self.form.confirm is None or accepted.result is not Result.OK:
            return accepted
        with self.step("confirm", self.form.confirm.within) as deadline:
            stop = self.services.obtainer.stop
            return judge_effect(accepted, self.effect_question, self.services.effects, stop, deadline)

    @property
    def effect_question(self) -> EffectQuestion:
        """What is asked to see whether this person's submit has had its effect."""
        return EffectQuestion(self.form, self.page.page, self.identity, self._placeholders())

    def tell_created(self) -> None:
        """Make an event of what an accepted submit has left on the site."""
        made = [effect for effect in self.form.effects if effect is not Effect.NONE]
        if made:
            data = {"slug": self.form.slug, "effects": ",".join(made), "identity": self.identity.id}
            if self.form.cleanup is not None:  # who removes it needs to know what it is called on the site
                data |= {"email": self.identity.email, "username": self.identity.username}
            self.services.emit(events.Event(events.CREATED, data))

    def _placeholders(self) -> dict[str, str]:
        about = self.services.about
        return placeholder_values(self.identity, run_id=about.run_id, env=about.env)

    def _filled(self, given: Mapping[str, str]) -> dict[str, str]:
        values = self._placeholders()
        configured = {name: fill(template, values) for name, template in self.form.templates.items()}
        return configured | dict(self.services.field_values(self.form)) | dict(given)
