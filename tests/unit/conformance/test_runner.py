"""The harm rules, the control, and what is recorded of each probe."""

from __future__ import annotations

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.harm import MOST_ACCEPTED, Harm
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.errors import ScopeDenied, TargetUnavailable
from pytest_captcha_qa.model.probing import ProbeVerdict as V
from pytest_captcha_qa.model.probing import Severity
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.scope import Probes

from .conftest import token_of


def accepts_all(draft):
    return testing.accepted(draft.target)


def accepts_only_missing(draft):
    return testing.accepted(draft.target) if token_of(draft) is None else testing.refused(draft.target)


def accepted(probing):
    """Return how many submits, of probes and of controls, the form has taken."""
    opened = probing.bench.driver.opened
    return sum(len(form.posted) for form in opened) + len(probing.sent)


@pytest.mark.parametrize("processes", [1, 5])
def test_a_form_that_takes_everything_takes_no_more_than_the_rules_allow(probing, processes):
    form = probing(accepts_all)
    for _ in range(processes):
        for family in Family:
            form.family(family)
    assert accepted(form) <= MOST_ACCEPTED
    assert form.trial().harm.accepted == accepted(form)


def test_a_family_stops_at_its_first_unexpected_effect(probing):
    form = probing(accepts_all)
    found = form.family(Family.TOKEN)
    assert [finding.judged.verdict for finding in found][:2] == [V.UNSAFE, V.INCONCLUSIVE]
    assert "stops at its first unexpected effect" in found[1].judged.reason
    sent = len(form.sent)
    form.family(Family.TOKEN)  # another worker, or a rerun
    assert len(form.sent) == sent


def test_without_declared_effects_one_probe_has_one_ordinary_submit(probing):
    form = probing(accepts_all, effects=())
    (finding,) = form.family(Family.TOKEN, "M01")
    assert finding.judged.verdict is V.UNSAFE
    assert len(form.sent) == 1


@pytest.mark.parametrize(
    ("effects", "allowed", "said"),
    [((), Probes.ALL, "does not say what a success causes"), (None, Probes.SAFE, "the proof allows safe probes only")],
)
def test_what_is_destructive_must_be_declared_and_allowed(probing, backend, effects, allowed, said):
    form = probing(backend(), **({} if effects is None else {"effects": effects}))
    form.bench.grants.probes = allowed
    found = form.family(Family.LOAD)
    assert {finding.judged.verdict for finding in found} == {V.NOT_APPLICABLE}
    assert all(said in finding.judged.reason for finding in found)
    assert not form.sent
    events = [event.data for event in form.bench.events if event.name == "probe"]
    assert len(events) == 3
    assert all(said in str(data["left_out"]) for data in events)


def test_a_proof_without_probes_refuses_all_of_them(probing, backend):
    form = probing(backend())
    form.bench.grants.probes = Probes.NONE
    with pytest.raises(ScopeDenied, match="allows no probes"):
        form.family(Family.PAGE)
    assert not form.sent


def test_an_unsafe_probe_counts_beside_a_control_that_passed(probing):
    good, bad = probing(accepts_all), probing(accepts_only_missing)
    (counting,), (failing,) = good.family(Family.TOKEN, "M02"), bad.family(Family.TOKEN, "M02")
    assert (counting.fails, counting.counts, counting.control) == (True, True, True)
    assert (failing.fails, failing.counts, failing.control) == (True, False, False)
    (below,) = probing(accepts_all).family(Family.ROUTE, "M26", least=Severity.CRITICAL)
    assert not below.fails


def test_each_probe_is_one_event_and_each_submit_one_record(probing, backend):
    form = probing(backend())
    found = form.family(Family.TOKEN, "M02", "M04")
    events = [event for event in form.bench.events if event.name == "probe"]
    assert [event.data["probe"] for event in events] == ["M02", "M04"]
    assert events[0].data["exchange"] == "POST /signup with no captcha field: 422"
    assert {event.data["control"] for event in events} == {True}
    assert found[0].control
    lines = [line for line in form.bench.records.lines if isinstance(line, AttemptLine)]
    assert [(line.purpose, line.expect, line.outcome) for line in lines] == [
        ("probe", "accept", "ok"), ("probe", "refuse", "ok"), ("probe", "refuse", "ok"),
    ]  # fmt: skip


def test_what_was_not_accepted_is_given_back():
    bench = testing.Bench()
    harm = Harm(bench.limits, session="s", slug="signup")
    assert [harm.reserve() for _ in range(MOST_ACCEPTED + 1)].count(True) == MOST_ACCEPTED
    harm.give_back()
    assert harm.reserve()
    assert not harm.reserve()
    assert Harm(bench.limits, session="s", slug="login").reserve()


def test_a_site_that_does_not_answer_the_control_is_not_asked_again(probing):
    def silent(draft):
        raise TargetUnavailable("no answer within 30 s")

    form = probing(silent)
    found = form.family(Family.TOKEN, "M02", "M03", "M04")
    assert {finding.judged.verdict for finding in found} == {V.INCONCLUSIVE}
    assert {finding.judged.reason for finding in found} == {"not sent: no answer within 30 s"}
    assert len(form.sent) <= 1
