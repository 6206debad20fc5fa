"""A good token where it is not good."""

from __future__ import annotations

from pytest_captcha_qa.conformance.judge import Judged, inconclusive, not_applicable
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe
from pytest_captcha_qa.conformance.trial import Trial, around_the_check
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.probing import Severity


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
    if not trial.others:
        return not_applicable("no other form of its type is configured outside of its sitekey_group")
    other = trial.others[0]
    return trial.post(f"a fresh token of form {other.slug!r}", _as_it_is, token=trial.fresh(other))


def kept_verdict(trial: Trial) -> Judged:
    """No captcha field, in the session whose control was accepted."""
    if trial.form.probes.grace:
        return not_applicable("the team grants a grace after a success (policy.grace)")
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
        of_another_form, keys=Keys.REAL_LIFE,
    ),
    Probe(
        "M36", Family.REPLAY, "a success is remembered", Severity.MEDIUM, ("CWE-294",),
        "no captcha field, in a session that has just had a success", "refused, unless a grace is documented",
        around_the_check(kept_verdict), keys=Keys.REAL_LIFE,
    ),
)  # fmt: skip
