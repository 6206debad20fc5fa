"""A good token where it is not good."""

from __future__ import annotations

from dataclasses import replace

from pytest_captcha_qa.conformance.judge import Judged, inconclusive
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe, around_the_check
from pytest_captcha_qa.conformance.trial import Trial
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity

_ALIKE = (
    "both forms show one sitekey and no different action, so that no backend can tell their tokens apart: "
    "give them different ones if they differ in risk, else one policy.sitekey_group"
)


def _as_it_is(draft: Draft) -> Draft:
    return draft


def used(trial: Trial) -> Judged:
    """The token of the control once more, from a new session and for another person."""
    control = trial.control()
    if control.token is None:
        return inconclusive(f"no token was accepted that could be sent again: {control.failed}")
    return trial.post("a used token", _as_it_is, token=control.token)


def of_another_form(trial: Trial) -> Judged:
    """A fresh token of another form of the same type."""
    other = trial.others[0]
    shown, token = trial.fresh_of(other)
    judged = trial.post(f"a fresh token of form {other.slug!r}", _as_it_is, token=token)
    own = trial.control().challenge
    if judged.accepted and own is not None and _marked(own) == _marked(shown):
        # It was counted; that no backend can tell the two apart is no reason to stop the family.
        return replace(judged, verdict=ProbeVerdict.INCONCLUSIVE, accepted=False, reason=f"{judged.reason}; {_ALIKE}")
    return judged


def _is_the_only_one(trial: Trial) -> str | None:
    return None if trial.others else "no other form of its type is configured outside of its sitekey_group"


def _has_grace(trial: Trial) -> str | None:
    return "the team grants a grace after a success (policy.grace)" if trial.form.probes.grace else None


def _marked(challenge: Challenge) -> tuple[str | None, ...]:
    """Return by what a backend can tell the tokens of one page from those of another."""
    return challenge.sitekey, challenge.action, challenge.cdata


def kept_verdict(trial: Trial) -> Judged:
    """No captcha field, in the session whose control was accepted."""
    control = trial.control()
    if control.services is None:
        return inconclusive(f"no session has had a success: {control.failed}")
    return trial.post(
        "no captcha field, after a success in the same session",
        lambda draft: draft.without_token(),
        services=control.services,
    )


PROBES = (
    Probe(
        "M05", Family.REPLAY, "a used token passes again", Severity.HIGH, ("CWE-294", "WSTG-ATHN-03"),
        "the same token twice, the second time in a new session with another person", "the second is refused",
        used, keys=Keys.REAL_LIFE, implies=("M06",),
    ),
    Probe(
        "M12", Family.REPLAY, "a token of another form passes", Severity.MEDIUM, ("CWE-290",),
        "a fresh token of another form of the same type", "refused if the forms differ in risk",
        of_another_form, keys=Keys.REAL_LIFE, meaningless=_is_the_only_one,
    ),
    Probe(
        "M36", Family.REPLAY, "a success is remembered", Severity.MEDIUM, ("CWE-294",),
        "no captcha field, in a session that has just had a success", "refused, unless a grace is documented",
        around_the_check(kept_verdict), keys=Keys.REAL_LIFE, meaningless=_has_grace,
    ),
)  # fmt: skip
