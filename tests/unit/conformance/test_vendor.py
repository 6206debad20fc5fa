"""Probes of what a backend makes of the vendor's answer, against a sound backend and one with each flaw."""

from __future__ import annotations

import hashlib

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.answers import BAD_CERTIFICATE
from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.probing import Fault, ProbePolicy
from pytest_captcha_qa.model.probing import ProbeVerdict as V
from pytest_captcha_qa.sandbox import impostors

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
        return ("body" in outcome and outcome.get("status", 500) >= 500) or outcome.get("delay", 0) > 1

    chosen = ProbePolicy(open_for=tuple(Fault))
    assert found(probing, Asking(opens), ids=["M13", "M14", "M15"], probes=chosen) == {
        "M13": V.NOT_APPLICABLE, "M14": V.SAFE, "M15": V.NOT_APPLICABLE,
    }  # fmt: skip
    assert found(probing, Asking(FLAWS["M14"]), ids=["M14"], probes=chosen) == {"M14": V.UNSAFE}


def test_a_wrong_secret_is_told_in_the_vendors_own_words(probing):
    def opens(age, outcome):
        return outcome.get("code") in ("auth_invalid", "invalid-input-secret")

    kinds = {CaptchaType.FRIENDLY_V2: {"auth_invalid"}, CaptchaType.TURNSTILE: {"invalid-input-secret"}}
    for kind, codes in kinds.items():
        backend = Asking(opens)
        assert found(probing, backend, kind, ids=["M14"]) == {"M14": V.UNSAFE}
        told = {outcome["code"] for _, outcome in backend.vendor.outcomes.values() if "code" in outcome}
        assert told - {"internal-error"} == codes


def test_no_status_comes_with_a_success(probing):
    backend = Asking()
    assert found(probing, backend, ids=["M14"]) == {"M14": V.SAFE}
    statuses = [outcome for _, outcome in backend.vendor.outcomes.values() if "status" in outcome]
    assert len(statuses) >= 6
    assert all("body" in outcome or "code" in outcome for outcome in statuses)


def test_come_back_later_is_a_sound_answer_to_trouble(probing):
    class Waiting(Asking):
        def __call__(self, draft):
            answer = super().__call__(draft)
            outcome = self.vendor.outcomes.get(str(token_of(draft)), (0, {}))[1]
            return testing.refused(draft.target, 503) if outcome else answer

    verdicts = found(probing, Waiting(), ids=["M13", "M14", "M15", "M16", "M17"])
    assert verdicts == {**dict.fromkeys(("M13", "M14", "M15", "M16"), V.SAFE), "M17": V.INCONCLUSIVE}


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


def says_success(age, outcome):
    """What a backend takes that waits for any time, and looks at nothing but `success`."""
    return age == 0 and not {"code", "body", "values", "without", "certificate"} & outcome.keys()


def test_patience_and_blindness_to_the_status_of_http_are_no_mistakes(probing):
    verdicts = found(probing, Asking(says_success), ids=["M13", "M14", "M15", "M16", "M17"])
    assert set(verdicts.values()) == {V.SAFE}


def test_what_another_probe_has_sent_meanwhile_is_not_this_ones(probing):
    backend = Asking()

    class Beside(type(backend)):
        def __call__(self, draft):
            self.vendor.log.append({"token": "another", "names": ["secret", "response", "canary", "canary0a1b2c3d"]})
            return super().__call__(draft)

    assert found(probing, Beside(), ids=["M20"]) == {"M20": V.SAFE}


@pytest.mark.parametrize(("least", "verdict"), [(None, V.SAFE), (0.5, V.SAFE), (0.9, V.UNSAFE)])
def test_the_least_score_is_what_the_team_says_and_not_what_a_provider_is_asked_for(probing, least, verdict):
    backend = Asking(lambda age, outcome: outcome.get("score", 0) >= 0.5)
    form = probing(
        backend, type=CaptchaType.RECAPTCHA_V3, action="signup", min_score=0.9, vendor=backend.vendor,
        probes=ProbePolicy(least_score=least),
    )  # fmt: skip
    assert form.verdicts(Family.VENDOR, "M09") == {"M09": verdict}


def test_what_means_nothing_for_a_form_is_said_also_after_its_family_has_stopped(probing):
    backend = Asking(FLAWS["M16"])
    form = probing(
        backend, type=CaptchaType.FRIENDLY_V2, vendor=backend.vendor, probes=ProbePolicy(open_for=tuple(Fault))
    )
    verdicts = form.verdicts(Family.VENDOR)
    assert verdicts["M16"] is V.UNSAFE
    assert {id for id, verdict in verdicts.items() if verdict is V.INCONCLUSIVE} == {"M17", "M20", "M14"}
    assert {id for id, verdict in verdicts.items() if verdict is V.NOT_APPLICABLE} >= {
        "M09",
        "M10",
        "M11",
        "M13",
        "M15",
    }


@pytest.mark.parametrize("follows", [False, True])
def test_that_no_bad_certificate_was_met_is_told(probing, follows):
    class Following(Asking):
        def __call__(self, draft):
            answer = super().__call__(draft)
            if follows and "certificate" in self.vendor.outcomes.get(str(token_of(draft)), (0, {}))[1]:
                self.vendor.log.append({"mark": f"{impostors.MARK}: expired"})
            return answer

    assert impostors.MARK == BAD_CERTIFICATE  # the sandbox shares no code with who reads its marks
    backend = Following()
    (finding,) = probing(backend, type=CaptchaType.TURNSTILE, vendor=backend.vendor).family(Family.VENDOR, "M14")
    assert finding.judged.verdict is V.SAFE
    assert ("no bad certificate was tried" in finding.judged.reason) is not follows
