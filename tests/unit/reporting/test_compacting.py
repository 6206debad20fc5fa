from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from history.lines import IDS, attempt, event, footer, header, started, write, write_run
from pytest_captcha_qa.errors import ConfigError, RecordError
from pytest_captcha_qa.reporting import compacting
from pytest_captcha_qa.reporting.compacting import compact
from pytest_captcha_qa.reporting.dataset import open_dataset

VIEWS = ("runs", "attempts", "positive", "events", "probes")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two releases with probes, a lost attempt, prices, an unknown release, and a run that was killed."""
    folder = tmp_path / "it's [records] *"
    write_run(folder, "r1", ids=IDS[:2], release="1.3.0")
    probe = {"probe": "P1", "form": "signup", "severity": "high", "verdict": "safe", "fails": False, "counts": True}
    write(
        folder / "staging" / "r2-gw0.jsonl",
        header(run_id="r2", release="1/4", shard="1"),
        started(run_id="r2", id=IDS[2]),
        attempt(run_id="r2", id=IDS[3], release="1/4", extra={"a": "тест", "n": 1}, price=0.003, seconds={}),
        event(run_id="r2", name="probe", data=probe),
        footer(run_id="r2"),
    )
    write_run(folder, "r3", ids=IDS[4:5], release=None)
    write_run(folder, "r4", ids=IDS[5:6], whole=False)
    return folder


def told(records: Path) -> dict[str, Any]:
    with open_dataset([records]) as dataset:
        return {view: dataset.rows(f"SELECT * FROM {view} ORDER BY ALL") for view in VIEWS}


def files(records: Path) -> list[str]:
    return sorted(path.name for path in records.rglob("*") if path.is_file())


def test_history_tells_what_the_record_files_told(records: Path):
    before = told(records)
    assert [len(before[view]) for view in VIEWS] == [4, 6, 6, 4, 1]

    done = compact(records)

    assert {path.name: runs for path, runs in done.written.items()} == {
        "1.3.0.parquet": ["r1"],
        "1-4.parquet": ["r2"],
        "unknown.parquet": ["r3"],
    }
    assert done.left == ["run r4 of staging is incomplete or still running"]
    assert told(records) == before, "with both there, each attempt counts once"

    done = compact(records, delete=True)

    assert done.written == {}, "nothing is new"
    assert [path.name for path in done.deleted] == ["r1.jsonl", "r2-gw0.jsonl", "r3.jsonl"]
    assert files(records) == ["1-4.parquet", "1.3.0.parquet", "r4.jsonl", "unknown.parquet"]
    assert told(records) == before


def test_a_later_run_joins_the_history_of_its_release(records: Path):
    compact(records, delete=True)
    write_run(records, "r9", ids=IDS[6:7], release="1.3.0")
    before = told(records)

    done = compact(records, delete=True)

    assert list(done.written.values()) == [["r1", "r9"]]
    assert told(records) == before


def test_what_lists_things_that_were_created_is_deleted_when_they_are_gone(tmp_path: Path):
    made = event(run_id="r1", name="created", data={"slug": "signup", "effects": "account"})
    path = write(tmp_path / "staging" / "r1.jsonl", header(), made, footer(attempts=0))

    done = compact(tmp_path, delete=True)
    assert (done.deleted, len(done.left)) == ([], 1)
    assert "captcha-qa cleanup" in done.left[0]

    with open_dataset([tmp_path]) as dataset:
        assert dataset.rows("SELECT count(*) FROM events") == [(1,)], "lines and history tell it once"
    assert compact(tmp_path, delete=True, cleaned=True).deleted == [path]


def test_history_that_does_not_read_back_is_not_kept(records: Path, monkeypatch: pytest.MonkeyPatch):
    before = files(records)
    monkeypatch.setattr(compacting, "_sum", lambda query: "SELECT random()" + (", $file" if "$file" in query else ""))

    with pytest.raises(RecordError, match="read back, it is not what the records tell"):
        compact(records, delete=True)

    assert files(records) == before


def test_a_foreign_parquet_is_named(records: Path):
    compact(records)
    (records / "staging" / "1.3.0.parquet").write_bytes(b"PAR1 nonsense")

    with pytest.raises(ConfigError, match=r"history file .*1\.3\.0\.parquet cannot be read"):
        told(records)


def test_without_a_folder_there_is_nothing_to_compact(tmp_path: Path):
    with pytest.raises(ConfigError, match="there are no records in"):
        compact(tmp_path / "missing")


def test_records_that_a_run_may_still_read_for_its_verdict_are_deleted_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%dT%H:%M:%S}.000Z"
    path = tmp_path / "staging" / "r1.jsonl"
    write(path, header(ts=now), attempt(ts=now), footer(ts=now))

    done = compact(tmp_path, delete=True)

    assert (done.deleted, path.exists(), len(done.written)) == ([], True, 1)
    assert done.left == [f"{path} was written within ten minutes, and its run may still read it: it goes next time"]
    monkeypatch.setattr(compacting, "STILL_READ", 30.0)
    assert compact(tmp_path, delete=True).deleted == [path]


def test_a_folder_that_cannot_be_written_or_read_is_named(records: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compacting, "draft_of", lambda path: path.with_name("no folder") / "draft.new")
    with pytest.raises(RecordError, match=r"the history .*parquet cannot be written: Cannot open file"):
        compact(records)

    def locked(folder: Path, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", str(folder / "staging")))
        return iter(())

    monkeypatch.setattr("os.walk", locked)
    with pytest.raises(ConfigError, match=r"the records .*staging cannot be read: Permission denied"):
        compact(records)
