from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from history.team import Team, write_history
from pytest_captcha_qa.errors import BaselineMissing
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.dashboard.baseline import Baseline, find_baseline
from pytest_captcha_qa.reporting.dashboard.making import make_dashboard
from pytest_captcha_qa.reporting.dashboard.model import Dashboard

MakePage = Callable[..., Dashboard]


def test_a_word_is_a_release_and_what_looks_like_a_path_is_records(tmp_path: Path) -> None:
    assert find_baseline(None, tmp_path, []) == Baseline()
    (tmp_path / "previous").mkdir()
    for release in ("1.0.0", "previous", "1" * 400):
        assert find_baseline(release, tmp_path, []).asked_in("staging") == (release, None)
    with pytest.raises(BaselineMissing, match=r"the baseline old/r1\.jsonl cannot be read"):
        find_baseline("old/r1.jsonl", tmp_path, [])


def test_records_of_one_release_are_compared_with_and_shown(tmp_path: Path) -> None:
    write_history(tmp_path / "old", Team(releases=["0.9"]), seed=1)
    write_history(tmp_path / "new", Team(releases=["1.0"]), seed=2)

    baseline = find_baseline("old", tmp_path, [tmp_path / "new"])
    made = make_dashboard([tmp_path / "new", *baseline.records], Asked(page=tmp_path / "page.html", baseline=baseline))

    assert baseline.asked_in("staging") == ("0.9", None)
    assert baseline.asked_in("qa") == (None, "the baseline old holds no run of environment 'qa'")
    assert made.page.compared == {"staging": ("1.0", "0.9")}
    assert made.path.stat().st_size == made.size


def test_a_release_in_the_records_goes_before_a_folder_of_its_name(tmp_path: Path) -> None:
    write_history(tmp_path / "0.9", Team(releases=["0.8"], runs=1, per_form=1), seed=1)
    write_history(tmp_path / "all", Team(releases=["0.9", "1.0"], runs=1, per_form=1), seed=2)

    assert find_baseline("0.9", tmp_path, [tmp_path / "all"]) == Baseline("0.9")
    assert find_baseline("./0.9", tmp_path, [tmp_path / "all"]).releases == {"staging": ["0.8"]}


@pytest.mark.parametrize(
    ("releases", "said"),
    [(["0.8", "0.9"], "holds several releases (0.8, 0.9); name one of them"), ([None], "does not know its release")],
)
def test_records_that_name_no_single_release_are_refused(
    page_of: MakePage, tmp_path: Path, releases: list[str | None], said: str
) -> None:
    write_history(tmp_path / "old", Team(releases=releases, runs=1, per_form=1), seed=9)
    baseline = find_baseline("old", tmp_path, [])
    told = baseline.asked_in("staging")[1] or ""

    assert sorted(told) == sorted(f"the baseline old {said}")
    with pytest.raises(BaselineMissing, match="the baseline old"):
        page_of(Team(releases=["1.0"], runs=1), baseline=baseline)
