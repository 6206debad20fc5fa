from __future__ import annotations

import json
from pathlib import Path

import pytest

from history.lines import IDS, attempt, event, header, write, write_run
from pytest_captcha_qa.cli.main import main
from pytest_captcha_qa.reporting import forgetting
from pytest_captcha_qa.reporting.compacting import compact

RUN = "run-to-forget"


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in a file of its own, in one that was joined, in history, in evidence and in the verdict."""
    reports = tmp_path / "reports"
    records = reports / "records"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forgetting, "STILL_WRITTEN", 0.0)
    write_run(records, RUN, ids=IDS[:2])
    write_run(records, "other", ids=IDS[2:3])
    compact(records, delete=True)
    own = write_run(records, RUN, ids=IDS[3:4], release="2")
    other = write_run(records, "third", ids=IDS[4:5])
    joined = records / "joined.jsonl"
    joined.write_bytes(b"{cut off\n" + other.read_bytes() + own.read_bytes() + b'{"$type":"weather"}\n')
    for name in (IDS[0], IDS[3], IDS[4]):
        write(reports / "failures" / name / "record.json", attempt(id=name))
    (reports / "verdict.json").write_text(json.dumps({"run_id": RUN}))
    return reports


def standing(reports: Path) -> list[Path]:
    return [path for path in reports.rglob("*") if path.is_file() and RUN.encode() in path.read_bytes()]


def test_nothing_of_a_run_is_left_and_all_of_the_others_is(reports: Path, capsys: pytest.CaptureFixture[str]):
    third = (reports / "records" / "staging" / "third.jsonl").read_bytes()
    before = {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()}

    assert main(["forget", RUN, "--dry-run"]) == 0
    assert {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()} == before
    assert "would erase" in capsys.readouterr().out

    assert main(["forget", RUN, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["left"] == []
    assert sorted(Path(path).name for path in said["erased"]["lines"]) == ["joined.jsonl", f"{RUN}.jsonl"]
    assert list(said["erased"]["history"].values()) == [4], "part, event and two attempts"
    assert [Path(path).name for path in said["erased"]["evidence"]] == [IDS[0], IDS[3]]
    assert standing(reports) == []
    assert not (reports / "verdict.json").exists()
    assert [path.name for path in (reports / "failures").iterdir()] == [IDS[4]]
    assert (reports / "records" / "joined.jsonl").read_bytes() == b"{cut off\n" + third
    assert forgetting.traces(reports / "records", "other").history

    assert main(["forget", RUN]) == 4
    assert "tells of" in capsys.readouterr().err


def test_a_run_that_may_be_going_on_is_left(
    reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(forgetting, "STILL_WRITTEN", 600.0)
    write(reports / "records" / "staging" / "live.jsonl", header(run_id="live"))

    assert main(["forget", "live"]) == 4
    assert "may still be going on" in capsys.readouterr().err
    assert main(["forget", "live", "--force"]) == 0


def test_what_the_run_created_has_to_be_cleaned_up_first(reports: Path, capsys: pytest.CaptureFixture[str]):
    created = event(run_id="made", name="created", data={"slug": "signup", "effects": "account", "email": "a@b.test"})
    write(reports / "records" / "staging" / "made.jsonl", header(run_id="made"), created)

    assert main(["forget", "made"]) == 4
    assert "captcha-qa cleanup made" in capsys.readouterr().err
    assert main(["forget", "made", "--cleaned"]) == 0


def test_history_is_written_and_said(reports: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compact", str(reports / "records"), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["written"].values()) == [["other", RUN, "third"]]
    assert main(["compact", str(reports / "records")]) == 0
    assert "nothing new to compact" in capsys.readouterr().out
    assert main(["compact", "nowhere"]) == 4


def test_what_a_killed_command_left_is_erased_and_what_another_makes_is_named(
    reports: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    here = reports / "records" / "staging"
    left, made = here / ".1.3.0.parquet.4711.new", here / ".1.3.0.parquet.4712.new"
    for draft in (left, made):
        draft.write_bytes(b"packed, so that no id is seen")

    def ask(process: int, signal: int) -> None:
        if process == 4711:
            raise ProcessLookupError

    monkeypatch.setattr("os.kill", ask)
    assert main(["forget", RUN]) == 1
    assert f"still stands in {made}" in capsys.readouterr().out
    assert (left.exists(), made.exists()) == (False, True)
    monkeypatch.setattr("os.kill", lambda *_: (_ for _ in ()).throw(ProcessLookupError))
    compact(reports / "records")
    assert not made.exists()


def test_history_in_a_folder_that_is_called_like_a_pattern_is_that_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(forgetting, "STILL_WRITTEN", 0.0)
    like, other = tmp_path / "job[1]" / "records", tmp_path / "job1" / "records"
    for records, ids in ((like, IDS[:1]), (other, IDS[1:3])):
        for number, run in enumerate((RUN, "third")):
            write_run(records, run, ids=[f"{run} {number} {one}" for one in ids])
        compact(records, delete=True)

    assert main(["forget", RUN, "--records", str(like)]) == 0
    assert forgetting.traces(like, RUN).history == {}
    assert list(forgetting.traces(like, "third").history.values()) == [3], "part, event and an attempt"
    assert list(forgetting.traces(other, RUN).history.values()) == [4], "part, event and two attempts"
