"""What the answer to a probe means; pure, so that every row of it is tested without a site."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import GATEWAY_STATUSES
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.model.seen import SeenPage

_TRACES = (
    "Traceback (most recent call last)",
    "Werkzeug Debugger",
    "You're seeing this error because you have <code>DEBUG = True",
    "Whoops\\Exception",
    "Stack trace:\n#0",
    "Action Controller: Exception caught",
    "at Object.<anonymous> (/",
)
"""What frameworks show of a crash: Python, Flask, Django, Laravel, PHP, Rails, Node."""

_RATE_LIMIT = 429


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict with its reason; `exchange` is the request and the status of its answer, without any value.

    `accepted`: the form took something it must refuse, so its effect is there; `doubtful`: it may have, and the success
    rule cannot tell; `answer` is kept for what reads it; `left_out`: what has kept a probe away, where that is for
    somebody to change.
    """

    verdict: ProbeVerdict
    reason: str
    exchange: str = ""
    http_status: int | None = None
    accepted: bool = False
    doubtful: bool = False
    answer: Answer | None = None
    left_out: str = ""

    @property
    def safe(self) -> bool:
        """Whether the form did what it must."""
        return self.verdict is ProbeVerdict.SAFE

    def saying(self, reason: str, verdict: ProbeVerdict | None = None) -> Judged:
        """Return it with another reason, and perhaps another verdict."""
        return replace(self, reason=reason, verdict=verdict or self.verdict)

    def __repr__(self) -> str:
        return f"<Judged {self.verdict}: {self.reason}>"


Harmless = Callable[[Answer], bool]


def never(answer: Answer) -> bool:
    """Return False: only the form's own rule says what a refusal is."""
    return False


def judge(form: FormSpec, answer: Answer, called: str, harmless: Harmless = never) -> Judged:
    """Return what an answer says of a form that was sent `called`, which it must refuse.

    `harmless`: answers that are no refusal by the form's rule and safe all the same, such as 405 to another method.
    """
    status = answer.status
    if form.accepts(answer):
        reason = f"{called} was accepted ({status})"
        return Judged(ProbeVerdict.UNSAFE, reason, http_status=status, accepted=True, answer=answer)
    verdict, reason = _of_other(form, answer, called, harmless)
    return Judged(verdict, reason, http_status=status, answer=answer)


def _of_other(form: FormSpec, answer: Answer, called: str, harmless: Harmless) -> tuple[ProbeVerdict, str]:
    status = answer.status
    if any(trace in answer.text for trace in _TRACES):
        return ProbeVerdict.CRASH, f"{called} was answered ({status}) with a stack trace"
    if form.refuses(answer) or harmless(answer):
        return ProbeVerdict.SAFE, f"{called} was refused ({status})"
    if status in GATEWAY_STATUSES:
        return ProbeVerdict.INCONCLUSIVE, f"a gateway answered {status} in the site's place"
    if status >= 500:
        return ProbeVerdict.CRASH, f"{called} was answered with {status}: the site crashed"
    if status == _RATE_LIMIT:
        return ProbeVerdict.INCONCLUSIVE, "a rate limit answered (429) in the form's place"
    return ProbeVerdict.INCONCLUSIVE, f"the answer ({status}) to {called} is neither a success nor a refusal"


def told_apart(form: FormSpec, judged: Judged, page: SeenPage, *, elsewhere: bool) -> Judged:
    """Return a verdict that no page of the form's own is taken for a success in.

    A rule such as `status = 200` also fits the form that is only shown again. `elsewhere`: whether that is sound, as
    where another method or address was asked.
    """
    answer = judged.answer
    assert answer is not None, "what was accepted was answered"
    as_read = replace(answer, status=page.status, location=None, text=page.text)
    if not form.accepts(as_read) or not page.shown_in(answer.text, form.fields):
        return judged
    if elsewhere and unvarying(answer.text) == unvarying(page.text):
        return replace(
            judged, verdict=ProbeVerdict.SAFE, reason="the form's page was shown, as to anybody", accepted=False
        )
    reason = (
        f"the form was shown again ({answer.status}), which its `success` rule takes for a success: "
        "add to the rule what only a success shows"
    )
    return replace(judged, verdict=ProbeVerdict.INCONCLUSIVE, reason=reason, accepted=False, doubtful=True)


_EACH_TIME = re.compile(r"[\w.+-]+@[\w.-]+|[\w+/=-]{12,}|(?<=Check )[A-Z]\w+|\d+")


def unvarying(text: str) -> str:
    """Return a page without what differs each time: addresses of people, tokens, numbers."""
    return _EACH_TIME.sub("", text)


def worst(judged: Iterable[Judged]) -> Judged:
    """Return what several tries of one probe come to: the first that is not safe of the worst kind."""
    found = list(judged)
    assert found, "a probe that tries nothing says so itself"
    return min(found, key=lambda one: _WORST_FIRST.index(one.verdict))


def with_control(judged: Judged, control: str | None) -> Judged:
    """Return the verdict beside a positive control; `control` says why it failed, None if it passed.

    A form that refuses everything says nothing by a refusal.
    """
    if control is None or judged.verdict is not ProbeVerdict.SAFE:
        return judged
    return judged.saying(f"{judged.reason}; but no good token was accepted: {control}", ProbeVerdict.INCONCLUSIVE)


def not_applicable(reason: str) -> Judged:
    """Return that the probe says nothing of this form, and why."""
    return Judged(ProbeVerdict.NOT_APPLICABLE, reason)


def inconclusive(reason: str) -> Judged:
    """Return that the probe could not find out, and why."""
    return Judged(ProbeVerdict.INCONCLUSIVE, reason)


_WORST_FIRST = (
    ProbeVerdict.UNSAFE,
    ProbeVerdict.CRASH,
    ProbeVerdict.INCONCLUSIVE,
    ProbeVerdict.SAFE,
    ProbeVerdict.NOT_APPLICABLE,
)
