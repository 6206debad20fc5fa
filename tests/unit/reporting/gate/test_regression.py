from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.gate import GateRules, Rule, Rules
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.dataset import open_dataset
from pytest_captcha_qa.reporting.gate.results import GateResult, Status

FAILED: Mapping[str, Any] = {"verify_status": "fail", "outcome": "failed", "fault": "product"}


def history(
    records: Any, release: str, *, page: float = 1.0, wait: float = 8.0, days: int = 0, name: str = "", **also: Any
) -> None:
    """Write twelve runs of ten attempts, whose times differ a little."""
    for run in range(12):
        spread = [1 + ((7 * run + 3 * number) % 11 - 5) / 50 for number in range(10)]
        attempts = [{"wait": wait * each, "seconds": {"page": page * each}, **also} for each in spread]
        records.run(f"{name or release}-{run:02}", attempts, release=release, ago=timedelta(days=days, hours=run))


def against(result: GateResult) -> list[tuple[Status, str]]:
    return [(one.status, one.sentence) for one in result.rules if one.rule == Rule.REGRESSION]


def test_our_side_that_got_worse_is_a_breach_and_the_providers_a_warning(records: Any) -> None:
    history(records, "1.2.0", days=3)
    history(records, "1.3.0", page=1.6, wait=13.0)
    result = records.judge(Rules(), baseline="previous")
    found = {one.metric: one for one in result.rules if one.metric}
    assert (result.exit, result.baseline, found["page"].status, found["wait"].status) == (
        10, "1.2.0", Status.BREACHED, Status.WARNING,
    )  # fmt: skip
    assert found["page"].sentence.startswith("regression: ")
    assert found["wait"].sentence.endswith("(the provider may be why)")
    assert found["page"].numbers["effect"] == pytest.approx(0.6, abs=0.05)
    assert result.comparison is not None
    moved_up = records.judge(Rules(max_p90={"wait": 100}), baseline="1.2.0")
    assert {one.metric: one.status for one in moved_up.rules if one.rule == Rule.REGRESSION}["wait"] is Status.BREACHED


def test_what_did_not_change_is_one_line(records: Any) -> None:
    history(records, "1.2.0", days=3)
    history(records, "1.3.0")
    result = records.judge(Rules(), baseline="previous")
    assert result.exit == 0
    assert [status for status, _ in against(result)][-1] is Status.PASSED
    assert "against 1.2.0" in against(result)[-1][1]
    assert "without a change for the worse" in against(result)[-1][1]


def test_rules_of_a_form_have_their_own_effect_and_the_form_is_compared_alone(records: Any) -> None:
    for release, page, days in (("1.2.0", 1.0, 3), ("1.3.0", 1.4, 0)):
        for run in range(12):
            attempts = [
                {"slug": slug, "seconds": {"page": page * (1 + (run + number) % 7 / 100)}}
                for slug in ("signup", "login") for number in range(10)
            ]  # fmt: skip
            records.run(f"{release}-{run}", attempts, release=release, ago=timedelta(days=days, hours=run))
    rules = GateRules(forms={"login": Rules(min_effect=2.0)})
    result = records.judge(rules, baseline="1.2.0")
    worse = [one.pool.form for one in result.rules if one.status is Status.BREACHED and one.metric == "page"]
    assert worse == [None]
    waived = Waiver("signup", date(2026, 12, 1), "known", rule="regression")
    assert records.judge(rules, baseline="1.2.0", waivers=(waived,)).exit == 0


def test_a_day_with_one_attempt_each_is_too_little_to_compare(records: Any) -> None:
    records.run("old", [{}], release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{"wait": 90.0}])
    result = records.judge(Rules(), baseline="previous")
    assert (result.exit, {status for status, _ in against(result)}) == (0, {Status.NOT_ENOUGH_DATA})
    required = records.judge(Rules(require_data=frozenset({Rule.REGRESSION})), baseline="previous")
    assert required.exit == 11


def test_a_baseline_that_was_named_and_is_not_there_answers_16(records: Any) -> None:
    records.run("old", [{}], release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}])
    for named, piece in (
        ("1.1.0", "no record of the baseline 1.1.0 in environment 'staging' (there: 1.3.0, 1.2.0)"),
        ("1.3.0", "is the release under test itself"),
    ):
        result = records.judge(Rules(), baseline=named)
        assert (result.exit, piece in against(result)[0][1]) == (16, True), against(result)
    missing = records.judge(Rules(), baseline="main.jsonl", baseline_fault="there is no record file main.jsonl")
    assert (missing.exit, against(missing)) == (
        16,
        [(Status.NO_BASELINE, "regression: there is no baseline: there is no record file main.jsonl")],
    )


def test_a_baseline_of_another_key_mode_is_incompatible(records: Any) -> None:
    records.run("old", [{"key_mode": "standin", "provider": "sandbox"}] * 5, release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}] * 5)
    result = records.judge(Rules(), baseline="1.2.0")
    assert (result.exit, against(result)[0][1]) == (
        16,
        "regression: the baseline 1.2.0 cannot be compared: 1.2.0 has turnstile (sandbox, standin), "
        "1.3.0 has turnstile (captchaai, live), which are never pooled",
    )


def test_a_baseline_of_a_newer_schema_is_incompatible(records: Any) -> None:
    records.run("old", [{}], release="1.2.0", ago=timedelta(days=1), schema=99)
    records.run("r1", [{}])
    result = records.judge(Rules(), baseline="1.2.0")
    assert (result.exit, "was recorded by a newer tool (schema 99, ours is 1)" in against(result)[0][1]) == (16, True)


def test_an_unknown_release_is_not_compared(records: Any) -> None:
    records.run("old", [{"release": "1.2.0"}], release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}], release=None)
    result = records.judge(Rules(), baseline="previous")
    assert (result.exit, against(result)[0][0]) == (0, Status.NOT_ENOUGH_DATA)
    assert "is unknown, so it is not compared; name it with --captcha-release" in against(result)[0][1]


def test_record_files_are_a_baseline_whatever_their_release(records: Any, tmp_path: Path) -> None:
    history(records, "1.3.0", page=1.0, name="main")
    main = tmp_path / "main"
    records.folder.rename(main)
    records.folder.mkdir()
    history(records, "1.3.0", page=2.0)
    with closing(open_dataset([main])) as dataset:
        result = records.judge(Rules(), baseline="main", baseline_records=dataset)
    assert (result.exit, result.baseline) == (10, "main")


def test_a_folder_that_holds_the_release_under_test_too_is_no_baseline_of_itself(records: Any) -> None:
    history(records, "1.2.0", days=3)
    history(records, "1.3.0", page=1.6)
    with closing(open_dataset([records.folder])) as dataset:
        result = records.judge(Rules(), baseline="records", baseline_records=dataset)
    assert result.exit == 10
    assert "records: 12 runs left out, which the other side has too" in "\n".join(result.notes)
    for old in records.folder.glob("1.2.0-*"):
        old.unlink()
    with closing(open_dataset([records.folder])) as dataset:
        alone = records.judge(Rules(), baseline="records", baseline_records=dataset)
    assert against(alone) == [
        (Status.NO_BASELINE, "regression: the baseline records holds nothing but runs of the release under test")
    ]


OUTAGE: Mapping[str, Any] = {"verify_status": "skipped", "outcome": "indeterminate", "fault": "provider", "wait": None}


def test_an_outage_of_the_last_release_turns_nobody_red(records: Any) -> None:
    records.run("older", [{}], release="1.1.0", ago=timedelta(days=2))
    records.run("old", [OUTAGE] * 5, release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}])
    result = records.judge(Rules(), baseline="previous")
    assert (result.exit, result.baseline) == (0, "1.1.0")
    named = records.judge(Rules(), baseline="1.2.0")
    assert (named.exit, against(named)[0][1]) == (
        16, "regression: the baseline 1.2.0 cannot be compared: it has no good token, outages left out"
    )  # fmt: skip
    records.run("r2", [OUTAGE] * 5, release="1.4.0", ago=timedelta(hours=-1))
    own = records.judge(Rules(), baseline="1.1.0")
    assert (own.exit, against(own)) == (
        12, [(Status.NOT_ENOUGH_DATA, "regression: 1.4.0 has measured nothing that could be compared")]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "code", "piece"),
    [
        ({"slug": "register"}, 0, "1.2.0 has 'register', 1.3.0 has 'signup': no form is in both"),
        ({"project": "alpha"}, 16, "1.2.0 has turnstile (captchaai, live, project alpha), 1.3.0 has turnstile"),
    ],
)
def test_why_nothing_can_be_compared_is_said_as_it_is(
    records: Any, before: Mapping[str, Any], code: int, piece: str
) -> None:
    records.run("old", [before] * 3, release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}] * 3)
    result = records.judge(Rules(), baseline="previous")
    assert (result.exit, piece in against(result)[0][1]) == (code, True), against(result)


def test_a_form_that_the_baseline_never_measured_is_too_little_data(records: Any) -> None:
    for number in range(8):
        records.run(f"old{number}", [{"slug": "login"}], release="1.2.0", ago=timedelta(days=1))
        records.run(f"r{number}", [{"slug": "login"}, {}, {"slug": "order"}])
    rules = GateRules(all=Rules(require_data=frozenset({Rule.REGRESSION})), forms={"order": Rules()})
    lacking = [one for one in records.judge(rules, baseline="previous").rules if "never measured" in one.sentence]
    assert [(one.sentence, one.code) for one in lacking] == [
        ("regression: against 1.2.0, form 'order' (turnstile, captchaai, live): never measured there", 11),
        ("regression: against 1.2.0, turnstile (captchaai, live): never measured there: signup", 11),
    ]
    assert records.judge(rules, baseline="previous").exit == 11
