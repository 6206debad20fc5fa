"""What an answer to a probe means, row by row."""

from __future__ import annotations

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.judge import Judged, judge, with_control, worst
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.probing import ProbeVerdict as V
from pytest_captcha_qa.testing import BASE_URL

TRACE = "Traceback (most recent call last):\n  File"


def answer(status: int, text: str = "") -> Answer:
    return Answer(status, BASE_URL, text=text)


@pytest.mark.parametrize(
    ("given", "verdict", "said"),
    [
        (testing.accepted(), V.UNSAFE, "an x was accepted (303)"),
        (testing.refused(), V.SAFE, "an x was refused (422)"),
        (answer(422, TRACE), V.CRASH, "with a stack trace"),
        (answer(500), V.CRASH, "the site crashed"),
        (answer(503), V.INCONCLUSIVE, "a gateway answered 503"),
        (answer(429), V.INCONCLUSIVE, "a rate limit"),
        (answer(200), V.INCONCLUSIVE, "neither a success nor a refusal"),
        (answer(405), V.INCONCLUSIVE, "neither a success nor a refusal"),
    ],
)
def test_an_answer_is_judged_by_the_forms_own_rules(given, verdict, said):
    judged = judge(testing.form(), given, "an x")
    assert judged.verdict is verdict
    assert said in judged.reason
    assert judged.accepted is (verdict is V.UNSAFE)


def test_without_a_refused_rule_every_other_answer_below_500_is_a_refusal():
    form = testing.form(refused=None)
    assert judge(form, answer(200), "an x").verdict is V.SAFE
    assert judge(form, answer(429), "an x").verdict is V.INCONCLUSIVE


def test_a_documented_refusal_with_503_is_no_outage():
    form = testing.form(refused=testing.form().refused.__class__((503,)))
    assert judge(form, answer(503), "an x").verdict is V.SAFE


def test_what_a_probe_calls_harmless_is_safe_but_a_crash_never_is():
    assert judge(testing.form(), answer(405), "an x", lambda a: a.status == 405).verdict is V.SAFE
    assert judge(testing.form(), answer(405, TRACE), "an x", lambda a: True).verdict is V.CRASH


def test_a_refusal_says_nothing_beside_a_control_that_was_refused_too():
    safe, unsafe = Judged(V.SAFE, "refused"), Judged(V.UNSAFE, "accepted")
    assert with_control(safe, None) is safe
    assert with_control(safe, "captcha down").verdict is V.INCONCLUSIVE
    assert "captcha down" in with_control(safe, "captcha down").reason
    assert with_control(unsafe, "captcha down") is unsafe


def test_the_worst_try_decides():
    tries = [Judged(verdict, verdict) for verdict in (V.SAFE, V.INCONCLUSIVE, V.CRASH, V.UNSAFE)]
    assert [worst(tries[:n]).verdict for n in (1, 2, 3, 4)] == [V.SAFE, V.INCONCLUSIVE, V.CRASH, V.UNSAFE]
