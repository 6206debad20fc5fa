from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from pytest_captcha_qa.model.gate import GateMode, Rule
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.gate.results import GateResult, RuleResult, Status
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.verdict import decide

NODE = "t.py::test_signup"
GREEN = Session(pytest_exit=0, selected_forms=["signup"], captcha_tests=1, environment="staging")
PRODUCT = Cause(1, "signup refused a fresh token twice", NODE)
OUTAGE = Cause(12, "the provider was down", NODE)
SCOPE = Cause(15, "the target is not authorised", NODE)
BUDGET = Cause(13, "the budget of 4 submits is used up", NODE)
GATE = Cause(10, "signup: pass rate below 0.99")


def codes(verdict):
    return [reasons.code for reasons in verdict.codes]


def test_a_measured_form_without_a_failure_is_0(attempt, run):
    verdict = decide(GREEN, run(attempt()))
    assert (verdict.exit, verdict.codes) == (0, ())
    assert verdict.sentence == "exit 0: no failure was found; 1 of 1 form ok"


@pytest.mark.parametrize(
    ("causes", "pytest_exit", "exit_"),
    [
        ([PRODUCT], 1, 1),
        ([OUTAGE], 1, 12),
        ([OUTAGE, PRODUCT], 1, 1),
        ([SCOPE, PRODUCT], 1, 15),
        ([BUDGET, OUTAGE], 1, 13),
        ([GATE], 0, 10),
        ([GATE, OUTAGE], 1, 10),
        ([GATE], 1, 1),
        ([], 1, 1),
        ([OUTAGE], 2, 2),
        ([], 3, 3),
        ([SCOPE], 4, 4),
        ([], 5, 5),
        ([GATE], 5, 10),
        ([Cause(4, "the key is rejected", NODE)], 1, 4),
        ([PRODUCT], 42, 42),
        ([Cause(0, "nothing", NODE)], 0, 0),
    ],
)
def test_the_strongest_of_causes_and_pytests_own_code_decides(attempt, run, causes, pytest_exit, exit_):
    session = replace(GREEN, causes=causes, pytest_exit=pytest_exit)
    assert decide(session, run(attempt())).exit == exit_


@pytest.mark.parametrize(("causes", "exit_"), [([OUTAGE], 12), ([PRODUCT], 1), ([], 1)])
def test_a_2_that_failures_caused_is_replaced_and_never_by_0(attempt, run, causes, exit_):
    session = replace(GREEN, pytest_exit=2, stopped_by_failures=True, causes=causes)
    assert decide(session, run(attempt())).exit == exit_


@pytest.mark.parametrize(
    ("causes", "tests_failed", "exit_"),
    [
        ([OUTAGE], 1, 12),
        ([OUTAGE], 2, 1),
        ([replace(OUTAGE, failed=False)], 1, 1),
        ([replace(OUTAGE, failed=False)], 0, 12),
    ],
)
def test_a_failure_of_another_plugin_is_not_hidden_behind_an_outage(attempt, run, causes, tests_failed, exit_):
    failed = bool(tests_failed)
    session = replace(GREEN, pytest_exit=int(failed), causes=causes, tests_failed=tests_failed)
    assert decide(session, run(attempt())).exit == exit_


@pytest.mark.parametrize(("causes", "pytest_exit", "exit_"), [([OUTAGE], 1, 1), ([GATE], 0, 1), ([], 3, 3), ([], 0, 0)])
def test_in_pytest_mode_ours_become_1_and_the_reasons_stay(attempt, run, causes, pytest_exit, exit_):
    session = replace(GREEN, mode="pytest", causes=causes, pytest_exit=pytest_exit)
    verdict = decide(session, run(attempt()))
    assert verdict.exit == exit_
    assert codes(verdict)[:1] == [cause.code for cause in causes] or codes(verdict) == [pytest_exit]


def test_in_pytest_mode_the_sentence_names_both_codes(attempt, run):
    session = replace(GREEN, mode="pytest", pytest_exit=1, causes=[OUTAGE])
    assert decide(session, run(attempt())).sentence == (
        "exit 1 (extended 12): no verdict on the product: the provider was down"
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"outcome": "indeterminate", "verify_status": "skipped", "fault": "scope"}, 15),
        ({"outcome": "lost", "verify_status": "skipped", "fault": "infrastructure"}, 12),
    ],
)
def test_unauthorised_and_lost_attempts_count_though_their_tests_passed(attempt, run, changes, code):
    assert decide(GREEN, run(attempt(), attempt(**changes))).exit == code


def test_a_failed_attempt_whose_test_passed_counts_for_nothing(attempt, run):
    verdict = decide(GREEN, run(attempt(), attempt(outcome="failed", fault="product", verify_status="fail")))
    assert (verdict.exit, verdict.forms[0].state) == (0, "ok")


def test_an_attempt_is_not_told_twice(attempt, run):
    denied = attempt(outcome="indeterminate", verify_status="skipped", fault="scope", nodeid=NODE)
    verdict = decide(replace(GREEN, pytest_exit=1, causes=[SCOPE]), run(denied))
    assert verdict.codes[0].reasons == ((SCOPE.what, 1),)


@pytest.mark.parametrize("made", [None, []])
def test_tests_that_measured_nothing_are_not_enough_data(attempt, run, made):
    verdict = decide(GREEN, None if made is None else run(*made))
    assert verdict.exit == 11
    assert verdict.sentence == "exit 11: not enough data: no form was measured by 1 selected captcha test"


def test_a_broken_page_is_no_lack_of_data(attempt, run):
    page = attempt(outcome="failed", verify_status="skipped", fault="product", nodeid=NODE)
    assert codes(decide(replace(GREEN, pytest_exit=1, causes=[PRODUCT]), run(page))) == [1]


@pytest.mark.parametrize("change", [{"environment": None}, {"captcha_tests": 0}])
def test_without_environment_or_captcha_tests_nothing_had_to_be_measured(change):
    verdict = decide(replace(GREEN, **change), None)
    assert verdict.exit == 0
    assert "no failure was found; " in verdict.sentence


def test_an_incomplete_run_is_never_green(attempt, run):
    verdict = decide(GREEN, run(attempt(), complete=False))
    assert (verdict.exit, verdict.complete) == (12, False)
    assert "the records are incomplete" in verdict.sentence


def test_equal_reasons_are_counted_and_the_most_frequent_comes_first(attempt, run):
    causes = [
        Cause(12, "no slot", "t::a"),
        *(Cause(12, "the provider was down", f"t::{n}") for n in range(3)),
    ]
    verdict = decide(replace(GREEN, pytest_exit=1, causes=causes), run(attempt()))
    assert verdict.sentence == ("exit 12: no verdict on the product: the provider was down (3 times) and 1 more reason")


@pytest.mark.parametrize(
    ("prices", "price"),
    [({"main": 2.0}, 0.006), ({}, None), ({"other": 1.0}, None), ({"main": 2.0, "other": 1.0}, 0.006)],
)
def test_the_price_is_known_only_if_every_accounts_is(attempt, run, prices, price):
    verdict = decide(replace(GREEN, prices=prices), run(attempt(submits=2), attempt(submits=1)))
    assert (verdict.submits, verdict.price) == (3, price)


def test_without_a_configured_price_even_nothing_has_no_price(attempt, run):
    assert decide(GREEN, run(attempt(submits=0))).price is None
    assert decide(replace(GREEN, prices={"main": 2.0}), run(attempt(submits=0))).price == 0


@pytest.mark.parametrize(
    ("refusing", "accepting", "said"),
    [
        (1, 0, "1 form saw only refusals, so nothing shows yet that it accepts a good token"),
        (3, 0, "3 forms saw only refusals, so nothing shows yet that they accept a good token"),
        (
            1,
            2,
            "2 of 3 forms ok; 1 form saw only refusals, so nothing shows yet that it accepts a good token",
        ),
        (0, 2, "2 of 2 forms ok"),
    ],
)
def test_a_run_of_refusals_is_0_and_says_what_it_does_not_show(attempt, run, refusing, accepting, said):
    refused = [attempt(slug=f"r{n}", expect="refuse", verify_status="fail") for n in range(refusing)]
    accepted = [attempt(slug=f"a{n}") for n in range(accepting)]
    made = [*refused, *accepted]
    verdict = decide(replace(GREEN, selected_forms=[line.slug for line in made]), run(*made))
    assert (verdict.exit, verdict.measured) == (0, len(made))
    assert verdict.sentence == f"exit 0: no failure was found; {said}"


@pytest.mark.parametrize("test_failed", [False, True])
def test_what_was_left_open_is_no_outage(attempt, run, test_failed):
    left = attempt(outcome="indeterminate", verify_status="skipped", nodeid=NODE)
    causes = [Cause(1, f"{NODE} failed", NODE)] if test_failed else []
    verdict = decide(replace(GREEN, pytest_exit=len(causes), causes=causes), run(attempt(), left))
    assert codes(verdict) == [1] * len(causes)
    assert (verdict.forms[0].state, verdict.forms[0].fault) == ("ok", None)


def test_coverage_is_measured_of_selected(attempt, run):
    session = replace(GREEN, selected_forms=["signup", "login", "signup"])
    verdict = decide(session, run(attempt(), attempt(slug="elsewhere")))
    assert (verdict.measured, verdict.selected) == (1, 2)
    assert [form.slug for form in verdict.forms] == ["elsewhere", "login", "signup"]


def test_a_form_that_many_tests_share_a_login_on_counts_as_selected(attempt, run):
    shared, refused = attempt(nodeid=None), attempt(slug="admin", nodeid=None, outcome="failed", verify_status="error")
    verdict = decide(replace(GREEN, selected_forms=[]), run(shared, refused))
    assert (verdict.measured_forms, verdict.not_measured_forms) == (("signup",), ("admin",))


ORDER = (3, 4, 2, 15, 14, 1, 10, 13, 12, 16, 11)


@pytest.mark.parametrize(("stronger", "weaker"), list(pairwise(ORDER)))
def test_of_two_causes_the_stronger_decides_and_both_are_told(attempt, run, stronger, weaker):
    causes = [Cause(weaker, "the one", NODE), Cause(stronger, "the other", "t.py::test_other")]
    verdict = decide(replace(GREEN, causes=causes, pytest_exit=1), run(attempt()))
    assert (verdict.exit, codes(verdict)) == (stronger, [stronger, weaker])


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (10, "exit 10: the gate is breached: it was so"),
        (14, "exit 14: the verification can be bypassed: it was so"),
        (16, "exit 16: the baseline is missing or incompatible: it was so"),
    ],
)
@pytest.mark.parametrize("pytest_exit", [0, 5])
def test_a_cause_without_a_test_decides_over_a_run_in_which_nothing_failed(attempt, run, code, sentence, pytest_exit):
    verdict = decide(replace(GREEN, causes=[Cause(code, "it was so")], pytest_exit=pytest_exit), run(attempt()))
    assert (verdict.exit, verdict.sentence) == (code, sentence)


@pytest.mark.parametrize("code", [10, 14, 16])
def test_a_failure_of_another_plugin_is_told_beside_our_causes(attempt, run, code):
    session = replace(GREEN, causes=[Cause(code, "it was so")], pytest_exit=1, tests_failed=1)
    assert set(codes(decide(session, run(attempt())))) == {1, code}


def test_a_test_that_passed_when_it_was_run_again_is_flaky(attempt, run):
    tries = [attempt(outcome="failed", verify_status="fail", fault="product", attempt=1), attempt(attempt=2)]
    verdict = decide(replace(GREEN, flaky=[NODE]), run(*tries, attempt(slug="login", nodeid="t.py::test_login")))
    assert (verdict.exit, verdict.flaky) == (0, 1)
    assert {form.slug: form.flaky for form in verdict.forms} == {"signup": 1, "login": 0}


@pytest.mark.parametrize(
    ("told", "prices", "price"),
    [
        ((0.003, 0.001), {}, 0.004),
        ((0.003, None), {"main": 2.0}, 0.003),  # it takes nothing for a task that it did not solve
        ((None, None), {}, None),
        ((None, None), {"main": 2.0}, 0.006),
    ],
)
def test_what_the_provider_says_of_its_prices_goes_before_the_accounts_own(attempt, run, told, prices, price):
    first, second = attempt(submits=2, price=told[0]), attempt(submits=1, price=told[1])
    assert decide(replace(GREEN, prices=prices), run(first, second)).price == price


def gated(*results: tuple[Status, str], mode: GateMode = GateMode.ENFORCE) -> GateAnswer:
    rules = tuple(RuleResult(Rule.MAX_P90, status, what) for status, what in results)
    return GateAnswer(mode, GateResult("staging", "run r1", "1.3.0", ("r1",), rules))


@pytest.mark.parametrize(
    ("status", "pytest_exit", "causes", "expected"),
    [
        (Status.BREACHED, 0, [], [10]),
        (Status.NOT_ENOUGH_DATA, 0, [], [11]),
        (Status.NO_BASELINE, 0, [], [16]),
        (Status.NO_VERDICT, 0, [], []),
        (Status.WARNING, 0, [], []),
        (Status.WAIVED, 0, [], []),
        (Status.BREACHED, 1, [], [1, 10]),
        (Status.BREACHED, 1, [OUTAGE], [10, 12]),
        (Status.NO_BASELINE, 1, [OUTAGE], [12, 16]),
        (Status.BREACHED, 2, [], [2, 10]),
        (Status.BREACHED, 42, [], [42, 10]),
    ],
)
def test_an_enforced_gate_takes_its_place_and_hides_nobody(attempt, run, status, pytest_exit, causes, expected):
    answer = gated((status, "the page is slow"), mode=GateMode.ENFORCE)
    verdict = decide(replace(GREEN, pytest_exit=pytest_exit, causes=causes, gate=answer), run(attempt()))
    assert codes(verdict) == expected
    assert verdict.gate is answer


def test_a_reported_gate_decides_nothing(attempt, run):
    answer = gated((Status.BREACHED, "the page is slow"), mode=GateMode.REPORT)
    assert decide(replace(GREEN, gate=answer), run(attempt())).codes == ()


@pytest.mark.parametrize(("mode", "expected"), [(GateMode.ENFORCE, [4]), (GateMode.REPORT, [])])
def test_a_gate_that_cannot_be_judged_is_never_green_where_it_counts(attempt, run, mode, expected):
    answer = GateAnswer(mode, fault="a record file cannot be read", fault_code=4)
    verdict = decide(replace(GREEN, gate=answer), run(attempt()))
    assert codes(verdict) == expected
