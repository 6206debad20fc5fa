"""Nothing, or something made up, in the token's place."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pytest_captcha_qa.conformance.judge import Judged, inconclusive, unvarying
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import GATEWAY_STATUSES
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Effect
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity

_UNSAFE = ProbeVerdict.UNSAFE
_UNKNOWN = ProbeVerdict.INCONCLUSIVE
_TWO = 2
_OF_OTHERS = GATEWAY_STATUSES | {429}  # a gateway's or a limit's answer is not about the person
_BLANKS = {
    "an empty token": "",
    "a token of spaces": "   ",
    "the token null": "null",
    "the token undefined": "undefined",
}


def _holding(value: object, draft: Draft) -> Draft:
    return draft.with_token(value)


_DATA = ("{", "[")  # JSON, such as a list of what is wrong with which value: a script reads it, no form sends it again


def no_check(trial: Trial) -> Judged:
    """No captcha field; and, only to tell it from M02 where that was accepted, a made-up token."""
    missing = trial.bare()
    if not missing.accepted:
        return missing
    if not trial.declares_effects:
        return missing.saying(
            f"{missing.reason}; without `effects` no second submit tells whether any token is checked"
        )
    made_up = trial.post("a made-up token", partial(_holding, MADE_UP))
    if made_up.accepted:
        return made_up.saying(f"{missing.reason}, and so was a made-up token: nothing is checked")
    # M02 tells of it, from the same submit.
    said = f"a made-up token was refused, so tokens are checked; but {missing.reason}"
    return replace(missing.saying(said, ProbeVerdict.SAFE), accepted=False)


def missing(trial: Trial) -> Judged:
    """No captcha field at all."""
    return trial.bare()


def blank(trial: Trial) -> Judged:
    """The field is there and says nothing."""
    return trial.each(partial(trial.post, called, partial(_holding, value)) for called, value in _BLANKS.items())


def made_up(trial: Trial) -> Judged:
    """A token that nobody has issued, and what a widget's field holds before its token."""
    values = {"a made-up token": MADE_UP}
    values |= {f"the text {text}": text for text in facts(trial.form.type).before_solution}
    return trial.each(partial(trial.post, called, partial(_holding, value)) for called, value in values.items())


def not_reset(trial: Trial) -> Judged:
    """A made-up token, which must not stand in the page that comes back; and that must offer the widget again."""
    judged = trial.post("a made-up token", partial(_holding, MADE_UP))
    if not judged.safe or judged.answer is None:
        return judged
    text = judged.answer.text
    if MADE_UP in text and not text.lstrip().startswith(_DATA):
        return judged.saying("a refused token stands in the answer and would be sent again", ProbeVerdict.UNSAFE)
    shows_form = all(f'name="{name}"' in text for name in trial.form.fields) and "<form" in text
    keys = trial.seen().named_keys
    if shows_form and keys and not any(key in text for key in keys):
        return judged.saying("the form is shown again without a widget", ProbeVerdict.UNSAFE)
    return judged.saying("the answer does not hold the refused token, and its form, if any, has a widget")


def oracle(trial: Trial) -> Judged:
    """A made-up token for the person of the control, who is known now, and for somebody new."""
    control = trial.control()
    if control.identity is None:
        return inconclusive(f"nobody is known to the site: {control.failed}")
    answers: list[Answer] = []
    for called, identity in (("a known person", control.identity), ("somebody new", None), ("somebody else", None)):
        judged = trial.post(f"a made-up token of {called}", partial(_holding, MADE_UP), identity=identity)
        if judged.answer is None or judged.accepted or judged.doubtful or judged.answer.status in _OF_OTHERS:
            return judged
        answers.append(judged.answer)
        if len(answers) == _TWO and _told(answers[0]) == _told(answers[1]):
            return judged.saying("with a made-up token the answers about a known person and a new one are alike")
    return _compared(judged, *answers)


def _without_account(trial: Trial) -> str | None:
    known = Effect.ACCOUNT in trial.form.effects
    return None if known else "a success leaves no account that an answer could tell of (effects)"


def _without_confirm(trial: Trial) -> str | None:
    shown = trial.form.confirm is not None
    return None if shown else "nothing shows whether a submit had its effect (forms.NAME.confirm)"


def _compared(judged: Judged, known: Answer, new: Answer, other: Answer) -> Judged:
    """Return what the answers come to: what differs between two new people tells nothing of a known one."""
    for told in (_told, _kind):
        if told(known) != told(new) == told(other):
            return judged.saying("with a made-up token the answers about a known person and a new one differ", _UNSAFE)
    return judged.saying("the answers to a made-up token differ each time, about new people, too", _UNKNOWN)


def _told(answer: Answer) -> tuple[object, ...]:
    return (*_kind(answer), unvarying(answer.text))


def _kind(answer: Answer) -> tuple[object, ...]:
    return answer.status, answer.location.path if answer.location is not None else None


def effect_first(trial: Trial) -> Judged:
    """A made-up token for a new person; then a look whether that has had its effect."""
    return trial.post("a made-up token", partial(_holding, MADE_UP), effect=True)


PROBES = (
    Probe(
        "M01", Family.TOKEN, "no server check", Severity.CRITICAL, ("CWE-602", "WSTG-ATHN-03", "ASVS 2.2.2"),
        "all fields and no captcha field; where that is accepted, a made-up token", "refused, no effect",
        no_check, accepts=2, implies=("M02", "M03", "M04", "M05", "M06", "M12", "M18", "M19", "M27", "M35", "M37"),
    ),
    Probe(
        "M02", Family.TOKEN, "a missing field skips the check", Severity.CRITICAL, ("CWE-602", "WSTG-ATHN-03"),
        "all fields and no captcha field", "refused", missing, implies=("M18",),
    ),
    Probe(
        "M03", Family.TOKEN, "an empty or blank token passes", Severity.CRITICAL, ("CWE-602", "WSTG-ATHN-03"),
        "an empty text, spaces, null, undefined", "refused", blank,
    ),
    Probe(
        "M04", Family.TOKEN, "any text passes as a token", Severity.CRITICAL, ("CWE-804", "WSTG-ATHN-03"),
        "a made-up text of realistic length; what the field holds before a solution", "refused", made_up,
        keys=Keys.JUDGED, implies=("M05", "M06", "M12", "M18", "M19", "M22", "M27", "M35", "M37"),
    ),
    Probe(
        "M27", Family.TOKEN, "a side effect before the check", Severity.HIGH, ("CWE-696", "ASVS 2.3.3"),
        "a made-up token for a new person, then what `confirm` shows", "nothing is created or sent", effect_first,
        keys=Keys.JUDGED, meaningless=_without_confirm,
    ),
    Probe(
        "M34", Family.TOKEN, "known people are told before the check", Severity.MEDIUM, ("CWE-204", "WSTG-IDNT-04"),
        "a made-up token for the person of the control and for somebody new; where these differ, for another new one",
        "the same answer", oracle,
        keys=Keys.JUDGED, meaningless=_without_account,
    ),
    Probe(
        "M29", Family.TOKEN, "no new challenge after a refusal", Severity.MEDIUM, ("CWE-1059",),
        "a made-up token, then the answer", "a new challenge is offered; the old token is not in it", not_reset,
        keys=Keys.JUDGED,
    ),
)  # fmt: skip
