from __future__ import annotations

import pytest

from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.reporting.forms import SENTENCES, FormState, judge_form, pools

BROKEN = {"outcome": "failed", "verify_status": "fail", "fault": "product"}
DOWN = {"outcome": "indeterminate", "verify_status": "skipped", "fault": "provider"}
PAGE = {"outcome": "failed", "verify_status": "skipped", "fault": "product"}
LOST = {"outcome": "lost", "verify_status": "skipped", "fault": "infrastructure"}
DENIED = {"outcome": "indeterminate", "verify_status": "skipped", "fault": "scope"}
REFUSED = {"expect": "refuse", "verify_status": "fail"}
OPEN = {"outcome": "indeterminate", "verify_status": "skipped", "wait": None}
TAKEN = {"expect": "refuse", "verify_status": "pass", "outcome": "failed"}
FAILED_TEST = {"t.py::test_signup"}


@pytest.mark.parametrize(
    ("changes", "state", "fault"),
    [
        ([{}], FormState.OK, None),
        ([{}, REFUSED], FormState.OK, None),
        ([], FormState.NOT_MEASURED, None),
        ([REFUSED], FormState.REFUSALS_ONLY, None),
        ([REFUSED, OPEN], FormState.REFUSALS_ONLY, None),
        ([REFUSED, DOWN], FormState.INDETERMINATE, Fault.PROVIDER),
        ([OPEN, OPEN], FormState.NOT_MEASURED, None),
        ([{}, OPEN], FormState.OK, None),
        ([OPEN, BROKEN], FormState.FAILED, Fault.PRODUCT),
        ([{}, BROKEN], FormState.FAILED, Fault.PRODUCT),
        ([BROKEN, DOWN], FormState.FAILED, Fault.PRODUCT),
        ([DENIED, BROKEN], FormState.FAILED, Fault.PRODUCT),
        ([PAGE], FormState.FAILED, Fault.PRODUCT),
        ([{}, TAKEN], FormState.FAILED, Fault.PRODUCT),
        ([{}, DOWN], FormState.INDETERMINATE, Fault.PROVIDER),
        ([DOWN], FormState.NOT_MEASURED, Fault.PROVIDER),
        ([DOWN, DENIED], FormState.NOT_MEASURED, Fault.SCOPE),
        ([{}, LOST], FormState.INDETERMINATE, Fault.INFRASTRUCTURE),
    ],
)
def test_a_forms_verdict_is_that_of_its_worst_attempt(attempt, changes, state, fault):
    form = judge_form("signup", [attempt(**change) for change in changes], FAILED_TEST)
    assert (form.state, form.fault) == (state, fault)
    assert form.reason


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ([{}, BROKEN], FormState.OK),
        ([BROKEN], FormState.FAILED),
        ([BROKEN, REFUSED], FormState.FAILED),
        ([{}, TAKEN], FormState.FAILED),
        ([BROKEN | {"attempt": -1}], FormState.FAILED),
        ([DOWN], FormState.NOT_MEASURED),
        ([{}, LOST], FormState.INDETERMINATE),
        ([{}, DENIED], FormState.INDETERMINATE),
        ([{}, BROKEN | {"nodeid": None}], FormState.FAILED),
    ],
)
def test_a_passed_test_hides_what_it_may_have_expected_and_nothing_else(attempt, changes, state):
    assert judge_form("signup", [attempt(**change) for change in changes], set()).state is state


def test_the_reason_is_the_recorded_sentence_with_its_share(attempt):
    error = {"code": "page_broken", "message": "page /signup has no widget"}
    form = judge_form("signup", [attempt(), attempt(**PAGE, error=error)], FAILED_TEST)
    assert form.reason == "page /signup has no widget (1 of 2 attempts)"
    assert set(SENTENCES) == set(Fault)


CRASH = {"outcome": "failed", "verify_status": "error", "fault": "product"}
CRASHED = {"code": "verdict", "message": "the site crashed: it answered 500"}
REFUSAL = {"code": "verdict", "message": "the site refused a fresh token"}
NO_ANSWER = {"code": "provider_unavailable", "message": "the provider gave no usable answer"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            [CRASH | {"error": CRASHED}, DOWN | {"error": NO_ANSWER}],
            "the site crashed: it answered 500 (1 of 2 attempts, and 1 more for another reason)",
        ),
        (
            [CRASH | {"error": CRASHED}, *2 * [BROKEN | {"error": REFUSAL}], DOWN | {"error": NO_ANSWER}],
            "the site refused a fresh token (2 of 4 attempts, and 2 more for other reasons)",
        ),
        ([CRASH | {"error": CRASHED}], "the site crashed: it answered 500 (1 of 1 attempt)"),
        ([CRASH | {"error": CRASHED}, OPEN], "the site crashed: it answered 500 (1 of 1 attempt)"),
        ([{}], "1 of 1 attempt went as expected"),
        ([{}, REFUSED, OPEN], "2 of 2 attempts went as expected; 1 not submitted"),
        ([OPEN], "not submitted (1 attempt only opened the page or obtained a token)"),
        ([], "no attempt was made"),
    ],
)
def test_the_reason_counts_only_the_attempts_it_is_true_of(attempt, changes, reason):
    assert judge_form("signup", [attempt(**change) for change in changes], FAILED_TEST).reason == reason


def test_a_reason_from_outside_is_one_inert_line(attempt):
    error = {"code": "page_broken", "message": "page\n  /signup \x1b[2J has\r\nno widget\u202e"}
    form = judge_form("signup", [attempt(**PAGE, error=error)], FAILED_TEST)
    assert form.reason == r"page /signup \x1b[2J has no widget\u202e (1 of 1 attempt)"


def test_counts_tell_positive_from_negative_and_measured_from_not(attempt):
    form = judge_form("signup", [attempt(submits=2), attempt(**REFUSED, submits=0), attempt(**LOST)], ())
    assert (form.positive, form.negative, form.attempts, form.submits, form.measured) == (2, 1, 3, 3, True)
    assert form.outcomes == {"ok": 2, "lost": 1}
    assert not judge_form("signup", [attempt(**DOWN)], ()).measured


def test_attempts_that_were_left_open_are_counted_apart(attempt):
    form = judge_form("signup", [attempt(), attempt(**OPEN, submits=1)], ())
    [pool] = form.pools
    assert (form.attempts, form.not_submitted, form.submits) == (2, 1, 2)
    assert (pool.attempts, pool.not_submitted, pool.measured, pool.judged) == (2, 1, 1, 1)


def test_rates_and_waits_come_from_positive_checks_and_own_solves_only(attempt):
    [pool] = pools(
        [
            attempt(wait=10.0),
            attempt(wait=30.0, source="prefetched", verify_status="fail", outcome="failed"),
            attempt(wait=20.0, purpose="load"),
            attempt(wait=99.0, source="reused"),
            attempt(wait=99.0, source="resumed"),
            attempt(wait=99.0, purpose="probe"),
            attempt(wait=99.0, purpose="canary"),
            attempt(wait=99.0, **REFUSED),
            attempt(wait=None, verify_status="error", outcome="indeterminate"),
        ]
    )
    assert pool.waits == (10.0, 20.0, 30.0)
    assert (pool.wait_median, pool.wait_max) == (20.0, 30.0)
    assert (pool.passed, pool.judged, pool.pass_rate) == (4, 5, 0.8)


def test_key_modes_providers_and_types_are_never_pooled(attempt):
    different = [{}, {"key_mode": "standin"}, {"provider": "capskip"}, {"captcha": "image"}, {}]
    found = pools([attempt(**change) for change in different])
    assert [pool.attempts for pool in found] == [1, 1, 2, 1]


def test_without_data_there_is_no_figure(attempt):
    [pool] = pools([attempt(**DOWN, wait=None)])
    assert (pool.pass_rate, pool.wait_median, pool.wait_max) == (None, None, None)
    assert pools([attempt(**LOST)]) == ()
