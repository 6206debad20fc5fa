"""What the backend makes of the vendor's answer; a stand-in gives it, so nothing of a vendor is asked."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pytest_captcha_qa.conformance.answers import BAD_CERTIFICATE, FAILURES, LATE_ANSWER, NO_SUCCESS, UNREADABLE, Answer
from pytest_captcha_qa.conformance.judge import Harmless, Judged, never, not_applicable
from pytest_captcha_qa.conformance.probe import Family, Probe
from pytest_captcha_qa.conformance.trial import Make, Trial
from pytest_captcha_qa.conformance.vendor import Vendor
from pytest_captcha_qa.engine.ports import OpenedForm
from pytest_captcha_qa.model.answer import Answer as SiteAnswer
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.probing import Fault, ProbeVerdict, Severity
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.verify.vendors import VENDORS, VendorShape

_OLDER = 5.0  # seconds beyond the validity
_STEP = 0.1
_LOWEST = 0.1  # what the vendors call very likely a bot
_LATER = 503
_NO_CERTIFICATE = "no bad certificate was tried, as the backend followed no redirect to https"
_FINGERPRINT = 16  # digits of SHA-256, by which the stand-in's log names a token

Meaningless = Callable[[Trial], str | None]


def _as_it_is(draft: Draft) -> Draft:
    return draft


def _vendor(trial: Trial) -> Vendor:
    assert trial.lab.vendor is not None, "the runner sends nothing of this family without one"
    return trial.lab.vendor


def _shape(trial: Trial) -> VendorShape:
    shape = VENDORS[trial.form.type]
    assert shape is not None, "`_unasked` keeps forms away that the site itself checks"
    return shape


def _made(trial: Trial, outcome: Mapping[str, Any], age: float = 0.0) -> Make:
    """Return what makes a token of the opened page about which the vendor will answer like this."""

    def make(opened: OpenedForm) -> Solution:
        return _vendor(trial).solution(opened.challenge, outcome, age=age)

    return make


def _says_later(answer: SiteAnswer) -> bool:
    """Return whether the site asks the visitor to come back later: a sound answer while the vendor is in trouble."""
    return answer.status == _LATER


def _answered(trial: Trial, answers: Iterable[Answer], harmless: Harmless = never) -> Judged:
    """Return what the form makes of tokens with these answers, but for those at which it is open on purpose."""
    asked = [answer for answer in answers if answer.fault is None or answer.fault not in trial.form.probes.open_for]
    return trial.each(
        partial(trial.post, answer.called, _as_it_is, token=_made(trial, answer.outcome), harmless=harmless)
        for answer in asked
    )


def _guarded(run: Callable[[Trial], Judged]) -> Callable[[Trial], Judged]:
    """Return a probe that says something only where tokens are judged at all."""

    def guarded(trial: Trial) -> Judged:
        if trial.takes_made_up():
            return not_applicable("the form takes a made-up token, so the vendor's answer means nothing")
        return run(trial)

    return guarded


def _unasked(meaningless: Meaningless, trial: Trial) -> str | None:
    """Return why a probe means nothing where no vendor is asked, else what `meaningless` says."""
    if VENDORS[trial.form.type] is None:
        return f"{trial.form.type} is checked by the site itself, no vendor is asked"
    return meaningless(trial)


def _always(trial: Trial) -> str | None:
    return None


def _open_for(fault: Fault, trial: Trial) -> str | None:
    chosen = fault in trial.form.probes.open_for
    return "the team has chosen to be open at this fault (policy.open_for)" if chosen else None


def _unscored(trial: Trial) -> str | None:
    return None if _shape(trial).scored else f"{trial.form.type} has no score"


def _without_risk(trial: Trial) -> str | None:
    judged = _shape(trial).risk and trial.form.probes.risk_score
    return None if judged else "the backend is not said to judge a risk score (policy.risk_score)"


def _without_hostname(trial: Trial) -> str | None:
    if not _shape(trial).names_host:
        return f"the answer about {trial.form.type} names no hostname"
    if not trial.form.probes.own_hostname_check:
        return "vendors check the hostname unless that is switched off (policy.own_hostname_check)"
    return None


def expired(trial: Trial) -> Judged:
    """A token that is older than its validity."""
    age = facts(trial.form.type).ttl + _OLDER
    return trial.post("an expired token", _as_it_is, token=_made(trial, {}, age))


def other_action(trial: Trial) -> Judged:
    """A success with another action."""
    challenge = trial.control().challenge
    if challenge is None or not challenge.action:
        return not_applicable("the form's widget names no action")
    return _answered(trial, [Answer("a token of another action", {"action": "another_action"})])


def low_score(trial: Trial) -> Judged:
    """Successes with too low a score, and without one."""
    least = trial.form.probes.least_score
    below = _LOWEST if least is None else max(0.0, round(least - _STEP, 2))
    answers = [Answer(f"a token with the score {score}", {"score": score}) for score in (0.0, below)]
    missing = Answer("a token without a score", {"without": ["score", "riskAnalysis.score"]})
    return _answered(trial, [*answers, missing])


def high_risk(trial: Trial) -> Judged:
    """A success with a high risk, where the vendor's score is one."""
    return _answered(trial, [Answer("a token with the risk 0.95", {"score": 0.95})])


def foreign_hostname(trial: Trial) -> Judged:
    """A success for another host."""
    return _answered(trial, [Answer("a token of another hostname", {"hostname": "elsewhere.example"})])


def failing(trial: Trial) -> Judged:
    """Answers that say that the vendor cannot or will not answer."""
    # In the vendor's own words, which a backend may know: an unknown code is M17.
    since = _vendor(trial).mark("M14")
    status, code = _shape(trial).wrong_secret
    wrong = Answer("a token of which the vendor says that the secret is wrong", {"status": status, "code": code})
    judged = _answered(trial, [*FAILURES, wrong], _says_later)
    if not judged.safe or Fault.CONNECTION in trial.form.probes.open_for:
        return judged
    came = any(str(entry.get("mark", "")).startswith(BAD_CERTIFICATE) for entry in _vendor(trial).calls(since))
    return judged if came else judged.saying(f"{judged.reason}; {_NO_CERTIFICATE}")


def no_success(trial: Trial) -> Judged:
    """Answers that are no success and name no code."""
    answers = NO_SUCCESS if _shape(trial).says_success else NO_SUCCESS[:1]
    return _answered(trial, answers, _says_later)


def parameters(trial: Trial) -> Judged:
    """A token that holds another parameter, which must reach the vendor inside of it."""
    vendor = _vendor(trial)
    since = vendor.mark("M20")
    canary = f"canary{secrets.token_hex(4)}"  # no other probe's, of another worker or run at the same stand-in
    judged = trial.post("a token with &canary=1 in it", partial(_with, canary), token=_made(trial, {}))
    if any(canary in call.get("names", ()) for call in vendor.calls(since, own=False)):
        return judged.saying("a parameter within the token reached the vendor as its own", ProbeVerdict.UNSAFE)
    return judged


def _with(canary: str, draft: Draft) -> Draft:
    values = dict(draft.pairs)
    token = next((str(values[name]) for name in draft.token_fields if name in values), "")
    return draft.with_token(f"{token}&{canary}=1")


def asked_twice(trial: Trial) -> Judged:
    """How often the backend has asked about the control's token."""
    control = trial.control()
    text = control.token.text if control.token is not None else ""
    known = hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT]
    calls = [call for call in _vendor(trial).calls(own=False) if call.get("token") == known]
    keys = {call.get("idempotency_key") or number for number, call in enumerate(calls)}
    exchange = f"{len(calls)} calls about one token"
    if not calls:
        return Judged(ProbeVerdict.INCONCLUSIVE, "the backend has not asked the stand-in about the control's token")
    if len(keys) > 1:
        return Judged(ProbeVerdict.UNSAFE, f"the backend asks the vendor {len(keys)} times about one token", exchange)
    return Judged(ProbeVerdict.SAFE, "the backend asks the vendor once about a token", exchange)


def _probe(
    id: str,
    title: str,
    severity: Severity,
    standards: tuple[str, ...],
    provoked: str,
    safe: str,
    run: Callable[[Trial], Judged],
    **more: Any,
) -> Probe:
    return Probe(
        id, Family.VENDOR, title, severity, standards, provoked, safe, _guarded(run), needs_standin=True,
        meaningless=partial(_unasked, more.pop("meaningless", _always)), **more,
    )  # fmt: skip


PROBES = (
    _probe(
        "M28", "the vendor is asked twice", Severity.MEDIUM, ("CWE-675",),
        "one good token, then the stand-in's log", "one call, or an idempotency_key", asked_twice,
    ),
    _probe(
        "M07", "an expired token passes", Severity.MEDIUM, ("CWE-613",),
        "a token that is older than its validity", "refused", expired,
    ),
    _probe(
        "M08", "the action is ignored", Severity.HIGH, ("CWE-290",), "a success with another action", "refused",
        other_action,
    ),
    _probe(
        "M09", "the score is ignored", Severity.HIGH, ("CWE-804",),
        "successes with the score 0.0, with 0.1 or just below policy.least_score, and none", "refused", low_score,
        meaningless=_unscored,
    ),
    _probe(
        "M10", "a high risk passes", Severity.HIGH, ("CWE-804",), "a success with the risk 0.95", "refused", high_risk,
        meaningless=_without_risk,
    ),
    _probe(
        "M16", "a refusal without a code passes", Severity.CRITICAL, ("CWE-636", "WSTG-ATHN-03"),
        "no `success`, or one that is false, 0, null, without a code", "refused", no_success,
    ),
    _probe(
        "M17", "an unknown code passes", Severity.HIGH, ("CWE-636",), "a refusal with a code nobody knows", "refused",
        lambda trial: _answered(trial, [Answer("a token refused with an unknown code", {"code": "no-such-code"})]),
    ),
    _probe(
        "M20", "the token is not encoded in the vendor's call", Severity.HIGH, ("CWE-88", "WSTG-INPV-04"),
        "a token with &canary=1 in it", "it reaches the vendor as one value", parameters,
    ),
    _probe(
        "M13", "open when the vendor is slow", Severity.HIGH, ("CWE-636",),
        "a refusal that comes after 20 s",
        "refused, unless policy.open_for has timeout",
        lambda trial: _answered(trial, [LATE_ANSWER], _says_later), meaningless=partial(_open_for, Fault.TIMEOUT),
    ),
    _probe(
        "M14", "open when the vendor fails", Severity.HIGH, ("CWE-636",),
        "400, 401, 403, 429, 500, 503, a closed connection, internal-error, invalid-input-secret or its like, a "
        "redirect to a server with a bad certificate",
        "refused, unless policy.open_for has server_error, connection; 4xx always",
        failing,
    ),
    _probe(
        "M15", "open when the answer is no JSON object", Severity.HIGH, ("CWE-636",),
        "HTML, nothing, [], null, half an object, a redirect to HTML",
        "refused without a 500, unless policy.open_for has unreadable",
        lambda trial: _answered(trial, UNREADABLE, _says_later), meaningless=partial(_open_for, Fault.UNREADABLE),
    ),
    # Last: few backends look at the hostname, and a family stops at its first unexpected effect.
    _probe(
        "M11", "the hostname is ignored", Severity.MEDIUM, ("CWE-290",), "a success for another host",
        "refused where the key's own domain check is off", foreign_hostname, meaningless=_without_hostname,
    ),
)  # fmt: skip
