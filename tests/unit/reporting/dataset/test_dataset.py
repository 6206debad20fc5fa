from __future__ import annotations

import gc
import gzip
from pathlib import Path

import duckdb
import pytest

from history.lines import IDS, attempt, footer, header, packed, started, write, write_run
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.records.reading import numbered
from pytest_captcha_qa.reporting.dataset import dataset as module
from pytest_captcha_qa.reporting.dataset import open_dataset, staging

FIXTURES = Path(__file__).parents[4] / "fixtures" / "records"


def test_files_folders_and_patterns_whatever_they_are_called(tmp_path: Path):
    names = ["it's; DROP TABLE runs", "a b", "[x]*?", "тест", "per%cent$1"]
    for number, name in enumerate(names):
        write_run(tmp_path / name, f"r{number}", ids=IDS[number : number + 1])
    (tmp_path / "a b" / "notes.txt").write_text("no records")

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT count(*), count(DISTINCT run_id) FROM attempts") == [(5, 5)]
        assert dataset.problems == ()
    with open_dataset([tmp_path / "*" / "**" / "r1.jsonl", tmp_path / names[2] / "staging" / "r2.jsonl"]) as dataset:
        assert dataset.rows("SELECT DISTINCT run_id FROM attempts ORDER BY ALL") == [("r1",), ("r2",)]


@pytest.mark.parametrize("wide", [0, 1 << 30])
def test_a_name_that_looks_like_a_pattern_is_the_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: int
):
    monkeypatch.setattr(module, "WIDE", wide)
    for number, name in enumerate(["r*", "r1", "r?", "r[1]", "[r]2", "r2"]):
        write(tmp_path / name / "a.jsonl", header(), attempt(id=f"{number}", slug=name), footer())

    with open_dataset([tmp_path]) as dataset:
        told = dataset.rows("SELECT file, line, slug, id FROM attempts ORDER BY id")
        assert told == [
            (str(tmp_path / slug / "a.jsonl"), 2, slug, f"{number}")
            for number, slug in enumerate(["r*", "r1", "r?", "r[1]", "[r]2", "r2"])
        ]
        assert dataset.problems == ()


def test_a_carriage_return_that_json_allows_ends_no_line(tmp_path: Path):
    said = [packed(line) for line in (header(), started(id="a"), attempt(id="a"), attempt(id="b"), footer(attempts=2))]
    said[1] = said[1].replace(',"slug"', ',\r"slug"')
    (tmp_path / "run.jsonl").write_text("".join(said), newline="")

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT id, line FROM attempts ORDER BY id") == [("a", 3), ("b", 4)]
        assert dataset.rows("SELECT complete, lost FROM runs") == [(True, 0)]
        assert dataset.damaged == 0


def test_lines_that_end_as_on_windows_are_read_by_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = [packed(line) for line in (header(), started(id="a"), attempt(id="a"), started(id="b"), footer(attempts=1))]
    (tmp_path / "run.jsonl").write_text("".join([*said, "{cut off"]), newline="\r\n")
    monkeypatch.setattr("pytest_captcha_qa.reporting.dataset.loading.scan", None)

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT id, outcome, line, file FROM attempts ORDER BY id") == [
            ("a", "ok", 3, str(tmp_path / "run.jsonl")),
            ("b", "lost", 4, str(tmp_path / "run.jsonl")),
        ]
        assert dataset.problems == (f"{tmp_path / 'run.jsonl'}:6: not a line of JSON, perhaps cut off",)


def test_attempts_that_were_started_twice_do_not_pass_for_others_that_were_recorded_twice(tmp_path: Path):
    write(tmp_path / "run.jsonl", *[started(id="a")] * 2, *[attempt(id="b")] * 2)

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT DISTINCT id, outcome FROM attempts ORDER BY id") == [("a", "lost"), ("b", "ok")]


@pytest.mark.parametrize("whose", ["ra", "rc"], ids=["more lines", "another header"])
def test_a_file_that_has_grown_since_is_told_of_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    monkeypatch.setattr(module, "WIDE", 0)
    of = {run: [attempt(id=f"{run}{n}", run_id=run) for n in range(3)] for run in ("ra", "rb", "rb2")}
    path = write(tmp_path / "a.jsonl", header(run_id="ra"), *of["ra"])
    write(tmp_path / "b.jsonl", header(run_id="rb"), *of["rb"], header(run_id="rb2"), *of["rb2"])

    with open_dataset([tmp_path]) as dataset:
        before = dataset.rows("SELECT run_id, line FROM attempts ORDER BY ALL")
        with path.open("a") as stream:
            begun = [header(run_id=whose)] if whose == "rc" else []
            stream.write("".join(map(packed, [*begun, attempt(id="new", run_id=whose), attempt(id="newer")])))
        told = dataset.rows("SELECT run_id, line, id FROM attempts ORDER BY ALL")
        assert [row[:2] for row in told] == before
        assert [row[2] for row in told] == [one["id"] for run in ("ra", "rb", "rb2") for one in of[run]]


def test_a_file_that_goes_while_it_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", header(), attempt())
    monkeypatch.setattr(module, "WIDE", 0)
    with open_dataset([path]) as dataset:
        path.unlink()
        with pytest.raises(ConfigError, match=r"a\.jsonl"):
            dataset.rows("SELECT id FROM attempts")

    write(path, header(), attempt())
    monkeypatch.setattr(
        "pytest_captcha_qa.reporting.dataset.shared.numbered", lambda *_: path.unlink() or numbered(path, [1])
    )
    with pytest.raises(ConfigError, match=r"a\.jsonl cannot be read"):
        open_dataset([path])


def test_packed_files_are_read_and_a_torn_one_is_named(tmp_path: Path):
    content = write_run(tmp_path / "source", "r1", ids=IDS[:3]).read_bytes()
    (tmp_path / "r1.jsonl.gz").write_bytes(gzip.compress(content))
    with open_dataset([tmp_path / "r1.jsonl.gz"]) as dataset:
        assert dataset.rows("SELECT complete, attempts, lost FROM runs") == [(True, 3, 0)]

    (tmp_path / "r1.jsonl.gz").write_bytes(gzip.compress(content)[:-20])
    with open_dataset([tmp_path / "r1.jsonl.gz"]) as dataset:
        assert dataset.rows("SELECT complete FROM runs") == [(False,)]
        assert any("the compressed data are damaged or cut off here" in problem for problem in dataset.problems)


def test_a_file_given_twice_and_a_copy_count_once(tmp_path: Path):
    own = write_run(tmp_path, "r1", ids=IDS[:3])
    whole = own.read_bytes()
    (tmp_path / "backup.jsonl").write_bytes(whole)
    (tmp_path / "while it was written.jsonl").write_bytes(whole[: whole.index(IDS[2].encode())])

    with open_dataset([own, tmp_path, own]) as dataset:
        assert dataset.rows("SELECT run_id, complete, attempts, lost FROM runs") == [("r1", True, 3, 0)]
        assert dataset.rows("SELECT count(*) FROM attempts") == [(3,)]
        assert dataset.rows("SELECT count(*) FROM events") == [(1,)]
        assert sum("they are counted once" in problem for problem in dataset.problems) == 2


def test_what_was_started_and_not_recorded_is_lost_and_says_where(tmp_path: Path):
    path = write(tmp_path / "r1.jsonl", header(), started(slug="login", nodeid="t.py::x"), footer(attempts=0))

    with open_dataset([path]) as dataset:
        asked = "SELECT id, slug, outcome, fault, outage, release, nodeid, line FROM attempts"
        assert dataset.rows(asked) == [(IDS[0], "login", "lost", "infrastructure", True, "1.3.0", "t.py::x", 2)]
        assert dataset.rows("SELECT complete, attempts, lost FROM runs") == [(True, 1, 1)]


def test_a_release_is_the_runs_unless_the_attempt_says_another(tmp_path: Path):
    lines = [attempt(id=one, release=release) for one, release in zip(IDS, (None, "2", "1.3.0"), strict=False)]
    with open_dataset([write(tmp_path / "r1.jsonl", header(), *lines)]) as dataset:
        assert dataset.rows("SELECT release FROM attempts ORDER BY line") == [("1.3.0",), ("2",), ("1.3.0",)]
        assert dataset.rows("SELECT release, release_changed, complete FROM runs") == [("1.3.0", True, False)]


def test_damage_is_counted_and_the_first_twenty_are_named(tmp_path: Path):
    (tmp_path / "r1.jsonl").write_text(packed(header()) + "{\n" * 30 + packed(attempt()))
    with open_dataset([tmp_path]) as dataset:
        assert dataset.damaged == 30
        assert len(dataset.problems) == 20
        assert dataset.problems[0].endswith("r1.jsonl:2: not a line of JSON")
        assert dataset.rows("SELECT line FROM attempts") == [(32,)]


def test_queries_reach_nothing_but_the_records(tmp_path: Path):
    path = write_run(tmp_path, "r1")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with open_dataset([path]) as dataset:
        for query in (
            f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            f"COPY (SELECT 1) TO '{path}' (FORMAT csv)",
            f"ATTACH '{tmp_path}/new.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '10GB'",
        ):
            with pytest.raises(duckdb.Error):
                dataset.rows(query)
        folder = dataset._folder
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["r1.jsonl", "secret.csv"]


def test_fields_that_are_seldom_asked_for_come_when_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WIDE", 0)
    monkeypatch.setattr(staging, "PROVEN", 1 << 10)
    write_run(tmp_path, "r1", ids=IDS[:2])
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "staging" / "r1.jsonl").read_bytes())

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT count(*), sum(wait) FROM positive") == [(2, 42.8)]
        assert dataset.rows("SELECT id, nodeid, line FROM positive ORDER BY id") == [
            (IDS[0], "test_forms.py::test_accepts[signup]", 3),
            (IDS[1], "test_forms.py::test_accepts[signup]", 5),
        ]
        with pytest.raises(duckdb.BinderException, match="no_such_column"):
            dataset.rows("SELECT no_such_column FROM attempts")


def test_nothing_at_all_is_an_answer_too(tmp_path: Path):
    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT count(*) FROM attempts") == [(0,)]
        assert dataset.rows("SELECT * FROM runs") == []
        assert dataset.columns("SELECT wait FROM positive")["wait"].tolist() == []
    with pytest.raises(ConfigError, match="there is no record file or folder"):
        open_dataset([tmp_path / "missing"])


def test_older_and_newer_records_are_read_side_by_side():
    with open_dataset([FIXTURES]) as dataset:
        assert dataset.rows("SELECT id FROM attempts ORDER BY id") == [("a1",), ("a2",), ("a3",)]
        assert any("written by a newer tool (schema 7" in problem for problem in dataset.problems)


def test_what_duckdb_cannot_read_at_all_the_exact_reader_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_run(tmp_path, "r1", ids=IDS[:2])
    monkeypatch.setattr(staging, "_LINES", "read_csv($files, no_such_option = 1)")

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT complete, attempts FROM runs") == [(True, 2)]
        assert dataset.rows("SELECT id, line FROM attempts ORDER BY id") == [(IDS[0], 3), (IDS[1], 5)]


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_run(tmp_path, "r1")
    monkeypatch.setattr("os.access", lambda *_: False)

    with pytest.raises(ConfigError, match=f"{path} cannot be read: permission is denied"):
        open_dataset([path])


def test_the_private_folder_goes_also_where_nobody_closes(tmp_path: Path):
    dataset = open_dataset([write_run(tmp_path, "r1")])
    folder = dataset._folder
    assert folder.is_dir()
    del dataset
    gc.collect()
    assert not folder.exists()
