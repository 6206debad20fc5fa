from __future__ import annotations

import pytest

from pytest_captcha_qa.errors import all_errors
from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.reporting.codes import (
    FAULT_CODES,
    MEANINGS,
    STRONGEST_FIRST,
    exit_code_of,
    fault_of,
    plain,
    strongest,
    was_left_open,
)


def test_every_code_has_a_meaning_and_every_fault_a_code():
    assert set(MEANINGS) == set(STRONGEST_FIRST)
    assert set(FAULT_CODES) == set(Fault)
    assert {error.exit_code for error in all_errors().values()} <= set(STRONGEST_FIRST)


@pytest.mark.parametrize(
    ("codes", "decides"),
    [
        ([], 0),
        ([0], 0),
        ([11, 5], 11),
        ([12, 1], 1),
        ([1, 14], 14),
        ([14, 15], 15),
        ([15, 2], 2),
        ([2, 4], 4),
        ([4, 3], 3),
        ([10, 13], 10),
        ([13, 12], 13),
        ([12, 16], 12),
        ([16, 11], 16),
        ([3, 99], 99),
    ],
)
def test_the_strongest_code_decides_and_another_plugins_is_never_hidden(codes, decides):
    assert strongest(codes) == strongest(reversed(codes)) == decides


@pytest.mark.parametrize("code", STRONGEST_FIRST)
def test_in_pytests_range_ours_become_1_and_nothing_becomes_0(code):
    assert plain(code) == (1 if code >= 10 else code)


@pytest.mark.parametrize(
    ("outcome", "fault", "error", "code"),
    [
        ("failed", Fault.PRODUCT, "verdict", 1),
        ("indeterminate", Fault.PROVIDER, "provider_unavailable", 12),
        ("indeterminate", Fault.INFRASTRUCTURE, "target_unavailable", 12),
        ("indeterminate", Fault.UNDETERMINED, "verdict", 12),
        ("indeterminate", Fault.SCOPE, "scope_denied", 15),
        ("indeterminate", Fault.CONFIG, "config", 4),
        ("indeterminate", Fault.CONFIG, "budget_exhausted", 13),
        ("indeterminate", Fault.PROVIDER, "balance_exhausted", 13),
        ("indeterminate", Fault.UNDETERMINED, "internal", 12),
        ("indeterminate", Fault.INFRASTRUCTURE, "stopped", 12),
        ("indeterminate", Fault.UNDETERMINED, "KeyboardInterrupt", 12),
        ("lost", Fault.INFRASTRUCTURE, "lost", 12),
    ],
)
def test_an_attempt_stands_for_the_code_of_its_fault_or_of_its_error(attempt, outcome, fault, error, code):
    line = attempt(outcome=outcome, fault=fault.value, error={"code": error, "message": "it was so"})
    assert fault_of(line) is fault
    assert exit_code_of(line) == code


@pytest.mark.parametrize(
    ("outcome", "expect", "fault"),
    [
        ("failed", "refuse", Fault.PRODUCT),
        ("failed", "accept", Fault.UNDETERMINED),
        ("indeterminate", "refuse", Fault.UNDETERMINED),
        ("ok", "refuse", None),
    ],
)
def test_without_a_recorded_fault_only_an_accepted_refusal_is_the_products(attempt, outcome, expect, fault):
    assert fault_of(attempt(outcome=outcome, expect=expect)) is fault


LEFT_OPEN = {"outcome": "indeterminate", "verify_status": "skipped"}


@pytest.mark.parametrize("expect", ["accept", "refuse"])
def test_an_attempt_its_test_left_open_is_nobodys_fault(attempt, expect):
    line = attempt(**LEFT_OPEN, expect=expect)
    assert was_left_open(line)
    assert (fault_of(line), exit_code_of(line)) == (None, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"error": {"code": "KeyboardInterrupt", "message": "interrupted by KeyboardInterrupt"}},
        {"fault": "provider"},
        {"verify_status": "error"},
        {"outcome": "failed"},
        {"outcome": "lost"},
        {"outcome": "ok"},
    ],
)
def test_an_attempt_of_which_anything_else_is_known_was_not_left_open(attempt, change):
    assert not was_left_open(attempt(**(LEFT_OPEN | change)))


def test_an_attempt_that_met_its_expectation_stands_for_no_failure(attempt):
    assert exit_code_of(attempt()) == 0
