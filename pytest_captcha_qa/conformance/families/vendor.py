"""What the backend makes of the vendor's answer; a stand-in gives it, so nothing of a vendor is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pytest_captcha_qa.conformance.judge import Harmless, Judged, never, not_applicable
from pytest_captcha_qa.conformance.probe import Family, Probe
from pytest_captcha_qa.conformance.trial import Make, Trial
from pytest_captcha_qa.conformance.vendor import Vendor
from pytest_captcha_qa.engine.ports import OpenedForm
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Answer as SiteAnswer
from pytest_captcha_qa.model.probing import Fault, ProbeVerdict, Severity
from pytest_captcha_qa.model.token import Solution

_SCORED = frozenset({CaptchaType.RECAPTCHA_V3, CaptchaType.RECAPTCHA_ENTERPRISE})
_RISKS = frozenset({CaptchaType.HCAPTCHA})
_WITHOUT_VENDOR = frozenset({CaptchaType.ALTCHA, CaptchaType.IMAGE})
_WITHOUT_HOSTNAME = frozenset({CaptchaType.GEETEST_V3, CaptchaType.GEETEST_V4, CaptchaType.FRIENDLY_V2})
_WITH_SUCCESS = frozenset(
    {
        CaptchaType.RECAPTCHA_V2, CaptchaType.RECAPTCHA_V2_INVISIBLE, CaptchaType.RECAPTCHA_V3, CaptchaType.TURNSTILE,
        CaptchaType.HCAPTCHA, CaptchaType.FRIENDLY_V2,
    }
)  # fmt: skip
_OLDER = 5.0  # seconds beyond the validity
_SLOW = 20.0  # seconds; the longest time-out of the libraries that were looked at is ten
_STEP = 0.1
_LATER = 503
_FINGERPRINT = 16  # digits of SHA-256, by which the stand-in's log names a token


class Answer(NamedTuple):
    """One answer of the vendor, in words and as the stand-in takes it; `fault`: what a policy may call it."""

    called: str
    outcome: Mapping[str, Any]
    fault: Fault | None = None


_FAILURES = (
    *(Answer(f"a token that the vendor answers with {status}", {"status": status}) for status in (400, 401, 403, 429)),
    *(
        Answer(f"a token that the vendor answers with {status}", {"status": status, "body": "html"}, Fault.SERVER_ERROR)
        for status in (500, 503)
    ),
    Answer("a token at which the vendor ends the connection", {"body": "reset"}, Fault.CONNECTION),
    Answer("a token of which the vendor says that the secret is wrong", {"code": "invalid-input-secret"}),
    Answer("a token of which the vendor says that it has a fault", {"code": "internal-error"}),
)
_LATE_ANSWER = Answer("a token with a slow answer", {"delay": _SLOW}, Fault.TIMEOUT)
_UNREADABLE = tuple(
    Answer(f"a token that the vendor answers with {called}", {"body": body}, Fault.UNREADABLE)
    for called, body in (
        ("HTML", "html"), ("nothing", "empty"), ("a list", "list"), ("null", "null"), ("half an object", "truncated"),
        ("a redirect to HTML", "redirect_html"),
    )
)  # fmt: skip
_NO_SUCCESS = (
    Answer("a token that the vendor refuses without a code", {"code": ""}),
    Answer("a token without `success` in the answer", {"without": ["success"]}),
    Answer("a token with `success` 0", {"values": {"success": 0}}),
    Answer("a token with `success` null", {"values": {"success": None}}),
)


def _as_it_is(draft: Draft) -> Draft:
    return draft


def _vendor(trial: Trial) -> Vendor:
    assert trial.lab.vendor is not None, "the runner sends nothing of this family without one"
    return trial.lab.vendor


def _made(trial: Trial, outcome: Mapping[str, Any], age: float = 0.0) -> Make:
    """Return what makes a token of the opened page about which the vendor will answer like this."""

    def make(opened: OpenedForm) -> Solution:
        grant = trial.services.grants.grant(opened.page)
        return _vendor(trial).issue(opened.challenge, grant, age=age, outcome=outcome)

    return make


def _says_later(answer: SiteAnswer) -> bool:
    """Return whether the site asks the visitor to come back later: a sound answer while the vendor is in trouble."""
    return answer.status == _LATER


def _answered(trial: Trial, answers: Iterable[Answer], harmless: Harmless = never) -> Judged:
    """Return what the form makes of tokens with these answers, but for those at which it is open on purpose."""
    asked = [answer for answer in answers if answer.fault is None or answer.fault not in trial.form.probes.open_for]
    if not asked:
        return not_applicable("the team has chosen to be open at this fault (policy.open_for)")
    return trial.each(
        partial(trial.post, answer.called, _as_it_is, token=_made(trial, answer.outcome), harmless=harmless)
        for answer in asked
    )


def _guarded(run: Callable[[Trial], Judged]) -> Callable[[Trial], Judged]:
    """Return a probe that says something only where tokens are judged at all."""

    def guarded(trial: Trial) -> Judged:
        if trial.form.type in _WITHOUT_VENDOR:
            return not_applicable(f"{trial.form.type} is checked by the site itself, no vendor is asked")
        if trial.takes_made_up():
            return not_applicable("the form takes a made-up token, so the vendor's answer means nothing")
        return run(trial)

    return guarded


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
    if trial.form.type not in _SCORED:
        return not_applicable(f"{trial.form.type} has no score")
    below = round((trial.form.min_score or 0.3) - _STEP, 2)
    answers = [Answer(f"a token with the score {score}", {"score": score}) for score in (0.0, below)]
    missing = Answer("a token without a score", {"without": ["score", "riskAnalysis.score"]})
    return _answered(trial, [*answers, missing])


def high_risk(trial: Trial) -> Judged:
    """A success with a high risk, where the vendor's score is one."""
    if trial.form.type not in _RISKS or not trial.form.probes.risk_score:
        return not_applicable("the backend is not said to judge a risk score (policy.risk_score)")
    return _answered(trial, [Answer("a token with the risk 0.95", {"score": 0.95})])


def foreign_hostname(trial: Trial) -> Judged:
    """A success for another host."""
    if trial.form.type in _WITHOUT_HOSTNAME:
        return not_applicable(f"the answer about {trial.form.type} names no hostname")
    if not trial.form.probes.own_hostname_check:
        return not_applicable("vendors check the hostname unless that is switched off (policy.own_hostname_check)")
    return _answered(trial, [Answer("a token of another hostname", {"hostname": "elsewhere.example"})])


def no_success(trial: Trial) -> Judged:
    """Answers that are no success and name no code."""
    answers = _NO_SUCCESS if trial.form.type in _WITH_SUCCESS else _NO_SUCCESS[:1]
    return _answered(trial, answers)


def parameters(trial: Trial) -> Judged:
    """A token that holds another parameter, which must reach the vendor inside of it."""
    vendor = _vendor(trial)
    since = vendor.mark("M20")
    judged = trial.post("a token with &canary=1 in it", _with_canary, token=_made(trial, {}))
    if any("canary" in call.get("names", ()) for call in vendor.calls(since)):
        return judged.saying("a parameter within the token reached the vendor as its own", ProbeVerdict.UNSAFE)
    return judged


def _with_canary(draft: Draft) -> Draft:
    values = dict(draft.pairs)
    token = next((str(values[name]) for name in draft.token_fields if name in values), "")
    return draft.with_token(f"{token}&canary=1")


def asked_twice(trial: Trial) -> Judged:
    """How often the backend has asked about the control's token."""
    control = trial.control()
    text = control.token.text if control.token is not None else ""
    known = hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT]
    calls = [call for call in _vendor(trial).calls(0) if call.get("token") == known]
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
        id, Family.VENDOR, title, severity, standards, provoked, safe, _guarded(run), needs_standin=True, **more
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
        "successes with the score 0.0, below min_score, and none", "refused", low_score,
    ),
    _probe(
        "M10", "a high risk passes", Severity.HIGH, ("CWE-804",), "a success with the risk 0.95", "refused", high_risk,
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
        "M13", "open when the vendor is slow", Severity.HIGH, ("CWE-636",), "an answer after 20 s",
        "refused, unless policy.open_for has timeout",
        lambda trial: _answered(trial, [_LATE_ANSWER], _says_later),
    ),
    _probe(
        "M14", "open when the vendor fails", Severity.HIGH, ("CWE-636",),
        "400, 401, 403, 429, 500, 503, a closed connection, invalid-input-secret, internal-error",
        "refused, unless policy.open_for has server_error, connection; 4xx always",
        lambda trial: _answered(trial, _FAILURES, _says_later),
    ),
    _probe(
        "M15", "open when the answer is no JSON object", Severity.HIGH, ("CWE-636",),
        "HTML, nothing, [], null, half an object, a redirect to HTML",
        "refused without a 500, unless policy.open_for has unreadable",
        lambda trial: _answered(trial, _UNREADABLE, _says_later),
    ),
    # Last: few backends look at the hostname, and a family stops at its first unexpected effect.
    _probe(
        "M11", "the hostname is ignored", Severity.MEDIUM, ("CWE-290",), "a success for another host",
        "refused where the key's own domain check is off", foreign_hostname,
    ),
)  # fmt: skip
