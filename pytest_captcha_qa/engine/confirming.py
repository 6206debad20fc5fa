"""A second fresh token where a first one was refused: it tells the form's fault from the token's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.blame import Control, Judgement, confirmed, control_of, unconfirmed
from pytest_captcha_qa.engine.feedback import tell_provider
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    DeadlineExceeded,
    ProviderError,
    StoreError,
    TargetUnavailable,
    VerifierError,
)
from pytest_captcha_qa.model.attempt import AttemptRequest, Result
from pytest_captcha_qa.model.form import FormSpec, VerifyVia
from pytest_captcha_qa.model.identity import Identity

# What may keep a second token from being tried; the first one's refusal then says nothing about the form.
_UNCONFIRMED = (
    BudgetExhausted,
    BalanceExhausted,
    ProviderError,
    DeadlineExceeded,
    TargetUnavailable,
    VerifierError,
    StoreError,
)
# Far from the numbers that the attempts of a test get.
_NUMBER = 99


def confirm(
    first: Judgement, second: Callable[[], Judgement], form: FormSpec, services: Services, *, task_id: str | None
) -> Judgement:
    """Return what a second token adds to a first one's refusal; `task_id`: the task of the first one.

    Raises:
        CaptchaQAError: the second try met something that speaks for itself, such as a page that is broken now.
    """
    told: dict[str, events.EventValue] = {
        "slug": form.slug,
        "provider": services.about.provider,
        "task_id": task_id,
        "verify_status": str(first.verdict.status),
        "reason": first.verdict.reason,
    }
    services.emit(events.Event(events.CONFIRMATION, told))
    try:
        judgement = second()
    except _UNCONFIRMED as error:
        return unconfirmed(first, error.message)
    if judgement.result is Result.OK:
        services.emit(events.Event(events.TOKEN_REFUSED_ONCE, told))
        tell_provider(services, task_id, good=False)  # a form that refuses both says nothing about tokens
    return confirmed(judgement, _control(form, services))


def anew(first: Judgement, second: Callable[[], Judgement], form: FormSpec, services: Services) -> Judgement:
    """Return what a new token comes to in the place of a refused one that may have been used before (state.md, epoch).

    The refusal of the suspect one counts for nothing, also where no new one can be had.
    """
    services.emit(events.Event(events.TOKEN_RENEWED, {"slug": form.slug, "why": "suspect"}))
    try:
        return second()
    except _UNCONFIRMED as error:
        told = unconfirmed(first, f"{error.message}; it may have been used before the store was restarted")
        return replace(told, code=None)


def request_of_second(request: AttemptRequest) -> AttemptRequest:
    """Return the request for a second token, beside the first one's key."""
    return replace(request, subject=f"{request.subject} confirmation", fresh=True)


def person_of_second(form: FormSpec, first: Identity) -> Identity:
    """Return who submits the second token: the same person, but where only a lookup tells of a refusal.

    There the form may have kept what the first submit said of the person.
    """
    return first.numbered(_NUMBER) if form.verify.via is VerifyVia.LOOKUP else first


def _control(form: FormSpec, services: Services) -> Control:
    """Return what vouches for the tokens: how they are made, or another form that accepted one in this run."""
    others = [other.slug for other in services.forms.values() if other.type == form.type and other.slug != form.slug]
    accepted = services.obtainer.solver.admission.accepted_by(others)
    return control_of(services.about.key_mode, accepted, form.type)
