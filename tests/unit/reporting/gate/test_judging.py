from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from pytest_captcha_qa.model.gate import GateRules, Rule, Rules
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.gate.results import RECORDS, RELEASE, GateResult, Status

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
FAILED: Mapping[str, Any] = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
OUTAGE: Mapping[str, Any] = {"verify_status": "skipped", "outcome": "indeterminate", "fault": "provider"}
EVERY = Rules(
    min_verify_rate=0.99,
    max_age_of_pass=timedelta(days=3),
    max_resolve_share=0.02,
    max_p90={"page": 3},
    warn_p90={"wait": 30},
)
ALL = GateRules(all=EVERY, min_coverage=1.0)
COVERAGE = GateRules(min_coverage=1.0)
AGE = Rules(max_age_of_pass=timedelta(days=3))


def said(result: GateResult, rule: str) -> list[str]:
    return [one.sentence for one in result.rules if one.rule == rule]


def state(result: GateResult) -> dict[str, Status]:
    return {one.rule: one.status for one in result.rules}


def test_day_one_has_one_attempt_per_form_and_nothing_red(records: Any) -> None:
    records.run("r1", [{}, {"slug": "login", "captcha": "hcaptcha"}])
    result = records.judge(ALL, selected={"signup": "turnstile", "login": "hcaptcha"}, baseline="previous")
    assert (result.exit, result.codes) == (0, ())
    assert state(result) == {
        Rule.MIN_VERIFY_RATE: Status.PASSED,
        Rule.MAX_RESOLVE_SHARE: Status.PASSED,
        Rule.MAX_P90: Status.NOT_ENOUGH_DATA,
        Rule.WARN_P90: Status.NOT_ENOUGH_DATA,
        Rule.MIN_COVERAGE: Status.PASSED,
        Rule.MAX_AGE_OF_PASS: Status.PASSED,
        Rule.REGRESSION: Status.NOT_ENOUGH_DATA,
    }
    assert said(result, Rule.REGRESSION) == [
        "regression: no complete run of another release than 1.3.0 has measured anything yet to compare with"
    ]


@pytest.mark.parametrize("attempts", [[], [{"outcome": "indeterminate", "verify_status": "skipped", "submits": 0}]])
def test_zero_samples_are_never_green(records: Any, attempts: list[dict[str, Any]]) -> None:
    records.run("r1", attempts)
    result = records.judge(EVERY, selected={"signup": "turnstile"})
    assert (result.exit, state(result)[RECORDS]) == (11, Status.NOT_ENOUGH_DATA)
    assert set(state(result).values()) == {Status.NOT_ENOUGH_DATA}


def test_records_that_know_nothing_of_what_was_asked_say_so(records: Any) -> None:
    empty = records.judge(ALL)
    assert (empty.exit, said(empty, RECORDS)) == (11, ["the records hold nothing of any run in environment 'staging'"])
    records.run("r1", [{}])
    for asked, what in (({"run_id": "r9"}, "run r9"), ({"release": "9.9"}, "release 9.9"), ({"env": "qa"}, "any run")):
        result = records.judge(ALL, **asked)
        assert (result.exit, what in said(result, RECORDS)[0]) == (11, True)


def test_an_outage_that_leaves_nothing_is_no_verdict_and_no_breach(records: Any) -> None:
    records.run("r1", [OUTAGE] * 12)
    result = records.judge(ALL, selected={"signup": "turnstile"})
    assert (result.exit, result.codes) == (12, (12,))
    assert said(result, RECORDS) == ["nothing was measured: all of 12 attempts met an outage"]
    assert "an outage kept them from it" in said(result, Rule.MIN_COVERAGE)[0]


def test_a_half_written_file_is_no_verdict_whatever_it_shows(records: Any) -> None:
    path = records.run("r1", [{}] * 10, complete=False)
    path.write_bytes(path.read_bytes()[:-40])
    result = records.judge(ALL, selected={"signup": "turnstile"})
    assert (result.exit, result.codes) == (12, (12,))
    assert said(result, RECORDS)[0].startswith("the records of run r1 are incomplete")
    assert any("damaged" in note or ":11" in note for note in result.notes) or result.notes == ()
    of_its_own = records.judge(ALL, since=NOW - timedelta(hours=1), run_id="r1", selected={"signup": "turnstile"})
    assert of_its_own.exit == 0


def test_a_release_that_changes_during_the_run_makes_the_gate_answer_11(records: Any) -> None:
    records.run("r1", [*[FAILED] * 9, {"release": "1.4.0"}])
    result = records.judge(ALL, selected={"signup": "turnstile"})
    assert (result.exit, list(state(result))) == (11, [RELEASE])
    assert said(result, RELEASE)[0].startswith("the release under test changed during run r1, so what was measured is")


def test_shards_of_a_run_are_judged_as_one(records: Any) -> None:
    records.run("r1", [{}] * 5, shard="1")
    records.run("r1", [{"slug": "login"}] * 5, shard="2")
    result = records.judge(ALL, selected={"signup": "turnstile", "login": "turnstile"})
    assert (result.exit, result.runs, said(result, Rule.MIN_COVERAGE)) == (
        0, ("r1",), ["coverage: 2 of 2 forms measured (100 %), at least 100 % asked"],
    )  # fmt: skip


def test_the_newest_run_is_judged_unless_another_is_named(records: Any) -> None:
    records.run("zz-old", [FAILED] * 9, ago=timedelta(hours=3))
    records.run("new", [{}] * 9)
    assert records.judge(EVERY).exit == 0
    assert records.judge(EVERY, run_id="zz-old").exit == 10


def test_a_form_that_nobody_measured_breaches_the_coverage(records: Any) -> None:
    records.run("r1", [{}, {"slug": "login", **OUTAGE}])
    selected = {"signup": "turnstile", "login": "turnstile", "contact": "hcaptcha"}
    result = records.judge(COVERAGE, selected=selected)
    assert (result.exit, said(result, Rule.MIN_COVERAGE)) == (
        10, ["coverage: 1 of 3 forms measured (33.3 %), at least 100 % asked; not measured: login, contact"],
    )  # fmt: skip
    assert records.judge(GateRules(min_coverage=0.3), selected=selected).exit == 0


def test_the_age_of_the_last_pass_comes_from_all_records(records: Any) -> None:
    records.run("old", [{"slug": "login"}, {"slug": "contact"}], ago=timedelta(days=4), release="1.2.0")
    records.run("mid", [{"slug": "login"}], ago=timedelta(days=2, hours=12), release="1.2.0")
    records.run("r1", [{"slug": "login", **OUTAGE}, {}])
    result = records.judge(AGE, selected=dict.fromkeys(("login", "contact", "signup", "never"), "turnstile"))
    assert [one.status for one in result.rules] == [
        Status.PASSED, Status.BREACHED, Status.PASSED, Status.NOT_ENOUGH_DATA,
    ]  # fmt: skip
    assert said(result, Rule.MAX_AGE_OF_PASS)[:2] == [
        "age of the last pass: form 'login' passed 2.5 days ago (2026-11-27 00:00 UTC), at most 3 days allowed",
        "age of the last pass: form 'contact' passed 4 days ago (2026-11-25 12:00 UTC), at most 3 days allowed",
    ]
    assert result.exit == 10


def test_a_pass_of_another_key_mode_proves_something_else(records: Any) -> None:
    records.run("old", [{"key_mode": "testkeys"}], ago=timedelta(days=1))
    records.run("r1", [OUTAGE, {"slug": "login"}])
    result = records.judge(AGE, selected={"signup": "turnstile"})
    assert said(result, Rule.MAX_AGE_OF_PASS) == [
        "age of the last pass: form 'signup' has no pass on record yet, and met an outage, at most 3 days allowed"
    ]


def test_a_renamed_form_has_no_history_and_is_told(records: Any) -> None:
    records.run("old", [{"slug": "sign_up"}], ago=timedelta(days=4), release="1.2.0")
    records.run("r1", [{}])
    result = records.judge(ALL, selected={"signup": "turnstile"})
    assert result.exit == 0
    assert result.notes == ("form 'signup' is new, sign_up of its type gone: a form that was renamed has no history",)


def waiver(days: int = 3, **about: str) -> Waiver:
    return Waiver(about.get("form", ""), date(2026, 11, 29) + timedelta(days), "moving", "QA-1", rule=about.get("rule"))


def test_a_form_that_is_waived_fails_nothing_and_drags_nobody_along(records: Any) -> None:
    records.run("r1", [{}] * 50 + [{"slug": "legacy", **FAILED}] * 9)
    selected = {"signup": "turnstile", "legacy": "turnstile", "gone": "turnstile"}
    waivers = (waiver(form="legacy"), waiver(form="gone"))
    result = records.judge(ALL, selected=selected, waivers=waivers)
    assert (result.exit, said(result, Rule.MIN_COVERAGE)) == (
        0, ["coverage: 2 of 2 forms measured (100 %), at least 100 % asked; waived: gone"],
    )  # fmt: skip
    (waived,) = [one for one in result.rules if one.status is Status.WAIVED]
    assert waived.forms == ("legacy",)
    assert waived.sentence.endswith("(waived until 2026-12-02: legacy (QA-1): moving)")


def test_a_waiver_that_has_expired_fails_and_says_so(records: Any) -> None:
    records.run("r1", [FAILED] * 9)
    result = records.judge(EVERY, waivers=(waiver(-1, form="signup"),))
    assert result.exit == 10
    assert any("its waiver has expired, the last day was 2026-11-28" in one.sentence for one in result.rules)


def test_a_rule_is_waived_for_one_form_or_for_everything(records: Any) -> None:
    records.run("r1", [FAILED] * 9 + [{"slug": "login", **FAILED}] * 9)
    rate = Rules(min_verify_rate=0.99)
    for waivers, exits in (
        ((waiver(rule="min_verify_rate"),), 0),
        ((waiver(rule="max_p90"),), 10),
        ((waiver(rule="min_verify_rate", form="login"),), 10),
        ((waiver(rule="min_verify_rate", form="login"), waiver(form="signup")), 0),
    ):
        assert records.judge(rate, waivers=waivers).exit == exits


def test_neither_gaps_nor_a_changed_release_are_ever_waived(records: Any) -> None:
    records.run("r1", [{}], complete=False)
    everything = (waiver(form="signup"), *(waiver(rule=rule) for rule in Rule))
    assert records.judge(EVERY, waivers=everything).exit == 12


def test_of_a_release_old_accidents_are_noted_and_the_newest_counts(records: Any) -> None:
    records.run("r1", [{}] * 9, ago=timedelta(hours=3), complete=False)
    records.run("r2", [{}, {"release": "1.4.0"}], ago=timedelta(hours=2))
    records.run("r3", [{}] * 9, ago=timedelta(hours=1))
    result = records.judge(Rules(min_verify_rate=0.99), release="1.3.0")
    assert (result.exit, result.runs) == (0, ("r3", "r1"))
    assert result.notes == (
        "left out, since the release changed meanwhile: 1 run (r2)",
        "ended early, and judged by what they recorded: 1 run (r1)",
    )
    records.run("r4", [{}] * 9, complete=False)
    assert records.judge(Rules(min_verify_rate=0.99), release="1.3.0").exit == 12


def test_a_waiver_in_force_goes_before_one_that_has_expired(records: Any) -> None:
    records.run("r1", [FAILED] * 9)
    waivers = (waiver(-1, rule="min_verify_rate", form="signup"), waiver(form="signup"))
    assert records.judge(Rules(min_verify_rate=0.99), waivers=waivers).exit == 0


def test_a_waiver_of_a_rule_that_nothing_needs_is_told(records: Any) -> None:
    records.run("r1", [{}] * 9)
    waivers = (waiver(rule="max_p90"), waiver(-2, rule="regression", form="signup"), waiver(form="signup"))
    assert records.judge(EVERY, waivers=waivers).notes == (
        "nothing fails of what is waived by max_p90 (QA-1): moving; the waiver can go",
        "nothing fails of what is waived by signup regression (QA-1): moving; the waiver has expired, "
        "its last day was 2026-11-27",
    )


def test_a_clock_that_is_wrong_hides_neither_later_runs_nor_an_old_pass(records: Any) -> None:
    records.run("ahead", [{}], release="9.9.0", ago=timedelta(days=-300))
    records.run("old", [{}], release="1.2.0", ago=timedelta(days=9))
    records.run("r1", [{"verify_status": "fail", "outcome": "failed", "fault": "product"}])
    result = records.judge(Rules(max_age_of_pass=timedelta(days=3)))
    assert (result.runs, result.exit) == (("r1",), 10)
    assert "form 'signup' passed 9 days ago" in said(result, Rule.MAX_AGE_OF_PASS)[0]
    assert "1 run began in the future (ahead): the clock of a machine is wrong" in "\n".join(result.notes)
    assert records.judge(Rules(), release="9.9.0").runs == ("ahead",)
