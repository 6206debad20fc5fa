"""Whose fault an attempt is where only the rest of its run can tell (contracts.md, "Whose fault")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_captcha_qa.model.attempt import GATEWAY_STATUSES, REFUSED_TWICE, Expect, Fault, Result
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.reporting.wording import counted

_Tokens = tuple[str, str, str, str]


def settled(attempts: Sequence[AttemptLine]) -> tuple[AttemptLine, ...]:
    """Return the attempts of one run, each with the fault that all of them together show, in whatever order they came.

    Two refused tokens are the form's fault if another form of the type accepted one of the same account. Gateway
    answers are the form's fault if most forms of the run answered themselves: all forms of an environment lie on one
    origin.
    """
    controls = _controls(attempts)
    gone, answering = _reachability(attempts)
    alone = gone if len(gone) <= len(answering) else set()
    return tuple(_settled(attempt, controls, alone, len(answering)) for attempt in attempts)


def _settled(attempt: AttemptLine, controls: dict[_Tokens, list[str]], alone: set[str], answering: int) -> AttemptLine:
    if _is_refused_twice(attempt):
        others = [slug for slug in controls.get(_tokens(attempt), ()) if slug != attempt.slug]
        if others:
            return _blamed(attempt, f"form {others[0]!r} of the same type has accepted a token of the same provider")
    if attempt.slug in alone and _met_a_gateway(attempt):
        return _blamed(attempt, f"{counted(answering, 'other form')} answered in the same run")
    return attempt


def _blamed(attempt: AttemptLine, why: str) -> AttemptLine:
    error = {**(attempt.error or {})}
    error["message"] = f"{error.get('message', 'no answer of its own')}; {why}, so the form is at fault"
    return replace(attempt, outcome=Result.FAILED.value, fault=Fault.PRODUCT.value, error=error)


def _controls(attempts: Iterable[AttemptLine]) -> dict[_Tokens, list[str]]:
    """Return for each kind of token the forms that accepted one."""
    found: dict[_Tokens, list[str]] = {}
    for attempt in attempts:
        if attempt.expect == Expect.ACCEPT and attempt.outcome == Result.OK:
            found.setdefault(_tokens(attempt), []).append(attempt.slug)
    return found


def _tokens(attempt: AttemptLine) -> _Tokens:
    return (attempt.captcha, attempt.account, attempt.provider, attempt.key_mode)


def _is_refused_twice(attempt: AttemptLine) -> bool:
    undetermined = attempt.fault == Fault.UNDETERMINED
    return undetermined and attempt.error is not None and attempt.error.get("code") == REFUSED_TWICE


def _reachability(attempts: Sequence[AttemptLine]) -> tuple[set[str], set[str]]:
    """Return the forms that only a gateway answered for, and those that answered themselves."""
    answering = {attempt.slug for attempt in attempts if _answered(attempt)}
    return {attempt.slug for attempt in attempts if _met_a_gateway(attempt)} - answering, answering


def _answered(attempt: AttemptLine) -> bool:
    """Return whether the form itself said something, be it that it is broken."""
    broken = attempt.outcome == Result.FAILED
    return broken or (attempt.http_status is not None and attempt.http_status not in GATEWAY_STATUSES)


def _met_a_gateway(attempt: AttemptLine) -> bool:
    return attempt.fault == Fault.INFRASTRUCTURE and attempt.http_status in GATEWAY_STATUSES
