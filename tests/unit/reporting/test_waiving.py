from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.summary import summary
from pytest_captcha_qa.reporting.verdict import decide
from pytest_captcha_qa.reporting.verdict_file import verdict_json

DAY = date(2026, 12, 1)
WAIVER = Waiver("legacy", date(2026, 12, 10), "being replaced", "QA-1")
NODE = "t.py::test_legacy"
SESSION = Session(
    pytest_exit=1,
    selected_forms=["legacy", "signup"],
    captcha_tests=2,
    environment="staging",
    waivers=[WAIVER],
    day=DAY,
)
BROKEN = {
    "slug": "legacy", "nodeid": NODE, "outcome": "failed", "fault": "product", "verify_status": "fail",
    "error": {"code": "refused", "message": "a good token was refused"},
}  # fmt: skip
BYPASS = BROKEN | {"expect": "refuse", "verify_status": "pass"}
DOWN = BROKEN | {"outcome": "indeterminate", "fault": "provider", "verify_status": "skipped"}
FAILED = Cause(1, "a good token was refused", NODE)


def texts(verdict):
    return [line.text for line in summary(verdict, root=Path.cwd())]


def codes(verdict):
    return [reasons.code for reasons in verdict.codes]


@pytest.mark.parametrize(
    ("attempt_", "cause"),
    [(BROKEN, FAILED), (DOWN, replace(FAILED, code=12)), (DOWN | {"fault": "undetermined"}, replace(FAILED, code=12))],
)
@pytest.mark.parametrize("mode", ["extended", "pytest"])
def test_a_waived_failure_does_not_decide_the_exit_code(attempt, run, attempt_, cause, mode):
    verdict = decide(replace(SESSION, causes=[cause], mode=mode), run(attempt(), attempt(**attempt_)))
    assert (verdict.exit, verdict.codes, verdict.waived_failures) == (0, (), 1)
    assert verdict.sentence == "exit 0: every failure that was found is waived; 1 of 2 forms ok"


def test_a_waived_failure_is_shown_everywhere(attempt, run):
    verdict = decide(replace(SESSION, causes=[FAILED]), run(attempt(), attempt(**BROKEN)))
    said = texts(verdict)
    assert said[1].endswith("product (waived)")
    assert "legacy: failed: a good token was refused (1 of 1 attempt)" in said
    assert "waived until 2026-12-10: legacy (QA-1): being replaced" in said
    legacy = verdict_json(verdict, Path.cwd())["forms"]["legacy"]
    assert (legacy["verdict"], legacy["fault"]) == ("failed", "product")
    assert legacy["waived"] == {
        "until": "2026-12-10", "reason": "being replaced", "ticket": "QA-1", "expired": False,
    }  # fmt: skip


def test_a_waived_form_is_a_warning_and_no_error_in_colour(attempt, run):
    lines = summary(decide(replace(SESSION, causes=[FAILED]), run(attempt(), attempt(**BROKEN))), root=Path.cwd())
    assert not [line.text for line in lines if line.markup.get("red")]


@pytest.mark.parametrize(("day", "exit_"), [(date(2026, 12, 10), 0), (date(2026, 12, 11), 1)])
def test_a_waiver_lasts_to_the_end_of_its_last_day(attempt, run, day, exit_):
    verdict = decide(replace(SESSION, causes=[FAILED], day=day), run(attempt(), attempt(**BROKEN)))
    assert verdict.exit == exit_


def test_an_expired_waiver_is_told_and_its_failures_count(attempt, run):
    verdict = decide(replace(SESSION, causes=[FAILED], day=date(2027, 1, 1)), run(attempt(), attempt(**BROKEN)))
    expired = "waiver expired, its last day was 2026-12-10: legacy (QA-1): being replaced; its failures count again"
    assert expired in texts(verdict)
    assert verdict_json(verdict, Path.cwd())["forms"]["legacy"]["waived"]["expired"] is True
    assert verdict.sentence == "exit 1: a form is broken or a test failed: a good token was refused"


def test_a_waiver_that_is_not_needed_says_so(attempt, run):
    verdict = decide(replace(SESSION, pytest_exit=0), run(attempt(), attempt(slug="legacy")))
    assert "waived until 2026-12-10: legacy (QA-1): being replaced; it went well, so the waiver can go" in texts(
        verdict
    )
    assert verdict.sentence == "exit 0: no failure was found; 2 of 2 forms ok"


def test_a_waiver_without_a_ticket_shows_none(attempt, run):
    session = replace(SESSION, causes=[FAILED], waivers=[replace(WAIVER, ticket=None)])
    assert "waived until 2026-12-10: legacy: being replaced" in texts(decide(session, run(attempt(**BROKEN))))


@pytest.mark.parametrize(
    ("what", "attempts", "causes", "exit_"),
    [
        ("an unauthorised target", [BROKEN | {"fault": "scope"}], [replace(FAILED, code=15)], 15),
        ("a wrong configuration", [BROKEN | {"fault": "config"}], [replace(FAILED, code=4)], 4),
        (
            "a used-up budget",
            [DOWN | {"error": {"code": "budget_exhausted", "message": "used up"}}],
            [replace(FAILED, code=13)],
            13,
        ),
        ("a bypassed verification", [BROKEN], [FAILED, Cause(14, "a used token was accepted")], 14),
        ("a failure of the test itself", [{"slug": "legacy", "nodeid": NODE}], [FAILED], 1),
        ("a failure that no attempt explains", [], [FAILED], 1),
        ("what had to be refused and was accepted", [BYPASS], [FAILED], 1),
        ("a failure of the test's teardown", [BROKEN], [FAILED, replace(FAILED, waivable=False)], 1),
        ("another test's failure", [BROKEN], [FAILED, Cause(1, "no", "t.py::test_ordinary")], 1),
        ("an assertion after an outage that the test took", [DOWN], [FAILED], 1),
        ("another form's failure in the same test", [BROKEN, BROKEN | {"slug": "signup"}], [FAILED], 1),
        ("another form's outage", [BROKEN, DOWN | {"slug": "signup", "nodeid": "t.py::b"}],
         [FAILED, Cause(12, "down", "t.py::b")], 12),
        ("a crash of the worker", [BROKEN | {"outcome": "lost", "fault": "infrastructure"}],
         [replace(FAILED, code=12)], 12),
        ("only the last execution of a test", [BROKEN, {"slug": "legacy", "nodeid": NODE, "attempt": 2}], [FAILED], 1),
    ],
)  # fmt: skip
def test_what_no_waiver_covers(attempt, run, what, attempts, causes, exit_):
    verdict = decide(replace(SESSION, causes=causes), run(attempt(), *(attempt(**changes) for changes in attempts)))
    assert verdict.exit == exit_, what


def test_a_waived_failure_hides_nothing_that_another_form_did_not_report(attempt, run):
    silent = attempt(slug="signup", nodeid="t.py::quiet", outcome="failed", fault="product", verify_status="fail")
    verdict = decide(replace(SESSION, causes=[FAILED]), run(attempt(**BROKEN), silent))
    assert codes(verdict) == [1]
    assert "form 'signup'" in verdict.sentence


def test_what_no_test_reported_of_a_waived_form_is_waived_too(attempt, run):
    verdict = decide(replace(SESSION, pytest_exit=0), run(attempt(), attempt(**BROKEN)))
    assert (verdict.exit, verdict.waived_failures) == (0, 1)


def test_a_bypass_that_no_test_reported_is_not_waived(attempt, run):
    verdict = decide(replace(SESSION, pytest_exit=0), run(attempt(), attempt(**BYPASS)))
    assert verdict.exit == 1


def test_records_that_are_incomplete_are_never_waived(attempt, run):
    verdict = decide(replace(SESSION, causes=[FAILED]), run(attempt(), attempt(**BROKEN), complete=False))
    assert verdict.exit == 12


def test_a_run_that_measured_only_waived_outages_has_too_little_data(attempt, run):
    session = replace(SESSION, causes=[replace(FAILED, code=12)], selected_forms=["legacy"])
    assert codes(decide(session, run(attempt(**DOWN)))) == [11]


def test_a_run_that_a_waived_failure_stopped_early_is_not_green(attempt, run):
    session = replace(SESSION, causes=[FAILED], stopped_by_failures=True)
    verdict = decide(session, run(attempt(), attempt(**BROKEN)))
    assert verdict.sentence == (
        "exit 11: not enough data: a waived failure has stopped the run before its end (-x or --maxfail)"
    )


def test_another_plugins_failure_is_not_hidden_by_a_waiver(attempt, run):
    session = replace(SESSION, causes=[FAILED], tests_failed=2)
    assert decide(session, run(attempt(), attempt(**BROKEN))).exit == 1
    assert decide(replace(session, pytest_exit=2, tests_failed=1), run(attempt(**BROKEN))).exit == 2


def test_coverage_names_what_was_not_measured_and_until_when_it_is_waived(attempt, run):
    session = replace(SESSION, selected_forms=["legacy", "login", "signup"], causes=[replace(FAILED, code=12)])
    verdict = decide(session, run(attempt(), attempt(**DOWN)))
    assert "measured 1/3 (not measured: legacy, waived until 2026-12-10, login) · 2 submits" in texts(verdict)
    assert verdict_json(verdict, Path.cwd())["coverage"] == {
        "measured": 1, "selected": 3, "measured_forms": ["signup"], "not_measured_forms": ["legacy", "login"],
            "unselected_forms": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("budget", "given", "said"),
    [
        (None, False, "measured 1/1 · 4 submits"),
        (40, True, "measured 1/1 · 4 submits · budget 40, used 4"),
        (40, False, "measured 1/1 · 4 submits"),
        (5, False, "measured 1/1 · 4 submits"),
        (4, False, "measured 1/1 · 4 submits · budget 4, used 4"),
    ],
)
def test_the_budget_is_told_when_somebody_gave_it_or_it_is_nearly_used_up(attempt, run, budget, given, said):
    session = Session(pytest_exit=0, selected_forms=["signup"], captcha_tests=1, environment="staging")
    verdict = decide(replace(session, budget=budget, budget_given=given), run(attempt(submits=4)))
    assert said in texts(verdict)
    assert verdict_json(verdict, Path.cwd())["cost"] == {"submits": 4, "price": None, "budget": budget}
