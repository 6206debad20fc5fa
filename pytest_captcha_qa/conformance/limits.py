"""Whether an answer in a row of alike submits is a limit's; pure, so that every row of it is tested without a site."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pytest_captcha_qa.conformance.judge import unvarying
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.probing import ProbeVerdict

LIMITED = frozenset({423, 429, 503})
"""Statuses that say it themselves."""

_REFUSALS = range(400, 500)
_CRASHES = 500
_FEWEST_ALIKE = 2  # before that, a text may be another one each time
_MANY_ALIKE = 5  # after that, another text is no accident
_WORDS = re.compile(
    r"too many|try(?:ing)? again (?:later|in)|rate.?limit|slow down|throttl|temporarily (?:blocked|locked|suspended)"
    r"|locked out|(?:account|address|ip)[\w ]{0,20} (?:blocked|locked)",
    re.IGNORECASE,
)
_EACH_TIME = re.compile(r"[\w%-]{20,}|\d+")


class Sign(NamedTuple):
    """What a changed answer says, and in which words."""

    verdict: ProbeVerdict
    what: str


def sign_of_limit(before: Sequence[Answer], now: Answer) -> Sign | None:
    """Return what the newest of several answers says of a limit, None while it is as the refusals before it.

    Safe: a limit's status, another refusal by status, a redirect to another place, a text that says so or that differs
    from many alike ones. Inconclusive: any other change. A crash is none.
    """
    if now.status in LIMITED:
        return Sign(ProbeVerdict.SAFE, f"a limit answered ({now.status})")
    if not before or now.status >= _CRASHES:
        return None
    return _by_kind(before[-1], now) or _by_text(before, now)


def _by_kind(last: Answer, now: Answer) -> Sign | None:
    if now.status == last.status and _place(now) == _place(last):
        return None
    if now.status != last.status and now.status in _REFUSALS:
        return Sign(ProbeVerdict.SAFE, f"the answer changed from {last.status} to {now.status}, as a limit's does")
    if now.location is not None and _place(now) not in (_place(last), now.url.path):
        return Sign(ProbeVerdict.SAFE, f"the answer changed to a redirect to {now.location.path}, as a limit's does")
    changed = f"the answer changed from {last.status} to {now.status}, which may be a limit and may be none"
    return Sign(ProbeVerdict.INCONCLUSIVE, changed)


def _by_text(before: Sequence[Answer], now: Answer) -> Sign | None:
    if _WORDS.search(now.text) and not any(_WORDS.search(answer.text) for answer in before):
        return Sign(ProbeVerdict.SAFE, f"a limit answered ({now.status}) in words")
    earlier = {unvarying(answer.text) for answer in before}
    if len(before) < _FEWEST_ALIKE or len(earlier) > 1 or unvarying(now.text) in earlier:
        return None
    if len(before) >= _MANY_ALIKE:
        return Sign(ProbeVerdict.SAFE, f"the text of the answer ({now.status}) changed, as a limit's does")
    changed = f"the text of the answer ({now.status}) changed, which may be a limit and may be none"
    return Sign(ProbeVerdict.INCONCLUSIVE, changed)


def _place(answer: Answer) -> str | None:
    """Return where an answer leads to, without what differs each time."""
    if answer.location is None:
        return None
    return _EACH_TIME.sub("", f"{answer.location.path}?{answer.location.query}".rstrip("?"))
