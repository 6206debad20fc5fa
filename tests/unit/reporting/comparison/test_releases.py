from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_captcha_qa.errors import BaselineMissing
from pytest_captcha_qa.model.metrics import METRICS
from pytest_captcha_qa.reporting.comparison.changes import change_by
from pytest_captcha_qa.reporting.comparison.releases import (
    Change,
    MetricChange,
    Regression,
    ReleaseComparison,
    Source,
    compare,
    compare_releases,
    compare_sources,
    previous_release,
    read_sides,
    releases,
)

MakeHistory = Callable[..., Any]
Run = tuple[dict[str, Any], list[dict[str, Any]]]
OUTAGE = {"verify_status": "error", "outcome": "indeterminate", "fault": "provider", "wait": 300.0}


def many(
    release: str, level: float = 10.0, number: int = 8, *, forms: Sequence[str] = ("login", "signup"), **changes: Any
) -> list[Run]:
    """Make runs of a release whose waits lie around a level, always the same; each form twice."""
    draw = np.random.default_rng(5)
    waits = level * np.exp(0.05 * draw.standard_normal((number, 2 * len(forms))))
    header = {"release": release} | changes.pop("header", {})
    return [
        (header, [{"slug": form, "wait": float(wait), **changes} for form, wait in zip([*forms] * 2, run, strict=True)])
        for run in waits
    ]


def compared(dataset: Any, **more: Any) -> ReleaseComparison:
    return compare_releases(dataset, env="staging", baseline="1.0", candidate="1.1", **more)


def the(found: ReleaseComparison, metric: str) -> MetricChange:
    (one,) = [change for change in found.changes if change.metric.name == metric]
    return one


def test_a_slower_release_is_told_with_its_numbers(history: MakeHistory) -> None:
    found = compared(history(*many("1.0"), *many("1.1", 15.0)))
    wait = the(found, "wait")
    assert wait.change is Change.WORSE
    assert wait.effect == pytest.approx(0.5, abs=0.01)
    assert wait.sentence == (
        "wait for the token of turnstile (captchaai, live) is slower by 50 %: "
        f"median {wait.baseline.times['wait'].median:.2f} s (32 attempts in 8 runs) -> "
        f"median {wait.candidate.times['wait'].median:.1f} s (32 attempts in 8 runs); p = 0.00016"
    )
    assert the(found, "verify_rate").change is the(found, "resolve_share").change is Change.SAME
    assert found.notes == ()
    assert found.of(Change.WORSE) == (wait,)


def test_a_rate_that_fell_is_told_in_points_with_intervals(history: MakeHistory) -> None:
    good = many("1.1")
    bad = [(header, [lines[0] | {"verify_status": "fail", "outcome": "failed", "fault": "product"}, *lines[1:]])
           for header, lines in good]  # fmt: skip
    rate = the(compared(history(*many("1.0"), *bad)), "verify_rate")
    assert rate.change is Change.WORSE
    assert rate.shift == -0.25
    assert rate.sentence == (
        "verification rate of turnstile (captchaai, live) is lower by 25 points: "
        "100 % (32 of 32 in 8 runs; 95 % interval 89.1 % to 100 %) -> "
        "75 % (24 of 32 in 8 runs; 95 % interval 53.2 % to 90.3 %); p = 0.0095"
    )


def test_more_repeated_solves_are_worse(history: MakeHistory) -> None:
    share = the(compared(history(*many("1.0"), *many("1.1", submits=2))), "resolve_share")
    assert (share.change, share.shift) == (Change.WORSE, 1.0)
    assert "is higher by 100 points: 0 % (0 beyond 32 keys) -> 100 % (32 beyond 32 keys)" in share.sentence


def test_day_one_is_not_enough_data_and_says_what_would_be(history: MakeHistory, tmp_path: Path) -> None:
    wait = the(compared(history(*many("1.0", number=8), *many("1.1", 20.0, number=1))), "wait")
    assert (wait.change, wait.p_value, wait.adjusted) == (Change.NOT_ENOUGH_DATA, None, None)
    assert wait.sentence.endswith("5 runs of 1.1 could tell, there is 1")
    first = history(*many("1.0", number=1), *many("1.1", number=1), folder=tmp_path / "first")
    both = the(compared(first), "wait")
    assert both.sentence.endswith("6 runs of each could tell")


def test_without_a_baseline_there_is_an_error_that_names_what_there_is(history: MakeHistory) -> None:
    with pytest.raises(BaselineMissing, match=r"no good attempt of 1\.0 in environment 'staging'; there is 1\.1"):
        compared(history(*many("1.1")))
    with pytest.raises(BaselineMissing):
        compared(history(*many("1.0", header={"env": "qa"}), *many("1.1")))


def test_a_candidate_that_measured_nothing_compares_to_nothing(history: MakeHistory) -> None:
    found = compared(history(*many("1.0"), *many("1.1", **OUTAGE)))
    assert (found.changes, found.measured) == ((), False)
    assert "1.1: 32 attempts left out, ended by an outage or undetermined" in found.notes


def test_outages_change_nothing_and_are_said(history: MakeHistory) -> None:
    outages = [(header, [line | OUTAGE for line in lines]) for header, lines in many("1.1", number=2)]
    calm = compared(history(*many("1.0"), *many("1.1")))
    stormy = compared(history(*outages))
    assert [change.sentence for change in stormy.changes] == [change.sentence for change in calm.changes]
    assert stormy.notes == ("1.1: 8 attempts left out, ended by an outage or undetermined",)


def test_a_renamed_form_is_said_and_compared_with_nothing(history: MakeHistory) -> None:
    old, new = many("1.0", forms=("login", "signup")), many("1.1", forms=("login", "register"))
    slow = [(header, [line | ({"wait": 99.0} if line["slug"] == "register" else {}) for line in lines])
            for header, lines in new]  # fmt: skip
    found = compared(history(*old, *slow))
    wait = the(found, "wait")
    assert (wait.change, wait.baseline.attempts, wait.candidate.attempts) == (Change.SAME, 16, 16)
    assert found.notes == (
        "turnstile (captchaai, live): forms on one side are not compared: "
        "'signup' only in 1.0, 'register' only in 1.1; renamed?",
    )


def test_another_mix_of_slow_and_fast_forms_is_no_change(history: MakeHistory) -> None:
    def mixed(release: str, slow: int, fast: int) -> list[Run]:
        lines = [{"slug": "slow", "wait": 20.0}] * slow + [{"slug": "fast", "wait": 5.0}] * fast
        return [({"release": release}, lines)] * 8

    wait = the(compared(history(*mixed("1.0", 1, 5), *mixed("1.1", 5, 1))), "wait")
    assert (wait.change, wait.effect) == (Change.SAME, 0.0)
    assert (wait.baseline.times["wait"].median, wait.candidate.times["wait"].median) == (5.0, 20.0)


def test_a_form_with_its_own_rule_is_judged_by_itself(history: MakeHistory) -> None:
    slow = [(header, [line | ({"wait": 15.0} if line["slug"] == "signup" else {}) for line in lines])
            for header, lines in many("1.1")]  # fmt: skip
    found = compared(history(*many("1.0"), *slow), own_rule_forms=["signup"])
    waits = {change.pool.form: change.change for change in found.changes if change.metric.name == "wait"}
    assert waits == {None: Change.SAME, "signup": Change.WORSE}
    assert (
        "wait for the token of form 'signup' (turnstile, captchaai, live) is slower"
        in found.of(Change.WORSE)[0].sentence
    )


def test_sides_that_were_read_once_may_be_pooled_in_several_ways(history: MakeHistory) -> None:
    image = many("1.0", forms=("price",), captcha="image"), many("1.1", 12.0, forms=("price",), captcha="image")
    dataset = history(*many("1.0"), *many("1.1", 15.0), *image[0], *image[1])
    sides = read_sides(*(Source(dataset, "staging", release, release) for release in ("1.0", "1.1")))
    for own in ((), ["signup"], ["signup", "login"], ()):
        assert compare(sides, own_rule_forms=own) == compared(dataset, own_rule_forms=own)


def test_key_modes_are_compared_by_themselves(history: MakeHistory) -> None:
    runs = [*many("1.0"), *many("1.0", 1.0, key_mode="standin"), *many("1.1"), *many("1.1", 2.0, key_mode="standin")]
    found = compared(history(*runs, *many("1.1", key_mode="testkeys")))
    waits = {change.pool.key_mode: change.change for change in found.changes if change.metric.name == "wait"}
    assert waits == {"live": Change.SAME, "standin": Change.WORSE}
    assert found.notes == (
        "turnstile (captchaai, testkeys): only in 1.1, not compared",
        "turnstile: key modes live, standin, testkeys prove different things; each is compared by itself",
    )


def test_scaled_times_are_compared_among_themselves(history: MakeHistory) -> None:
    scaled = {"header": {"time_scale": 0.1}}
    found = compared(history(*many("1.0"), *many("1.1"), *many("1.0", 1.0, **scaled), *many("1.1", 2.0, **scaled)))
    waits = {change.pool.time_scale: change.change for change in found.changes if change.metric.name == "wait"}
    assert waits == {1.0: Change.SAME, 0.1: Change.WORSE}
    assert "times scaled to 10 %" in found.of(Change.WORSE)[0].sentence


def test_a_run_during_which_the_release_changed_is_left_out(history: MakeHistory) -> None:
    header, lines = many("1.1", 500.0, number=1)[0]
    torn = (header, [lines[0], *(line | {"release": "1.2"} for line in lines[1:])])
    found = compared(history(*many("1.0"), *many("1.1"), torn))
    assert the(found, "wait").candidate.runs == 8
    assert found.notes == ("1.1: 1 run left out, which the other side has too or whose release changed: r17",)


def test_attempts_of_no_known_release_are_said(history: MakeHistory) -> None:
    found = compared(history(*many("1.0"), *many("1.1"), *many("1.1", number=1, header={"release": None})))
    assert found.notes == ("4 attempts of no known release compared with nothing; --captcha-release names it",)


def test_another_schema_and_a_half_written_file_are_said(history: MakeHistory, tmp_path: Path) -> None:
    history(*many("1.0", header={"schema": 2}), *many("1.1"))
    file = max((tmp_path / "records").iterdir())
    file.write_bytes(file.read_bytes()[:-150])
    found = compared(history())
    assert "1.1: 1 run ended early or lost records; what they recorded counts" in found.notes
    assert any("different schemas (1.0: 2, 1.1: 1)" in note for note in found.notes)
    assert the(found, "wait").change is Change.SAME


def test_names_from_records_are_made_inert_and_short(history: MakeHistory) -> None:
    evil = "<script>\x1b[31m\u202e\u2028" + "x" * 400
    found = compared(history(*many("1.0", forms=(evil,)), *many("1.1", 20.0, forms=(evil,))), own_rule_forms=[evil])
    sentence = found.of(Change.WORSE)[0].sentence
    assert sentence.isprintable()
    assert len(sentence) < 350
    assert found.changes[0].pool.form == evil


def test_alpha_and_the_least_effect_are_the_rules(history: MakeHistory) -> None:
    dataset = history(*many("1.0"), *many("1.1", 12.0))
    assert the(compared(dataset), "wait").change is Change.WORSE
    assert the(compared(dataset, regression=Regression(min_effect=0.3)), "wait").change is Change.SAME
    assert the(compared(dataset, regression=Regression(alpha=1e-5)), "wait").change is Change.NOT_ENOUGH_DATA


def test_the_same_records_give_the_same_answer(history: MakeHistory) -> None:
    dataset = history(*many("1.0", number=20), *many("1.1", 11.0, number=19))
    assert compared(dataset) == compared(dataset)


def test_records_can_be_compared_whatever_their_release(history: MakeHistory, tmp_path: Path) -> None:
    before = history(*many("1.0", number=4), *many("0.9", number=4), folder=tmp_path / "before")
    after = history(*many("1.1", 15.0), folder=tmp_path / "after")
    sides = Source(before, "staging", "before"), Source(after, "staging", "after")
    found = compare_sources(*sides)
    assert the(found, "wait").change is Change.WORSE
    assert (found.baseline, found.candidate, the(found, "wait").baseline.runs) == ("before", "after", 8)
    fewer = compare_sources(replace(sides[0], left_out=frozenset({"r1", "r2"})), sides[1])
    assert the(fewer, "wait").baseline.runs == 6


def test_releases_are_in_the_order_in_which_they_were_first_seen(history: MakeHistory) -> None:
    order = ["1.10", "1.9", "1.10", "2.0", "1.9"]
    dataset = history(*(many(release, number=1)[0] for release in order))
    assert releases(dataset, "staging") == ["1.10", "1.9", "2.0"]
    assert releases(dataset, "qa") == []


def test_the_previous_release_is_that_of_the_last_complete_run_before(history: MakeHistory, tmp_path: Path) -> None:
    runs = [many(release, number=1)[0] for release in ("1.0", "1.1", "1.2", "1.3", "1.4")]
    history(*runs)
    file = sorted((tmp_path / "records").iterdir())[2]
    file.write_bytes(b"\n".join(file.read_bytes().splitlines()[:-1]) + b"\n")
    dataset = history()
    assert previous_release(dataset, "staging", "1.3") == "1.1"
    assert previous_release(dataset, "staging", "1.0") is None
    assert previous_release(dataset, "staging", "9.9") == "1.4"
    assert previous_release(dataset, "qa", "1.3") is None


def test_a_run_of_refusals_alone_is_no_previous_release(history: MakeHistory) -> None:
    refusing = [(header, [line | {"expect": "refuse"} for line in lines]) for header, lines in many("1.1", number=1)]
    dataset = history(*many("1.0", number=1), *refusing, *many("1.2", number=1))
    assert previous_release(dataset, "staging", "1.2") == "1.0"


@pytest.mark.parametrize(
    ("metric", "effect", "shift", "told"),
    [
        ("verify_rate", 100.0, -1.0, "-100 points"),
        ("verify_rate", -0.3, 0.0123, "+1.2 points"),
        ("resolve_share", 0.0, -0.0001, "0 points"),
        ("wait", -0.154, -2.0, "-15 %"),
        ("wait", 0.0004, 0.02, "0 %"),
        ("submit", 0.0, 0.004, "< 10 ms"),
        ("submit", None, None, None),
    ],
)
def test_a_change_has_the_sign_of_what_is_read(
    metric: str, effect: float | None, shift: float | None, told: str | None
) -> None:
    assert change_by(METRICS[metric], effect, shift) == told
