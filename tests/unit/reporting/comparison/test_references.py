from __future__ import annotations

from pathlib import Path

import pytest

from pytest_captcha_qa.reporting.comparison.references import records_meant


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        (None, None),
        ("previous", None),
        ("./previous", "previous"),
        ("1.0", None),
        ("./1.0", "1.0"),
        ("release/1.1", None),
        ("main", "main"),
        ("9.9", None),
        ("9.9/", "9.9"),
        ("gone.jsonl", "gone.jsonl"),
        ("old/*.jsonl", "old/*.jsonl"),
        ("1" * 400, None),
    ],
)
def test_previous_then_a_release_then_what_lies_there_or_looks_like_a_path(
    tmp_path: Path, reference: str | None, meant: str | None
) -> None:
    for name in ("previous", "1.0", "release/1.1", "main"):
        (tmp_path / name).mkdir(parents=True)
    found = records_meant(reference, tmp_path, lambda: {"1.0", "release/1.1", "previous"})
    assert found == (tmp_path / meant if meant is not None else None)


def test_nobody_looks_for_releases_where_no_files_can_be_meant(tmp_path: Path) -> None:
    def read_them_all() -> set[str]:
        raise AssertionError("the records were read for nothing")

    assert records_meant("1.0", tmp_path, read_them_all) is None
