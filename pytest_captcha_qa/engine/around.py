"""What surrounds a submit: its turn at the form's rate before it, and the effect it must have after it."""

from __future__ import annotations

from dataclasses import replace

from pytest_captcha_qa.engine.blame import Judgement
from pytest_captcha_qa.engine.obtaining import Obtainer
from pytest_captcha_qa.engine.ports import EffectCheck, EffectQuestion
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import BudgetExhausted, VerifierError
from pytest_captcha_qa.model.attempt import Fault, Result
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.url import Origin

PAUSE = 1.0
LAST_LOOK = 0.25
"""Seconds between two looks for an effect, and what is kept for the last one to be answered in."""


def wait_for_turn(form: FormSpec, site: Origin, obtainer: Obtainer, deadline: Deadline) -> None:
    """Wait until the form's rate, shared by all workers that test this site, allows a submit.

    Raises:
        BudgetExhausted: that is later than the attempt can wait.
        Stopped: an end was asked for while waiting.
    """
    limits = obtainer.solver.admission.limits
    seconds = limits.next_allowed(f"form {form.slug} of {site}", spacing=form.spacing)
    if seconds > deadline.remaining():
        raise BudgetExhausted(
            f"the rate of form {form.slug!r} (a submit every {form.spacing:g} s, by all workers) gives this attempt "
            f"its turn in {seconds:.0f} s, later than it can wait; let fewer tests submit it, or raise its rate"
        )
    obtainer.stop.wait(seconds)


def judge_effect(
    accepted: Judgement, question: EffectQuestion, check: EffectCheck, stop: Stop, deadline: Deadline
) -> Judgement:
    """Return the judgement on an accepted submit after looking for its effect until the deadline.

    Raises:
        VerifierError: what shows the effect did not answer when it was last asked.
        Stopped: an end was asked for while waiting.
    """
    while True:
        lacking = _look(check, question, deadline)
        if lacking is None:
            return accepted
        left = deadline.remaining() - LAST_LOOK
        if left <= 0:
            break
        stop.wait(min(PAUSE, left))
    if isinstance(lacking, VerifierError):
        raise lacking
    verdict = replace(accepted.verdict, reason=f"accepted, but the effect never showed: {lacking}")
    return replace(accepted, verdict=verdict, result=Result.FAILED, fault=Fault.PRODUCT, code="effect_missing")


def _look(check: EffectCheck, question: EffectQuestion, deadline: Deadline) -> str | VerifierError | None:
    try:
        return check.lacking(question, deadline)
    except VerifierError as unanswered:
        return unanswered.with_traceback(None)
