from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from pytest_captcha_qa.model.gate import GateRules, Rule, Rules
from pytest_captcha_qa.reporting.gate.results import GateResult, RuleResult, Status

FAILED: Mapping[str, Any] = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
OUTAGE: Mapping[str, Any] = {
    "verify_status": "skipped", "outcome": "indeterminate", "fault": "provider", "wait": None,
}  # fmt: skip
RATE = Rules(min_verify_rate=0.99)
PAGE = Rules(max_p90={"page": 3})


def times(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [changes] * count


def only(result: GateResult) -> RuleResult:
    (found,) = result.rules
    return found


@pytest.mark.parametrize(
    ("passed", "failed", "status", "code", "piece"),
    [
        (1, 0, Status.PASSED, 0, "1 of 1 (100 %), at least 99 % asked; kept"),
        (0, 1, Status.BREACHED, 10, "0 of 1 (0 %), at least 99 % asked; at most 95 % with 95 % confidence"),
        (60, 1, Status.NOT_ENOUGH_DATA, 0, "60 of 61 (98.4 %), at least 99 % asked; too few to tell (at most 99.92 %"),
        (97, 23, Status.BREACHED, 10, "97 of 120 (80.8 %), at least 99 % asked; at most 86.5 % with 95 % confidence"),
        (998, 2, Status.PASSED, 0, "998 of 1000 (99.8 %), at least 99 % asked; kept"),
    ],
)
def test_a_rate_is_breached_only_where_the_bound_excludes_it(
    records: Any, passed: int, failed: int, status: Status, code: int, piece: str
) -> None:
    records.run("r1", [*times(passed), *times(failed, **FAILED)])
    result = records.judge(RATE)
    assert (only(result).status, result.exit) == (status, code)
    assert only(result).sentence.startswith(f"verification rate of turnstile (captchaai, live): {piece}")
    assert only(result).numbers["judged"] == passed + failed


def test_one_attempt_is_not_enough_for_a_rate_that_one_could_never_breach(records: Any) -> None:
    records.run("r1", times(1))
    assert only(records.judge(Rules(min_verify_rate=0.9))).status is Status.NOT_ENOUGH_DATA
    required = records.judge(Rules(min_verify_rate=0.9, require_data=frozenset({Rule.MIN_VERIFY_RATE})))
    assert required.exit == 11


def test_forms_of_a_type_are_judged_together_and_those_with_rules_alone(records: Any) -> None:
    records.run("r1", [*times(60), *times(30, slug="login"), *times(10, slug="login", **FAILED)])
    together = only(records.judge(RATE))
    assert (together.status, together.forms) == (Status.BREACHED, ("login", "signup"))
    assert "; login 30 of 40" in together.sentence
    apart = records.judge(GateRules(all=RATE, forms={"login": Rules(min_verify_rate=0.5)}))
    assert [(one.status, one.forms, one.pool.form if one.pool else None) for one in apart.rules] == [
        (Status.PASSED, ("signup",), None),
        (Status.PASSED, ("login",), "login"),
    ]
    assert apart.rules[1].sentence.startswith(
        "verification rate of form 'login' (turnstile, captchaai, live): 30 of 40"
    )


def test_key_modes_providers_and_scaled_times_are_never_pooled(records: Any) -> None:
    mixed = [*times(20), *times(5, key_mode="standin", provider="sandbox", **FAILED)]
    records.run("r1", mixed)
    result = records.judge(RATE)
    assert [one.status for one in result.rules] == [Status.PASSED, Status.BREACHED]
    assert "key modes live and standin prove different things and are judged apart" in result.notes
    records.run("r2", times(3, wait=50.0), time_scale=0.01, ago=-timedelta(minutes=1))
    scaled = only(records.judge(Rules(max_p90={"wait": 10})))
    assert (scaled.status, scaled.code) == (Status.NOT_ENOUGH_DATA, 0)
    assert "times scaled to 1 %" in scaled.sentence


def test_a_vendors_evening_is_left_out_and_never_red_by_itself(records: Any) -> None:
    slow = [*times(10, wait=200.0), *times(30, **OUTAGE), *times(20, **{**FAILED, "fault": "undetermined"})]
    records.run("r1", slow)
    rules = Rules(min_verify_rate=0.99, max_resolve_share=0.02, max_p90={"page": 3}, warn_p90={"wait": 10})
    result = records.judge(rules)
    states = {one.rule: one.status for one in result.rules}
    assert (result.exit, states[Rule.WARN_P90]) == (0, Status.WARNING)
    assert states[Rule.MIN_VERIFY_RATE] is Status.PASSED
    rate = next(one for one in result.rules if one.rule == Rule.MIN_VERIFY_RATE)
    assert rate.sentence.endswith("; 50 attempts left out: outage or undetermined")


def test_a_provider_side_time_that_the_team_moved_up_is_a_breach(records: Any) -> None:
    records.run("r1", times(10, wait=200.0))
    result = records.judge(Rules(max_p90={"wait": {"turnstile": 10, "hcaptcha": 20}}))
    assert (result.exit, only(result).status) == (10, Status.BREACHED)
    assert only(result).sentence == (
        "wait for the token of turnstile (captchaai, live) (the provider's side): P90 200 s of 10 attempts, "
        "at most 10 s allowed; at least 200 s with 95 % confidence"
    )


@pytest.mark.parametrize(
    ("pages", "status"),
    [
        ([], Status.NOT_ENOUGH_DATA),
        ([9.0], Status.NOT_ENOUGH_DATA),
        ([9.0, 9.0], Status.BREACHED),
        ([*[1.0] * 19, 9.0], Status.PASSED),
        ([*[1.0] * 8, 9.0, 9.0], Status.NOT_ENOUGH_DATA),
        ([*[1.0] * 60, *[9.0] * 40], Status.BREACHED),
    ],
    ids=["none", "one", "two", "an outlier", "cannot be told", "many"],
)
def test_a_time_is_breached_only_where_the_bound_of_its_p90_excludes_it(
    records: Any, pages: list[float], status: Status
) -> None:
    records.run("r1", [{"seconds": {"page": page}} for page in pages] or [OUTAGE])
    found = next(one for one in records.judge(PAGE).rules if one.rule == Rule.MAX_P90)
    assert found.status is status
    assert found.metric == "page"


def test_a_time_that_no_attempt_has_fails_nothing_though_data_is_required(records: Any) -> None:
    records.run("r1", times(5, seconds={"page": 1.0}))
    result = records.judge(Rules(max_p90={"verify": 2, "page": 2}, require_data=frozenset(Rule)))
    assert (result.exit, [one.status for one in result.rules]) == (0, [Status.NOT_ENOUGH_DATA, Status.PASSED])


def test_repeated_solves_breach_unless_the_provider_was_why(records: Any) -> None:
    repeated = [*times(50), *times(10, submits=2)]
    records.run("r1", repeated)
    ours = records.judge(Rules(max_resolve_share=0.02))
    assert (ours.exit, only(ours).numbers["repeats"]) == (10, 10)
    assert "10 beyond the first of 60 captchas (16.7 %), at most 2 % allowed; at least" in only(ours).sentence
    renewed = ("token_renewed", {"slug": "signup", "why": "unsolvable"})
    refused = ("token_refused_once", {"slug": "signup"})
    expired = ("token_renewed", {"slug": "signup", "why": "expired"})
    records.run("r2", repeated, events=[renewed] * 8 + [refused, expired], ago=-timedelta(minutes=1))
    theirs = records.judge(Rules(max_resolve_share=0.02))
    assert (theirs.exit, only(theirs).status) == (0, Status.WARNING)
    assert "(16.7 %, 9 of them since the provider failed)" in only(theirs).sentence


def test_runs_of_a_release_are_judged_together(records: Any) -> None:
    for number in range(4):
        records.run(f"r{number}", times(10, seconds={"page": 1.0 + number}), ago=timedelta(hours=number))
    records.run("other", times(10, **FAILED), release="1.2.0", ago=timedelta(hours=9))
    result = records.judge(Rules(min_verify_rate=0.99, max_p90={"page": 3}), release="1.3.0")
    assert (result.subject, result.runs) == ("release 1.3.0 (4 runs)", ("r0", "r1", "r2", "r3"))
    assert [one.numbers.get("judged", one.numbers.get("n")) for one in result.rules] == [40, 40]


@pytest.mark.parametrize(
    ("submits", "status"),
    [([40], Status.NOT_ENOUGH_DATA), ([2] * 2, Status.NOT_ENOUGH_DATA), ([2] * 9, Status.BREACHED)],
)
def test_one_captcha_that_needed_many_solves_breaches_nothing(records: Any, submits: list[int], status: Status) -> None:
    records.run("r1", [*times(60 - len(submits)), *({"submits": count} for count in submits)])
    found = only(records.judge(Rules(max_resolve_share=0.02)))
    assert (found.status, found.numbers["repeats"]) == (status, sum(submits) - len(submits))


def test_repeated_solves_of_a_single_run_are_worth_one_run(records: Any) -> None:
    for number in range(6):
        records.run(f"r{number}", times(10, submits=2 if number == 0 else 1), ago=timedelta(hours=number))
    assert only(records.judge(Rules(max_resolve_share=0.02), release="1.3.0")).status is Status.NOT_ENOUGH_DATA


def test_what_is_no_time_is_not_counted_as_one(records: Any) -> None:
    records.run("r1", [*times(12, seconds={"page": 1.0}), {"seconds": {"page": -5.0}}, {"seconds": {"page": 1e300}}])
    assert {name: only(records.judge(PAGE)).numbers[name] for name in ("n", "p90")} == {"n": 12, "p90": 1.0}
