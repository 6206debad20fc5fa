"""What an answer of the site means, and whose fault it is when it is not what was expected."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_captcha_qa.model.attempt import Expect, Fault, Outcome, Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.form import Answer, FormSpec
from pytest_captcha_qa.model.token import Solution

# A gateway answers in the site's place with these.
GATEWAY_STATUSES = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one answer, whether it was expected, and the fault if not."""

    verdict: Verdict
    result: Result
    fault: Fault | None = None

    def outcome(self, expect: Expect) -> Outcome:
        """Return it as the outcome of an attempt."""
        return Outcome(
            result=self.result,
            verdict=self.verdict,
            expect=expect,
            fault=self.fault,
            http_status=self.verdict.http_status,
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


def judge_verdict(verdict: Verdict, expect: Expect) -> Judgement:
    """Return what a verifier's verdict on a token means."""
    if verdict.status is VerifyStatus.ERROR:
        return Judgement(verdict, Result.INDETERMINATE, Fault.UNDETERMINED)
    wanted = VerifyStatus.PASS if expect is Expect.ACCEPT else VerifyStatus.FAIL
    if verdict.status is wanted:
        return Judgement(verdict, Result.OK)
    return Judgement(verdict, Result.FAILED, Fault.PRODUCT)


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
    verdict = Verdict(VerifyStatus.FAIL, f"the site refused {sent}; the answer lacks {lacking}", answer.status)
    return Judgement(verdict, Result.FAILED, Fault.PRODUCT)
