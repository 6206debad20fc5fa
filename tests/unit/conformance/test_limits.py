"""What a changed answer says of a limit, row by row; and where the posts of M35 end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.families.load import POSTS
from pytest_captcha_qa.conformance.limits import sign_of_limit
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.errors import Stopped
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.probing import ProbeVerdict as V
from pytest_captcha_qa.testing import BASE_URL

from .conftest import Backend

PAGE = BASE_URL.join("/signup")


def answer(status=422, text="no", location=None):
    return Answer(status, PAGE, location and PAGE.join(location), text=text)


NO = answer()
BACK = answer(302, "", "/signup?error=captcha&id=731")


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ([], answer(429), V.SAFE),
        ([], answer(403), None),
        ([NO], NO, None),
        ([NO], answer(423), V.SAFE),
        ([NO], answer(503), V.SAFE),
        ([NO], answer(500), None),
        ([NO], answer(403), V.SAFE),
        ([answer(403)], answer(401), V.SAFE),
        ([NO], answer(200), V.INCONCLUSIVE),
        ([NO], answer(302, "", "/blocked"), V.SAFE),
        ([NO], answer(302, "", "/signup"), V.INCONCLUSIVE),
        ([BACK], answer(302, "", "/signup?error=captcha&id=4"), None),
        ([BACK], answer(302, "", "/signup?error=limit&id=4"), V.SAFE),
        ([NO], answer(text="Too many attempts"), V.SAFE),
        ([answer(text="try again later")], answer(text="do try again later"), None),
        ([NO], answer(text="please wait"), None),
        ([NO] * 2, answer(text="please wait"), V.INCONCLUSIVE),
        ([NO] * 5, answer(text="please wait"), V.SAFE),
        ([NO, answer(text="hello"), NO, NO, NO], answer(text="please wait"), None),
        ([answer(text=f"no, number {n}") for n in range(5)], answer(text="no, number 5"), None),
    ],
)
def test_a_changed_answer_is_a_limit_or_may_be_one(before, now, verdict):
    sign = sign_of_limit(before, now)
    assert (sign.verdict if sign else None) is verdict


def from_the_sixth_on(changed, refusal=testing.refused):
    """Return a backend that refuses, and from the sixth submit on answers differently; what was sent is counted."""
    posts = []

    def backend(draft):
        posts.append(draft)
        return changed(draft) if len(posts) > 5 else refusal(draft.target)

    return backend, posts


@pytest.mark.parametrize("rule", [None, testing.form().refused], ids=["no rule", "a rule"])
@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        (lambda draft: testing.refused(draft.target, 403), V.SAFE),
        (lambda draft: replace(testing.refused(draft.target), text="captcha, and do wait"), V.SAFE),
        (lambda draft: Answer(302, draft.target, draft.target.join("/blocked")), V.SAFE),
        (lambda draft: Answer(200, draft.target, text="captcha"), V.INCONCLUSIVE),
        (lambda draft: testing.accepted(draft.target), V.UNSAFE),
        (lambda draft: testing.refused(draft.target, 500), V.CRASH),
    ],
    ids=["status", "text", "redirect", "unclear", "accepted", "crash"],
)
def test_the_posts_end_with_the_first_answer_that_changed(probing, changed, verdict, rule):
    backend, posts = from_the_sixth_on(changed)
    (finding,) = probing(backend, refused=rule).family(Family.LOAD, "M35")
    assert finding.judged.verdict is verdict
    assert len(posts) == 6


def test_a_text_that_is_another_one_each_time_hides_no_missing_limit(probing):
    posts = []

    def backend(draft):
        posts.append(draft)
        return replace(testing.refused(draft.target), text="captcha " + "ab"[len(posts) % 2])

    assert probing(backend).verdicts(Family.LOAD, "M35") == {"M35": V.UNSAFE}
    assert len(posts) == POSTS


def test_at_a_rate_of_the_forms_own_no_limit_can_be_met(probing, backend):
    form = probing(backend(), spacing=12.0)
    (finding,) = form.family(Family.LOAD, "M35")
    assert finding.judged.verdict is V.NOT_APPLICABLE
    assert "a submit every 12 s, is kept" in finding.judged.reason
    assert not form.sent


def limiting(answers, seconds):
    """Return a sound backend behind a limit that has the submits with these numbers come back later."""

    class Limiting(Backend):
        count = 0

        def __call__(self, draft):
            self.count += 1
            if self.count in answers:
                return replace(testing.refused(draft.target, 429), retry_after=seconds)
            return super().__call__(draft)

    return Limiting()


@pytest.mark.parametrize("number", [1, 2], ids=["the control", "a probe"])
@pytest.mark.parametrize(("seconds", "verdict"), [(60.0, V.SAFE), (61.0, V.INCONCLUSIVE), (None, V.INCONCLUSIVE)])
def test_a_limit_that_ends_within_a_minute_is_waited_for(probing, number, seconds, verdict):
    form = probing(limiting({number}, seconds))
    assert form.verdicts(Family.TOKEN, "M02") == {"M02": verdict}
    assert (60.0 in form.bench.stop.waits) is (verdict is V.SAFE)
    assert form.trial().harm.accepted == (number == 2 or verdict is V.SAFE)


def test_a_limit_is_waited_for_once_in_a_family(probing):
    form = probing(limiting({2, 3}, 10.0))
    assert form.verdicts(Family.TOKEN, "M02", "M04") == {"M02": V.INCONCLUSIVE, "M04": V.SAFE}
    assert form.bench.stop.waits.count(10.0) == 1


def test_a_wait_ends_with_the_run(probing, monkeypatch):
    form = probing(limiting({2}, 30.0))
    stop = form.bench.stop
    wait = stop.wait

    def ended(seconds):
        if seconds == 30.0:
            stop.set("the run ends")
        wait(seconds)

    monkeypatch.setattr(stop, "wait", ended)
    with pytest.raises(Stopped):
        form.family(Family.TOKEN, "M02")


def test_nothing_is_sent_once_the_run_has_ended_in_a_control(probing, backend, monkeypatch):
    form = probing(backend())
    stop = form.bench.stop
    monkeypatch.setattr(stop, "wait", lambda seconds: stop.set("the run ends") or stop.check())
    with pytest.raises(Stopped):
        form.family(Family.TOKEN, "M02")
    assert not form.sent
    assert form.trial().harm.accepted == 0


def test_what_is_destructive_stops_at_the_first_limit(probing):
    form = probing(limiting({2}, 10.0))
    assert form.verdicts(Family.LOAD, "M37") == {"M37": V.INCONCLUSIVE}
    assert 10.0 not in form.bench.stop.waits
    assert len(form.sent) == 1


def test_probes_and_their_control_keep_the_forms_rate(probing, backend):
    form = probing(backend(), spacing=12.0)
    form.family(Family.TOKEN, "M02", "M03")
    assert len(form.sent) == 5
    assert [wait for wait in form.bench.stop.waits if wait > 1] == [pytest.approx(12.0)] * 5
