from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_captcha_qa.reporting.figures import Figures, figures, figures_of

MakeHistory = Callable[..., Any]
RELEASE = {"release": "1.0"}


def only(found: list[Figures]) -> Figures:
    (one,) = found
    return one


def test_of_no_records_there_are_no_figures(history: MakeHistory) -> None:
    assert figures(history((RELEASE, []))) == []


def test_one_attempt_is_told_as_one(history: MakeHistory) -> None:
    one = only(figures(history((RELEASE, [{"wait": 8.0, "seconds": {"page": 0.5}}]))))
    assert (one.attempts, one.runs, one.passed, one.judged, one.rate) == (1, 1, 1, 1, 1.0)
    assert one.times["wait"].median == one.times["wait"].p99 == 8.0
    assert set(one.times) == {"wait", "page"}
    assert one.interval is not None
    assert (one.interval.low, one.interval.high) == (pytest.approx(0.025), 1.0)


def test_quantiles_are_those_of_all_attempts(history: MakeHistory) -> None:
    waits = [float(value) for value in range(1, 21)]
    dataset = history(*((RELEASE, [{"wait": wait} for wait in waits[part::4]]) for part in range(4)))
    wait = only(figures(dataset)).times["wait"]
    assert (wait.n, wait.runs) == (20, 4)
    assert (wait.median, wait.p90, wait.p99) == pytest.approx(tuple(np.quantile(waits, (0.5, 0.9, 0.99))))


def test_only_good_tokens_of_checks_and_load_count(history: MakeHistory) -> None:
    lines = [
        {"wait": 1.0},
        {"wait": 1.0, "purpose": "load"},
        {"wait": 9.0, "purpose": "probe"},
        {"wait": 9.0, "purpose": "canary"},
        {"wait": 9.0, "expect": "refuse", "verify_status": "fail"},
    ]
    one = only(figures(history((RELEASE, lines))))
    assert (one.attempts, one.judged, one.times["wait"].p99) == (2, 2, 1.0)


def test_waits_come_from_own_solves_only(history: MakeHistory) -> None:
    lines = [{"wait": 5.0, "source": source} for source in ("solved", "prefetched")]
    lines += [{"wait": 50.0, "source": source} for source in ("reused", "resumed", None)]
    one = only(figures(history((RELEASE, lines))))
    assert (one.attempts, one.times["wait"].n, one.times["wait"].p99) == (5, 2, 5.0)


@pytest.mark.parametrize("fault", ["provider", "infrastructure", "undetermined"])
def test_outages_are_counted_and_left_out(history: MakeHistory, fault: str) -> None:
    outage = {"wait": 300.0, "verify_status": "error", "outcome": "indeterminate", "fault": fault, "submits": 5}
    one = only(figures(history((RELEASE, [{"wait": 5.0}, outage]))))
    assert (one.attempts, one.outages, one.submits, one.times["wait"].p99) == (1, 1, 1, 5.0)


def test_a_fault_of_the_product_counts_against_the_rate(history: MakeHistory) -> None:
    refused = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
    unclear = {"verify_status": "error", "outcome": "failed", "fault": "product"}
    one = only(figures(history((RELEASE, [{}, {}, {}, refused, unclear]))))
    assert (one.passed, one.judged, one.rate) == (3, 4, 0.75)


def test_repeats_are_submits_beyond_the_first_and_all_of_a_rerun(history: MakeHistory) -> None:
    lines = [
        {"submits": 1},
        {"submits": 3},
        {"submits": 0, "source": "reused"},
        {"submits": 1, "attempt": 2, "generation": 2},
    ]
    one = only(figures(history((RELEASE, lines))))
    assert (one.keys, one.submits, one.repeats, one.resolve_share) == (2, 5, 3, 1.5)


def test_nothing_that_differs_in_kind_is_pooled(history: MakeHistory) -> None:
    other = {
        "project": "alpha",
        "captcha": "hcaptcha",
        "provider": "capskip",
        "key_mode": "standin",
    }
    lines = [{}, *({name: value} for name, value in other.items())]
    dataset = history((RELEASE, lines), (RELEASE | {"time_scale": 0.01}, [{}]), (RELEASE | {"env": "qa"}, [{}]))
    found = figures(dataset, by=())
    assert [one.attempts for one in found] == [1] * 7
    assert {one.pool.time_scale for one in found} == {1.0, 0.01}
    assert {one.pool.env for one in found} == {"staging", "qa"}


def test_groups_are_by_what_was_asked(history: MakeHistory) -> None:
    lines = [{"slug": slug, "worker_version": version} for slug in ("login", "signup") for version in ("1", "2")]
    dataset = history((RELEASE, lines), ({"release": "2.0"}, lines[:1]))
    assert [(one.release, one.attempts) for one in figures(dataset)] == [("1.0", 4), ("2.0", 1)]
    assert [(one.pool.form, one.attempts) for one in figures(dataset, by=["form"])] == [("login", 3), ("signup", 2)]
    by_version = figures(dataset, by=["release", "worker_version"], where="release = ?", parameters=["1.0"])
    assert [(one.release, one.worker_version, one.attempts) for one in by_version] == [("1.0", "1", 2), ("1.0", "2", 2)]
    assert figures(dataset, by=[])[0].release is None


def test_several_groupings_at_once_say_what_each_says_alone(history: MakeHistory) -> None:
    lines = [
        {"slug": slug, "worker_version": version, "wait": wait, "outcome": outcome}
        for slug, wait in (("login", 4.0), ("signup", 9.0), ("signup", 11.0))
        for version, outcome in (("1", "ok"), ("2", "failed"))
    ]
    dataset = history((RELEASE, lines), ({"release": "2.0"}, lines[:3]), ({"release": None}, lines[2:]))
    groupings = [["release"], ["release", "form"], [], ["form", "worker_version"]]
    assert figures_of(dataset, groupings) == [figures(dataset, by=by) for by in groupings]


def test_an_interval_knows_that_failures_of_one_run_belong_together(history: MakeHistory) -> None:
    failed = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
    together = [(RELEASE, [failed] * 4), *[(RELEASE, [{}] * 4)] * 5]
    apart = [(RELEASE | {"release": "2.0"}, [failed, {}, {}, {}])] * 4 + [(RELEASE | {"release": "2.0"}, [{}] * 4)] * 2
    one, two = figures(history(*together, *apart))
    assert one.rate == two.rate
    assert one.interval is not None
    assert two.interval is not None
    assert one.interval.low < two.interval.low
