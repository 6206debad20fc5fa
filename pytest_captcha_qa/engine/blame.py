"""What an answer of the site means, and whose fault it is when it is not what was expected.

The decision table of contracts.md ("Whose fault") as far as one attempt can tell; what only the other forms of the run
can tell is decided over its records, in `reporting.blaming`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import (
    GATEWAY_STATUSES,
    REFUSED_ONCE,
    REFUSED_TWICE,
    SCORE_OBSERVED,
    Expect,
    Fault,
    KeyMode,
    Outcome,
    Result,
    Verdict,
    VerifyStatus,
)
from pytest_captcha_qa.model.form import LOW_SCORE, FormSpec, ScorePolicy
from pytest_captcha_qa.model.token import Solution


@dataclass(frozen=True, slots=True)
class Control:
    """What shows that the tokens of an account are good; `sentence` says it, or that nothing does."""

    passed: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one answer, whether it was expected, and the fault if not.

    `code` goes into the record; `tokens` counts the fresh tokens it rests on, `control` tells what vouches for them.
    """

    verdict: Verdict
    result: Result
    fault: Fault | None = None
    code: str | None = None
    tokens: int = 1
    control: str | None = None

    @property
    def may_be_the_tokens_fault(self) -> bool:
        """Whether one fresh token was refused, so that a second one tells more."""
        return self.code == REFUSED_ONCE

    def outcome(self, expect: Expect) -> Outcome:
        """Return it as the outcome of an attempt."""
        return Outcome(
            result=self.result,
            verdict=self.verdict,
            expect=expect,
            fault=self.fault,
            error=self.code,
            http_status=self.verdict.http_status,
            tokens_tried=self.tokens if expect is Expect.ACCEPT else 0,
            control=self.control,
        )


def judge_answer(form: FormSpec, answer: Answer, expect: Expect, sent: str = "a fresh token") -> Judgement:
    """Return what the form's rules say of the answer to a submit; `sent`: what stood in the token's place, in words."""
    status = answer.status
    if form.accepts(answer):
        return _accepted(status, expect, sent)
    if status in GATEWAY_STATUSES:
        verdict = Verdict(VerifyStatus.ERROR, f"a gateway answered {status} in the site's place", status)
        return Judgement(verdict, Result.INDETERMINATE, Fault.INFRASTRUCTURE)
    if form.refuses(answer):
        return _refused(form, answer, expect, sent)
    if status >= 500:
        verdict = Verdict(VerifyStatus.ERROR, f"the site crashed: it answered {status}", status)
        return Judgement(verdict, Result.FAILED, Fault.PRODUCT)
    lacking = "; ".join(form.success.unmet(answer))
    verdict = Verdict(VerifyStatus.ERROR, f"the answer is neither a success (it lacks {lacking}) nor a refusal", status)
    return Judgement(verdict, Result.INDETERMINATE, Fault.UNDETERMINED)


def judge_verdict(form: FormSpec, verdict: Verdict, expect: Expect, sent: str = "a fresh token") -> Judgement:
    """Return what a verifier's verdict on a token means; `sent`: what stood in the token's place, in words."""
    if verdict.status is VerifyStatus.ERROR:
        return Judgement(verdict, Result.INDETERMINATE, Fault.UNDETERMINED)
    wanted = VerifyStatus.PASS if expect is Expect.ACCEPT else VerifyStatus.FAIL
    if verdict.status is wanted:
        return Judgement(verdict, Result.OK)
    if expect is Expect.REFUSE:
        return Judgement(_saying(verdict, f"but {sent} was sent, which must be refused"), Result.FAILED, Fault.PRODUCT)
    if form.score_policy is ScorePolicy.OBSERVE and LOW_SCORE in verdict.codes:
        return _observed(verdict)
    return Judgement(verdict, Result.INDETERMINATE, Fault.UNDETERMINED, REFUSED_ONCE)


def confirmed(second: Judgement, control: Control) -> Judgement:
    """Return what two fresh tokens tell, of which the first was refused; `second` is the judgement on the other.

    Any other end of the second submit, such as a crash of the site, speaks for itself.
    """
    judgement = replace(second, tokens=2, control=control.sentence)
    if second.result is Result.OK:
        reason = f"{second.verdict.reason}, after a first fresh token was refused, which is held against the provider"
        return replace(judgement, verdict=replace(second.verdict, reason=reason))
    if not second.may_be_the_tokens_fault:
        return judgement
    if control.passed:
        verdict = _saying(second.verdict, f"and a second one too; {control.sentence}, so the form is at fault")
        return replace(judgement, verdict=verdict, result=Result.FAILED, fault=Fault.PRODUCT, code=REFUSED_TWICE)
    verdict = _saying(second.verdict, f"and a second one too; {control.sentence}")
    return replace(judgement, verdict=verdict, code=REFUSED_TWICE)


def unconfirmed(first: Judgement, why: str) -> Judgement:
    """Return what one refused token tells when no second one could be tried."""
    return replace(first, verdict=_saying(first.verdict, f"and no second one could be tried: {why}"))


def control_of(mode: KeyMode, other_form: str | None, type: str) -> Control:
    """Return what vouches for the tokens of an account; `other_form` accepted one of the same type in this run."""
    if mode is not KeyMode.LIVE:
        return Control(True, f"tokens of key mode {mode} are good by construction")
    if other_form is not None:
        return Control(True, f"form {other_form!r} of the same type accepted a token of the same provider in this run")
    return Control(False, f"no other form of type {type} had accepted a token of this provider by then")


def in_words(sent: Solution | None) -> str:
    """Return what was sent in a token's place, as a reader of a report needs to know it."""
    if sent is None:
        return "no token"
    if not sent.text.strip():
        return "an empty token"
    return "a used token" if sent.task_id is not None else "a made-up token"


def _accepted(status: int, expect: Expect, sent: str) -> Judgement:
    if expect is Expect.ACCEPT:
        return Judgement(Verdict(VerifyStatus.PASS, f"accepted ({status})", status), Result.OK)
    reason = f"the site accepted ({status}) the form with {sent}, which it must refuse"
    verdict = Verdict(VerifyStatus.PASS, reason, status)
    return Judgement(verdict, Result.FAILED, Fault.PRODUCT)


def _refused(form: FormSpec, answer: Answer, expect: Expect, sent: str) -> Judgement:
    if expect is Expect.REFUSE:
        return Judgement(Verdict(VerifyStatus.FAIL, f"{sent} was refused ({answer.status})", answer.status), Result.OK)
    lacking = "; ".join(form.success.unmet(answer))
    verdict = Verdict(VerifyStatus.FAIL, f"the site refused {sent} (the answer lacks {lacking})", answer.status)
    if form.score_policy is ScorePolicy.OBSERVE:
        return _observed(verdict)
    return Judgement(verdict, Result.INDETERMINATE, Fault.UNDETERMINED, REFUSED_ONCE)


def _observed(verdict: Verdict) -> Judgement:
    """Return what a refusal means where the score is only observed: nothing about the product."""
    said = _saying(verdict, "perhaps for its score, which score_policy = 'observe' makes no verdict")
    return Judgement(replace(said, status=VerifyStatus.ERROR), Result.INDETERMINATE, Fault.UNDETERMINED, SCORE_OBSERVED)


def _saying(verdict: Verdict, more: str) -> Verdict:
    return replace(verdict, reason=f"{verdict.reason}, {more}")
