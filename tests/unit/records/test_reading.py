from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.record import EventLine, Footer, Header, Started
from pytest_captcha_qa.records.lines import encode
from pytest_captcha_qa.records.reading import LINE_LIMIT, find, read, read_file

FIXTURES = Path(__file__).parents[3] / "fixtures" / "records"
WHOLE = FIXTURES / "v1.jsonl"
KILLED = FIXTURES / "v1-killed.jsonl"
NEWER = FIXTURES / "newer.jsonl"
TS = "2026-11-29T11:18:03.120Z"


def header(run_id: str = "r1", ts: str = TS, env: str = "staging") -> bytes:
    return encode(Header(ts=ts, tool="test", run_id=run_id, env=env, release="1.0"))


def footer(run_id: str = "r1", attempts: int = 0, complete: bool = True) -> bytes:
    return encode(Footer(ts=TS, run_id=run_id, complete=complete, attempts=attempts))


def started(id_: str = "a1", run_id: str = "r1") -> bytes:
    return encode(Started(ts=TS, id=id_, slug="signup", captcha="image", env="e", run_id=run_id, purpose="check"))


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def test_a_whole_file_of_version_1_is_read():
    [run] = read([WHOLE])
    assert run.run_id == "4711-e2e"
    assert [(a.id, a.slug, a.outcome) for a in run.attempts] == [
        ("a1", "signup", "ok"),
        ("a2", "signup", "ok"),
        ("a3", "login", "indeterminate"),
    ]
    assert [event.name for event in run.events] == ["store_degraded"]
    assert (run.complete, run.damaged, run.lost, run.time_scale) == (True, 0, (), 1.0)
    assert (run.environments, run.releases, run.key_modes) == (("staging",), ("1.3.0",), ("live",))


def test_a_killed_writers_file_gives_its_whole_lines_and_the_lost_attempt():
    [run] = read([KILLED])
    assert [(a.id, a.outcome, a.fault, a.verify_status) for a in run.attempts] == [
        ("a1", "ok", None, "pass"),
        ("a2", "lost", "infrastructure", "skipped"),
    ]
    assert run.lost[0].release == "1.3.0"
    assert not run.complete
    assert run.gaps == (
        f"{KILLED}: no footer: its writer ended early",
        f"{KILLED}: 1 damaged lines, the first at {KILLED}:5: not a line of JSON, perhaps cut off",
    )


def test_of_a_newer_schema_is_read_what_we_know():
    [run] = read([NEWER])
    assert [a.id for a in run.attempts] == ["a1"]
    assert run.complete
    assert "written by a newer tool (schema 7, ours is 1)" in run.notes[0]


@pytest.mark.parametrize(
    ("lines", "gap"),
    [
        ([header()], "no footer"),
        ([header(), footer(complete=False)], "closed as incomplete"),
        ([header(), footer(attempts=2)], "its footer counts 2 attempts, 0 can be read"),
        ([footer()], "no header"),
        ([], "no header"),
        ([header(), b"\xff\xfe\n", footer()], ":2: not a line of JSON"),
        ([header(), b"[1]\n", footer()], ":2: not a JSON object"),
        ([header(), b"[" * 100_000 + b"\n", footer()], ":2: not a line of JSON"),
        ([header(), b'{"$type":"event","ts":"x"}\n', footer()], ":2: 'name' is missing"),
        ([header().replace(b'"schema":1', b'"schema":0'), footer()], "schema version is unknown"),
        ([header().replace(b'"schema":1', b'"schema":"1"'), footer()], "schema version is unknown"),
        ([header(), b"x" * (LINE_LIMIT + 5) + b"\n", footer()], ":2: the line is too long for a record"),
    ],
)
def test_a_run_with_a_gap_is_incomplete_and_says_why(tmp_path, lines, gap):
    [run] = read([written(tmp_path / "r1.jsonl", *lines)])
    assert not run.complete
    assert any(gap in said for said in run.gaps)


def test_empty_lines_and_a_missing_last_newline_are_no_damage(tmp_path):
    [run] = read([written(tmp_path / "r1.jsonl", header(), b"\n", b"\r\n", footer().rstrip())])
    assert run.complete


def test_a_line_after_one_that_is_too_long_is_read(tmp_path):
    path = written(tmp_path / "r1.jsonl", header(), b"x" * (3 * LINE_LIMIT) + b"\n", footer())
    [file] = read_file(path)
    assert (file.damaged, file.footer is not None) == (1, True)


def test_only_the_first_twenty_damaged_lines_are_named(tmp_path):
    [file] = read_file(written(tmp_path / "r1.jsonl", header(), b"?\n" * 50, footer()))
    assert (file.damaged, len(file.damage)) == (50, 20)


def test_the_files_of_workers_make_one_run(tmp_path):
    written(tmp_path / "r1-gw0.jsonl", header(), started("a1"), footer())
    written(tmp_path / "r1-gw1.jsonl", header(), started("a2"))
    written(tmp_path / "r2.jsonl", header("r2"), footer("r2"))
    runs = {run.run_id: run for run in read([tmp_path])}
    assert {attempt.id for attempt in runs["r1"].lost} == {"a1", "a2"}
    assert (runs["r1"].complete, runs["r2"].complete) == (False, True)


def test_joined_files_are_told_apart_by_their_headers(tmp_path):
    path = written(tmp_path / "all.jsonl", header(), footer(), header("r2"), started(run_id="r2"))
    assert [(run.run_id, run.complete, len(run.lost)) for run in read([path])] == [
        ("r1", True, 0),
        ("r2", False, 1),
    ]


def test_an_attempt_recorded_in_another_file_of_the_run_is_not_lost(tmp_path):
    attempt = WHOLE.read_bytes().splitlines(keepends=True)[2].replace(b"4711-e2e", b"r1")
    written(tmp_path / "r1.jsonl", header(), started("a1"), footer())
    written(tmp_path / "r1-2.jsonl", header(), attempt, footer(attempts=1))
    [run] = read([tmp_path])
    assert (len(run.attempts), run.lost, run.complete) == (1, (), True)


def test_files_of_an_earlier_run_of_the_same_id_can_be_left_out(tmp_path):
    written(tmp_path / "r1.jsonl", header(ts="2026-11-29T10:00:00.000Z"))
    written(tmp_path / "r1-2.jsonl", header(ts="2026-11-29T12:00:00.000Z"), footer())
    [run] = read([tmp_path], since="2026-11-29T11:59:59.000Z")
    assert run.complete
    assert not read([tmp_path])[0].complete


def test_files_folders_and_patterns_are_found_once_each(tmp_path):
    (tmp_path / "staging").mkdir()
    file = Path(shutil.copy(WHOLE, tmp_path / "staging" / "r1.jsonl"))
    (tmp_path / "staging" / "notes.txt").write_text("")
    os.symlink(file, tmp_path / "link.jsonl")
    assert find([file, tmp_path, str(tmp_path / "**" / "*.jsonl"), tmp_path / "st*" / "r?.jsonl"]) == [file]


def test_a_named_file_that_is_not_there_is_an_error_and_an_empty_pattern_is_not(tmp_path):
    with pytest.raises(ConfigError, match="there is no record file or folder"):
        read([tmp_path / "r1.jsonl"])
    assert read([tmp_path / "*.jsonl"]) == []


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "folder.jsonl")


def test_a_scaled_run_says_so(tmp_path):
    scaled = header().replace(b'"time_scale":1.0', b'"time_scale":0.02')
    assert read([written(tmp_path / "r1.jsonl", scaled, footer())])[0].time_scale == 0.02


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(cut=st.integers(min_value=0), flip=st.binary(max_size=4), at=st.integers(min_value=0))
def test_no_damage_is_fatal_and_none_passes_for_a_whole_run(tmp_path, cut, flip, at):
    whole = WHOLE.read_bytes()
    # Twenty bytes short of the end: four foreign ones cannot mend the footer.
    cut, at = cut % (len(whole) - 20), at % len(whole)
    [*_, run] = read([written(tmp_path / "r.jsonl", whole[: min(cut, at)], flip, whole[at:cut])])
    assert not run.complete


def test_every_fixture_line_of_version_1_is_json():
    assert all(json.loads(line) for line in WHOLE.read_text().splitlines())


def test_shards_of_a_run_are_one_run_whose_files_know_their_shard(tmp_path):
    def of_shard(shard: str | None) -> bytes:
        return encode(Header(ts=TS, tool="test", run_id="r1", env="staging", release="1.0", shard=shard))

    for name, shard in (("r1-1", "1"), ("r1-10", "10"), ("r1", None)):
        written(tmp_path / f"{name}.jsonl", of_shard(shard), footer())
    [run] = read([tmp_path])
    assert run.complete
    ours = [[file.path.stem for file in run.files if file.is_of("r1", shard)] for shard in ("1", "10", None)]
    assert ours == [["r1-1"], ["r1-10"], ["r1"]]
    assert not any(file.is_of("r2", "1") for file in run.files)


def test_a_file_that_lost_its_header_is_missed_by_no_shard(tmp_path):
    [file] = read_file(written(tmp_path / "r1-1.jsonl", started()))
    assert file.is_of("r1", "1")


@pytest.mark.parametrize(("data", "releases"), [({"from": "1.0", "to": "1.1"}, ("1.0", "1.1")), ({}, ("1.0",))])
def test_a_release_found_at_the_end_of_a_run_is_one_of_its_releases(tmp_path, data, releases):
    changed = encode(EventLine(ts=TS, name="release_changed", run_id="r1", data=data))
    [run] = read([written(tmp_path / "r1.jsonl", header(), changed, footer())])
    assert run.releases == releases
