"""The turn of a submit at the form's rate, and the effect it must have had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.ports import EffectQuestion
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import BudgetExhausted, VerifierError
from pytest_captcha_qa.model.attempt import AttemptRequest, Fault, Outcome, Result, VerifyStatus
from pytest_captcha_qa.model.form import ConfirmSpec, Effect, FormSpec, VariantSpec
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.testing import Bench, ScriptedDriver, form, refused


class ScriptedEffects:
    """Lacks what its script says, one after the other; when it is used up the effect shows."""

    def __init__(self, script: Iterable[str | VerifierError] = ()) -> None:
        self._script = iter(script)
        self.asked: list[EffectQuestion] = []

    def lacking(self, question: EffectQuestion, deadline: Deadline) -> str | None:
        self.asked.append(question)
        said = next(self._script, None)
        if isinstance(said, VerifierError):
            raise said
        return said


SILENT = VerifierError("the mailbox does not answer")
CONFIRMED = form(confirm=ConfirmSpec(url="/mail", within=5.0))


def run(bench: Bench, effects: ScriptedEffects | None = None, subject: str = "subject") -> Outcome:
    services = replace(bench.services(), effects=effects or ScriptedEffects())
    return run_attempt(AttemptRequest(next(iter(services.forms)), subject), services)


def line(bench: Bench) -> AttemptLine:
    [last] = [line for line in bench.records.lines[-1:] if isinstance(line, AttemptLine)]
    return last


def at_rate(seconds: float, **more: object) -> FormSpec:
    return form(spacing=seconds, **more)


# The effect.


@pytest.mark.parametrize(
    "script", [[], ["no mail", "no mail"], [SILENT, "no mail"]], ids=["at once", "later", "silent"]
)
def test_an_effect_that_shows_in_time_confirms_the_submit(script: list[str | VerifierError]) -> None:
    bench, effects = Bench(forms=[CONFIRMED]), ScriptedEffects(script)

    outcome = run(bench, effects)

    assert outcome
    assert len(effects.asked) == len(script) + 1
    assert line(bench).seconds["confirm"] == pytest.approx(len(script))
    question = effects.asked[0]
    assert question.context["identity.email"] == question.identity.email


def test_an_effect_that_never_shows_is_the_products_fault_although_the_token_was_taken() -> None:
    bench, effects = Bench(forms=[CONFIRMED]), ScriptedEffects(["no mail"] * 99)

    outcome = run(bench, effects)

    assert (outcome.verdict.status, outcome.result, outcome.fault) == (VerifyStatus.PASS, Result.FAILED, Fault.PRODUCT)
    assert outcome.verdict.reason == "accepted, but the effect never showed: no mail"
    assert line(bench).error == {"code": "effect_missing", "message": outcome.verdict.reason}
    assert line(bench).seconds["confirm"] == pytest.approx(4.75)
    assert len(bench.driver.opened) == 1  # one token is enough to know


def test_an_effect_nobody_can_tell_of_is_not_held_against_the_product() -> None:
    bench = Bench(forms=[CONFIRMED])

    with pytest.raises(VerifierError, match="the mailbox does not answer"):
        run(bench, ScriptedEffects([SILENT] * 99))
    assert (line(bench).outcome, line(bench).fault) == ("indeterminate", "infrastructure")


def test_the_effect_of_a_refused_submit_is_not_looked_for() -> None:
    bench, effects = Bench(forms=[CONFIRMED], driver=ScriptedDriver(answers=[refused()] * 9)), ScriptedEffects()

    assert not run(bench, effects)
    assert effects.asked == []


# The rate.


def test_submits_of_all_workers_keep_the_forms_distance() -> None:
    bench = Bench(forms=[at_rate(12.0)])
    first, second = run(bench, subject="one"), run(bench, subject="two")

    assert (first.seconds["rate"], second.seconds["rate"] > 0) == (0, True)
    assert second.seconds["rate"] + second.seconds["blocked"] == pytest.approx(12, abs=0.5)


def test_a_form_without_a_rate_does_not_wait() -> None:
    assert "rate" not in run(Bench()).seconds


def test_a_submit_that_must_be_refused_waits_for_its_turn_too() -> None:
    bench = Bench(forms=[at_rate(12.0)], driver=ScriptedDriver(answers=[refused(), refused()]))
    for _ in range(2):
        with Attempt(AttemptRequest("signup", "subject"), bench.services()) as attempt:
            attempt.start()
            attempt.open()
            attempt.submit_expecting_refusal(Solution.of_text("x"))

    assert line(bench).seconds["rate"] == pytest.approx(12)


def test_a_turn_that_comes_too_late_is_our_own_limit_and_the_token_is_kept() -> None:
    bench = Bench(forms=[at_rate(3600.0)])
    run(bench)

    with pytest.raises(BudgetExhausted, match=r"the rate of form 'signup' .* gives this attempt its turn in"):
        run(bench, subject="another")
    assert [len(opened.posted) for opened in bench.driver.opened] == [1, 0]
    assert [state.state for state in bench.store._keys.values()].count("ready") == 1


# Variants and traces.


def test_a_variant_is_recorded_under_the_slug_and_has_tokens_of_its_own() -> None:
    plain = form(variants=(VariantSpec("ru", {"Accept-Language": "ru"}),))
    bench = Bench(forms=[plain, *plain.variant_forms()])
    services = bench.services()
    for name in ("signup", "signup:ru"):
        assert run_attempt(AttemptRequest(name, "subject"), services)

    attempts = [line for line in bench.records.lines if isinstance(line, AttemptLine)]
    assert [(attempt.slug, attempt.variant) for attempt in attempts] == [("signup", None), ("signup", "ru")]
    assert len(bench.store._keys) == 2


@pytest.mark.parametrize(("cleanup", "named"), [(None, False), ("flows:remove", True)])
def test_who_was_created_is_told_to_those_who_clean_up_only(cleanup: str | None, named: bool) -> None:
    bench = Bench(forms=[form(effects=(Effect.ACCOUNT,), cleanup=cleanup)])
    run(bench)

    [created] = [event for event in bench.events if event.name == events.CREATED]
    assert ("email" in created.data, "username" in created.data) == (named, named)
