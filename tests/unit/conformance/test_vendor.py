"""Probes of what a backend makes of the vendor's answer, against a sound backend and one with each flaw."""

from __future__ import annotations

import hashlib

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.probing import Fault, ProbePolicy
from pytest_captcha_qa.model.probing import ProbeVerdict as V

from .conftest import FakeVendor, token_of

# What each flawed backend takes: the age and the outcome that were scripted.
FLAWS = {
    "M07": lambda age, outcome: age > 0,
    "M08": lambda age, outcome: "action" in outcome,
    "M09": lambda age, outcome: "score" in outcome and outcome["score"] < 0.9,
    "M10": lambda age, outcome: outcome.get("score", 0) > 0.9,
    "M11": lambda age, outcome: "hostname" in outcome,
    "M13": lambda age, outcome: outcome.get("delay", 0) > 1,
    "M14": lambda age, outcome: outcome.get("status") == 429,
    "M15": lambda age, outcome: outcome.get("body") == "redirect_html" and "status" not in outcome,
    "M16": lambda age, outcome: outcome.get("values") == {"success": None},
    "M17": lambda age, outcome: outcome.get("code") == "no-such-code",
}
TYPES = {"M10": CaptchaType.HCAPTCHA}
POLICY = ProbePolicy(risk_score=True, own_hostname_check=True)


class Asking:
    """A backend that asks the vendor once and takes plain successes, and what its flaw lets through."""

    def __init__(self, flaw=lambda age, outcome: False, *, calls=1, encodes=True):
        self.vendor, self.flaw, self.times, self.encodes = FakeVendor(), flaw, calls, encodes
        self.used = set()

    def __call__(self, draft):
        text, _, more = str(token_of(draft) or "").partition("&" if not self.encodes else "\0")
        names = ["secret", "response", *([more.partition("=")[0]] if more else [])]
        known = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.vendor.log += [{"token": known, "names": names}] * self.times
        age, outcome = self.vendor.outcomes.get(text, (0, {}))
        good = text.startswith("fake-token-of-") and text not in self.used and "&" not in text
        self.used.add(text)
        taken = good and ((age == 0 and not outcome) or self.flaw(age, outcome))
        return testing.accepted(draft.target) if taken else testing.refused(draft.target)


def found(probing, backend, kind=CaptchaType.RECAPTCHA_V3, probes=POLICY, ids=()):
    form = probing(backend, type=kind, action="signup", probes=probes, vendor=backend.vendor)
    return form.verdicts(Family.VENDOR, *ids)


@pytest.mark.parametrize("kind", [CaptchaType.RECAPTCHA_V3, CaptchaType.HCAPTCHA, CaptchaType.GEETEST_V4], ids=str)
def test_a_sound_backend_raises_nothing(probing, kind):
    verdicts = found(probing, Asking(), kind)
    assert set(verdicts.values()) <= {V.SAFE, V.NOT_APPLICABLE}
    assert list(verdicts.values()).count(V.SAFE) >= 8


@pytest.mark.parametrize("id", FLAWS)
def test_a_flaw_raises_its_own_probe_and_no_other(probing, id):
    verdicts = found(probing, Asking(FLAWS[id]), TYPES.get(id, CaptchaType.RECAPTCHA_V3))
    assert {probe for probe, verdict in verdicts.items() if verdict is V.UNSAFE} == {id}


def test_a_backend_that_asks_twice_or_does_not_encode_is_found_in_the_log(probing):
    assert found(probing, Asking(calls=2), ids=["M28"]) == {"M28": V.UNSAFE}
    assert found(probing, Asking(encodes=False), ids=["M20"]) == {"M20": V.UNSAFE}


def test_a_backend_that_asks_somebody_else_is_not_judged(probing):
    assert found(probing, Asking(calls=0), ids=["M28"]) == {"M28": V.INCONCLUSIVE}


def test_open_on_purpose_is_no_mistake_but_429_is(probing):
    def opens(age, outcome):
        return "body" in outcome or outcome.get("delay", 0) > 1

    chosen = ProbePolicy(open_for=tuple(Fault))
    assert found(probing, Asking(opens), ids=["M13", "M14", "M15"], probes=chosen) == {
        "M13": V.NOT_APPLICABLE, "M14": V.SAFE, "M15": V.NOT_APPLICABLE,
    }  # fmt: skip
    assert found(probing, Asking(FLAWS["M14"]), ids=["M14"], probes=chosen) == {"M14": V.UNSAFE}


def test_come_back_later_is_a_sound_answer_to_trouble(probing):
    class Waiting(Asking):
        def __call__(self, draft):
            answer = super().__call__(draft)
            outcome = self.vendor.outcomes.get(str(token_of(draft)), (0, {}))[1]
            return testing.refused(draft.target, 503) if outcome else answer

    verdicts = found(probing, Waiting(), ids=["M13", "M14", "M15", "M17"])
    assert verdicts == {"M13": V.SAFE, "M14": V.SAFE, "M15": V.SAFE, "M17": V.INCONCLUSIVE}


def test_without_a_stand_in_nothing_is_sent(probing, backend):
    form = probing(backend())
    assert set(form.verdicts(Family.VENDOR).values()) == {V.NOT_APPLICABLE}
    assert not form.sent


def test_a_form_that_takes_any_text_is_not_asked_about_answers(probing):
    form = probing(lambda draft: testing.accepted(draft.target), vendor=FakeVendor())
    verdicts = form.verdicts(Family.VENDOR)
    assert set(verdicts) == {id for id, probe in CATALOGUE.items() if probe.needs_standin}
    assert set(verdicts.values()) == {V.NOT_APPLICABLE}
    assert len(form.sent) == 1
