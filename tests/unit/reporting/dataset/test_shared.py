from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from history.lines import attempt, footer, header, write
from pytest_captcha_qa.records.reading import numbered
from pytest_captcha_qa.reporting.dataset import dataset as module
from pytest_captcha_qa.reporting.dataset import open_dataset, shared


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WIDE", 0)
    monkeypatch.setattr(shared, "_AT_ONCE", 7)


def test_what_attempts_share_is_told_of_each_however_much_it_is(tmp_path: Path):
    said = [attempt(id=f"{n}", slug=f"form {n % 30}", error={"code": "x" * 600} if n == 7 else None) for n in range(60)]
    write(tmp_path / "run.jsonl", header(), *said, footer(attempts=60))

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT slug, line FROM attempts ORDER BY line") == [
            (one["slug"], line) for line, one in enumerate(said, 2)
        ]
        assert dataset.rows("SELECT error_code, line FROM attempts WHERE error_code IS NOT NULL") == [
            ("x" * 499 + "…", 9)
        ]


def test_a_file_is_gone_through_once_however_much_its_attempts_do_not_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write(tmp_path / "run.jsonl", header(), *(attempt(id=f"{n}", slug=f"form {n}") for n in range(60)))
    gone_through: list[Path] = []

    def counted(file: Path, wanted: Collection[int]) -> Iterator[tuple[int, bytes]]:
        gone_through.append(file)
        return numbered(file, wanted)

    monkeypatch.setattr(shared, "numbered", counted)
    with open_dataset([path]) as dataset:
        assert dataset.rows("SELECT count(DISTINCT slug) FROM attempts") == [(60,)]
    assert gone_through == [path]


def test_a_word_that_is_none_of_its_enumeration_is_named(tmp_path: Path):
    said = [attempt(id=f"{n}", outcome="fine" if n in (3, 50) else "ok") for n in range(60)]
    write(tmp_path / "run.jsonl", header(), *said)

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT count(*) FROM attempts") == [(58,)]
        assert [problem.partition("run.jsonl:")[2] for problem in dataset.problems] == [
            f"{line}: 'outcome' is not one of failed, indeterminate, lost, ok" for line in (5, 52)
        ]


def test_a_file_that_changes_while_it_is_read_is_read_as_it_is_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "run.jsonl", header(), *(attempt(id=f"{n}", slug="before") for n in range(3)))

    def changed(file: Path, wanted: Collection[int]) -> Iterator[tuple[int, bytes]]:
        write(path, header(), *(attempt(id=f"{n}", slug="after") for n in range(2)))
        return numbered(file, wanted)

    monkeypatch.setattr(shared, "numbered", changed)
    with open_dataset([path]) as dataset:
        assert dataset.rows("SELECT slug, count(*) FROM attempts GROUP BY ALL") == [("after", 2)]
