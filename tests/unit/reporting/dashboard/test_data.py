from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from history.team import Team, write_history
from pytest_captcha_qa.errors import BaselineMissing, UnknownName
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.compacting import compact as compacted
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.dashboard.baseline import Baseline
from pytest_captcha_qa.reporting.dashboard.contents import MOST_FINDINGS
from pytest_captcha_qa.reporting.dashboard.data import MOST_POOLS, MOST_RELEASES, collect
from pytest_captcha_qa.reporting.dashboard.model import Dashboard, Level
from pytest_captcha_qa.reporting.dashboard.page import render
from pytest_captcha_qa.reporting.dashboard.releases import MOST_ENVIRONMENTS
from pytest_captcha_qa.reporting.dataset import open_dataset

MakePage = Callable[..., Dashboard]
BIG = {"runs": 12, "per_form": 4}


def test_a_release_that_got_worse_is_told_with_form_numbers_and_baseline(page_of: MakePage) -> None:
    page = page_of(Team(slow=1.8, evenings=0, **BIG))

    (head,) = page.headlines
    assert (head.level, head.word) == (Level.BAD, "Got worse")
    assert head.sentence.startswith(
        "Release 1.2.0 on staging got worse than 1.1.0: form 'signup': submitting the form +"
    )
    worst = page.movers[0]
    assert (worst.tag.form, worst.level, worst.word, worst.side) == ("signup", Level.BAD, "worse", "our side")
    assert worst.n == "48 → 48"
    assert worst.runs == "12 → 12"


def test_an_even_release_is_no_worse_and_its_rows_say_same(page_of: MakePage) -> None:
    page = page_of(Team(evenings=0, **BIG))

    assert [head.level for head in page.headlines] == [Level.GOOD]
    assert page.headlines[0].sentence == (
        "Release 1.2.0 on staging works: 4 of 4 forms passed in its newest run and nothing that can be compared got "
        "worse than in 1.1.0."
    )
    assert {mover.level for mover in page.movers} <= {Level.SAME, Level.GOOD, Level.UNKNOWN}


def test_the_first_run_of_all_works_but_is_not_compared(page_of: MakePage) -> None:
    page = page_of(Team(releases=["1.0.0"], runs=1, per_form=1, evenings=0))

    (head,) = page.headlines
    assert (head.level, head.word) == (Level.UNKNOWN, "Works, not compared")
    assert page.movers == []
    assert page.runs_count == 1


def test_two_runs_of_a_form_are_not_enough_data_and_not_green(page_of: MakePage) -> None:
    page = page_of(Team(releases=["1", "2"], runs=1, per_form=1, evenings=0))

    (head,) = page.headlines
    assert (head.level, head.word) == (Level.UNKNOWN, "Not enough data")
    assert {mover.level for mover in page.movers} == {Level.UNKNOWN}
    assert head.facts[-1].endswith("these are not known to be good (6 runs of each could tell).")
    assert {mover.sentence for mover in page.movers} == {"6 runs of each could tell"}


def test_a_broken_form_comes_before_everything_else(page_of: MakePage) -> None:
    page = page_of(Team(slow=1.8, broken=["contact"], unsafe=["login"], probes=True, **BIG))

    (head,) = page.headlines
    assert head.word == "Broken"
    assert "contact fails by the site's own fault" in head.sentence
    assert head.facts[0] == "It accepts what it must refuse: 1 finding at login."
    assert head.facts[1].startswith("It got worse than 1.1.0: ")


def test_a_waived_form_is_told_and_does_not_decide(page_of: MakePage) -> None:
    waiver = Waiver(form="contact", until=date(2026, 12, 1), reason="known", ticket="QA-1")
    page = page_of(Team(broken=["contact"], evenings=0), waivers=[waiver])

    assert page.headlines[0].word != "Broken"
    assert "Failures of contact are waived." in page.headlines[0].facts


def test_without_a_release_name_nothing_is_compared_and_trends_still_show(page_of: MakePage) -> None:
    page = page_of(Team(releases=[None], runs=2))

    assert page.headlines[0].sentence.startswith("The newest release (its name is unknown) on staging works")
    assert {one.release for one in page.figures} == {"unknown"}


def test_environments_are_judged_apart_and_one_can_be_chosen(page_of: MakePage) -> None:
    teams = Team(broken=["login"]), Team(env="qa", key_mode="testkeys", evenings=0)

    both = page_of(*teams)
    assert [head.env for head in both.headlines] == ["staging", "qa"], "the worst comes first"
    only = page_of(*teams, env="qa")
    assert {pool.pool.env for pool in only.pools} == {"qa"}
    assert {run.tag.env for run in only.runs} == {"qa"}


def test_key_modes_providers_and_time_scales_have_pools_of_their_own(page_of: MakePage) -> None:
    forms = {"signup": "turnstile"}
    page = page_of(
        Team(forms=forms),
        Team(forms=forms, key_mode="standin", provider="sandbox", time_scale=0.01),
        Team(forms=forms, provider="capskip"),
    )

    assert sorted(pool.label for pool in page.pools) == [
        "turnstile (capskip, live)",
        "turnstile (captchaai, live)",
        "turnstile (sandbox, standin, times scaled to 1 %)",
    ]


def test_an_unknown_environment_release_or_baseline_is_refused_by_name(page_of: MakePage) -> None:
    with pytest.raises(UnknownName, match=r"unknown environment 'stagin'.*'staging'"):
        page_of(Team(), env="stagin")
    with pytest.raises(UnknownName, match="unknown release '9'"):
        page_of(Team(), candidate="9")
    with pytest.raises(BaselineMissing, match=r"the baseline '0\.9' has no record in environment 'staging'"):
        page_of(Team(), baseline=Baseline("0.9"))


def test_a_named_baseline_is_compared_with(page_of: MakePage) -> None:
    page = page_of(Team(**BIG), baseline=Baseline("1.0.0"))

    assert page.compared == {"staging": ("1.2.0", "1.0.0")}


def test_a_baseline_in_which_nothing_can_be_compared_leaves_a_page_that_says_so(tmp_path: Path) -> None:
    rewritten(tmp_path, "1.0.0", purpose="probe", expect="refuse")
    with open_dataset([tmp_path]) as dataset:
        named = collect(dataset, Asked(page=tmp_path / "page.html", baseline=Baseline("1.0.0")))
        page = collect(dataset, Asked(page=tmp_path / "page.html"))

    assert named.movers == []
    assert any("no good attempt of 1.0.0" in note for note in named.notes)
    assert page.headlines[0].word == "Works, not compared"


def test_a_form_that_was_only_seen_to_refuse_has_not_passed(tmp_path: Path) -> None:
    rewritten(tmp_path, "1.1.0", expect="refuse", verify_status="fail", wait=None)
    with open_dataset([tmp_path]) as dataset:
        page = collect(dataset, Asked(page=tmp_path / "page.html"))

    assert page.headlines[0].word == "No verdict"


def rewritten(folder: Path, release: str, **changes: object) -> None:
    """Write the records of two releases, the attempts of one of them changed."""
    write_history(folder, Team(releases=["1.0.0", "1.1.0"], runs=2, evenings=0))
    for file in folder.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.update(changes if line.get("release") == release and "slug" in line else {})
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_no_records_at_all_make_an_empty_page(tmp_path: Path) -> None:
    write_history(tmp_path / "records", Team(releases=["1"], runs=1, forms={}))
    with open_dataset([tmp_path / "records"]) as dataset:
        page = collect(dataset, Asked(page=tmp_path / "page.html"))

    assert (page.attempts, page.movers, page.pools, page.slowest) == (0, [], [], [])


def test_the_newest_releases_are_kept_in_their_order(page_of: MakePage) -> None:
    names = [f"1.{number}" for number in range(MOST_RELEASES + 3)]
    page = page_of(Team(releases=names, runs=1, per_form=1, forms={"signup": "turnstile"}))

    shown = [one.release for one in page.figures if one.pool.form is None]
    assert shown == names[3:]


def test_pools_beyond_the_limit_are_told_not_hidden(page_of: MakePage) -> None:
    forms = {"signup": "turnstile"}
    teams = [
        Team(forms=forms, project=f"p{number:02}", releases=["1"], runs=1, per_form=1)
        for number in range(MOST_POOLS + 2)
    ]
    page = page_of(*teams)

    assert len(page.pools) == MOST_POOLS
    assert any(note.startswith("2 pools with the fewest attempts have no panels") for note in page.notes)


def test_environments_beyond_the_limit_are_told_and_the_newest_stay(page_of: MakePage) -> None:
    one = {"forms": {"signup": "turnstile"}, "releases": ["1"], "per_form": 1}
    old = [Team(env=f"preview-{number}", runs=1, **one) for number in range(MOST_ENVIRONMENTS + 1)]
    page = page_of(*old, Team(env="staging", runs=2, **one))

    assert len(page.headlines) == MOST_ENVIRONMENTS
    assert "staging" in {head.env for head in page.headlines}
    assert any(note.startswith("2 environments with older runs are left out") for note in page.notes)


def test_all_findings_are_counted_also_where_a_page_lists_some(page_of: MakePage) -> None:
    forms = {f"form-{number}": "turnstile" for number in range(MOST_FINDINGS + 2)}
    page = page_of(Team(forms=forms, releases=["1"], runs=1, per_form=1, probes=True, unsafe=list(forms)))

    assert f"{MOST_FINDINGS + 2} findings at form-0" in page.headlines[0].sentence
    assert f"The first {MOST_FINDINGS} of {MOST_FINDINGS + 2} findings" in render(page)


def test_outages_stand_on_the_time_line_and_not_in_the_figures(page_of: MakePage) -> None:
    page = page_of(Team(evenings=1.0))

    kinds = {moment.kind for moment in page.moments}
    assert kinds == {"provider", "store"}
    out = sum(moment.count for moment in page.moments if moment.kind == "provider")
    assert sum(one.outages for one in page.figures if one.pool.form is None) == out > 0


def test_spreads_put_our_side_and_the_providers_apart(page_of: MakePage) -> None:
    page = page_of(Team(**BIG))

    for side in ("ours", "provider"):
        newest = [bar for bar in page.bars if bar.side == side and bar.newest and bar.pool == page.pools[0].key]
        assert {bar.release for bar in newest} == {"1.2.0"}
        assert 0.95 < sum(bar.share for bar in newest) <= 1
        assert all(bar.start < bar.end for bar in newest)


def test_the_slowest_attempts_name_file_and_line_and_link_there(page_of: MakePage, tmp_path: Path) -> None:
    page = page_of(Team())

    slow = page.slowest[0]
    assert slow.link is not None
    link, _, line = slow.link.partition("#L")
    found = json.loads((tmp_path / link).read_text().splitlines()[int(line) - 1])
    assert (found["slug"], found["$type"]) == (slow.tag.form, "attempt")
    assert slow.record == f"{link.removeprefix('./')}, line {line}"


def test_a_file_name_cannot_become_a_scheme_in_a_link(tmp_path: Path) -> None:
    write_history(tmp_path, Team(releases=["1"], runs=1))
    (only,) = tmp_path.glob("*.jsonl")
    only.rename(tmp_path / "javascript:alert(1)//.jsonl".replace("/", "_"))
    with open_dataset([tmp_path]) as dataset:
        page = collect(dataset, Asked(page=tmp_path / "page.html"))

    assert all(slow.link is not None and slow.link.startswith("./javascript%3Aalert") for slow in page.slowest)


def test_packed_history_whose_files_are_gone_makes_the_same_page(tmp_path: Path) -> None:
    records = tmp_path / "records"
    write_history(records / "staging", Team(evenings=0, broken=["login"]))
    before = page_about(records)
    compacted(records, delete=True)
    after = page_about(records)

    assert not list(records.rglob("*.jsonl"))
    assert after.headlines == before.headlines
    assert after.figures == before.figures
    assert {slow.link for slow in after.slowest} == {None}


def page_about(records: Path) -> Dashboard:
    with open_dataset([records]) as dataset:
        return collect(dataset, Asked(page=records.parent / "page.html"))


def test_the_matrix_shows_what_probes_found(page_of: MakePage) -> None:
    page = page_of(Team(probes=True, unsafe=["login"]))

    (grid,) = page.matrices
    cells = {form: dict(zip(grid.families, cells, strict=True)) for _, form, cells in grid.rows}
    assert (cells["login"]["replay"].level, cells["login"]["replay"].text) == (Level.BAD, "unsafe R1")
    assert (cells["signup"]["replay"].level, cells["signup"]["replay"].text) == (Level.GOOD, "safe 2/2")
    assert grid.findings[0][2].startswith("form 'login', R1")


def test_versions_of_the_worker_are_told_apart(page_of: MakePage) -> None:
    page = page_of(Team(versions=["0.3.0", "0.4.0"]))

    assert {row.version for row in page.versions} == {"0.3.0", "0.4.0"}
    assert all(row.figures.pool.form is None for row in page.versions)


def test_damaged_and_incomplete_records_are_told(tmp_path: Path) -> None:
    write_history(tmp_path, Team(releases=["1"], runs=2))
    first = min(tmp_path.glob("*.jsonl"))
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join([*lines[:2], b"{broken\n", *lines[2:-1]]))
    with open_dataset([tmp_path]) as dataset:
        page = collect(dataset, Asked(page=tmp_path / "page.html"))

    assert any(f"{first}" in problem for problem in page.problems)
    assert [run.complete for run in page.runs] == [True, False]
    assert any("incomplete" in fact for fact in page.headlines[0].facts)


def test_everything_on_the_page_is_plain_data(page_of: MakePage) -> None:
    page = page_of(Team(probes=True, slow=2.0))

    json.dumps(dataclasses.asdict(page), default=str)
    assert page.choices("form") == ["checkout", "contact", "login", "signup"]
