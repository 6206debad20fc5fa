from __future__ import annotations

import errno
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import EventLine, Header, Started
from pytest_captcha_qa.records.jsonl import JsonlSink, safe_name
from pytest_captcha_qa.records.reading import read_file

TS = "2026-11-29T11:18:03.120Z"
HEADER = Header(ts=TS, tool="test", run_id="r1", env="staging", release="1.0")
EVENT = EventLine(ts=TS, name="store_degraded", run_id="r1")


def started(number: int) -> Started:
    return Started(ts=TS, id=f"a{number}", slug="s", captcha="image", env="e", run_id="r1", purpose="check")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_file_begins_with_its_header_and_ends_with_its_footer(tmp_path):
    sink = JsonlSink(tmp_path, HEADER, utc=lambda: 0.0)
    sink.write(EVENT)
    sink.close(True)
    sink.close(False)
    assert sink.path == tmp_path / "staging" / "r1.jsonl"
    assert [line["$type"] for line in lines(sink.path)] == ["header", "event", "footer"]
    assert lines(sink.path)[-1] == {
        "$type": "footer",
        "ts": "1970-01-01T00:00:00.000Z",
        "run_id": "r1",
        "complete": True,
        "attempts": 0,
    }


def test_each_line_is_one_append(tmp_path, monkeypatch):
    sink = JsonlSink(tmp_path, HEADER)
    written: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(data) or len(data))
    sink.write(EVENT)
    assert len(written) == 1
    assert written[0].endswith(b"}\n")


def test_shard_and_worker_stand_in_the_name(tmp_path):
    sink = JsonlSink(tmp_path, replace(HEADER, shard="2of4"), worker="gw1")
    sink.close(True)
    assert sink.path.name == "r1-2of4-gw1.jsonl"


def test_an_existing_file_is_never_overwritten(tmp_path):
    first, second, third = (JsonlSink(tmp_path, HEADER) for _ in range(3))
    assert [sink.path.name for sink in (first, second, third)] == ["r1.jsonl", "r1-2.jsonl", "r1-3.jsonl"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("staging", "staging"),
        ("feature/login", "feature-login"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("бета", "unnamed"),
        ("a b\x00c\nd\\e", "a-b-c-d-e"),
        ("x" * 500, "x" * 80),
    ],
)
def test_names_from_a_ci_make_one_safe_part_of_a_path(name, safe):
    assert safe_name(name) == safe


def test_a_file_stays_in_its_folder_whatever_the_run_is_called(tmp_path):
    sink = JsonlSink(tmp_path / "records", replace(HEADER, env="../up", run_id="/etc/x"), worker="../gw0")
    assert sink.path == tmp_path / "records" / "up" / "etc-x-gw0.jsonl"


def test_a_file_in_place_of_the_folder_is_said_with_its_path(tmp_path):
    (tmp_path / "records").write_text("")
    with pytest.raises(RecordError, match=r"records/staging: a file stands where a folder is needed"):
        JsonlSink(tmp_path / "records", HEADER)


def test_a_file_in_place_of_the_environments_folder_is_said(tmp_path):
    (tmp_path / "staging").write_text("")
    with pytest.raises(RecordError, match="a file stands where a folder is needed"):
        JsonlSink(tmp_path, HEADER)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind root")
def test_a_folder_without_permission_is_said(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RecordError, match="permission is denied"):
        JsonlSink(tmp_path, HEADER)


def test_a_full_disk_is_said_at_the_start_and_leaves_no_empty_file(tmp_path, monkeypatch):
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RecordError, match="the disk is full"):
        JsonlSink(tmp_path, HEADER)
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_short_write_is_an_error_and_spoils_no_other_line(tmp_path, monkeypatch):
    sink = JsonlSink(tmp_path, HEADER)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        with pytest.raises(RecordError, match=r"cut off in .*r1.jsonl: 10 of \d+ bytes"):
            sink.write(EVENT)
    sink.write(EVENT)
    sink.close(True)
    [file] = read_file(sink.path)
    assert (file.damaged, len(file.events)) == (1, 1)
    assert file.damage == [f"{sink.path}:2: not a line of JSON"]


def test_a_closed_sink_takes_nothing_more(tmp_path):
    sink = JsonlSink(tmp_path, HEADER)
    sink.close(True)
    with pytest.raises(RecordError, match="closed already"):
        sink.write(EVENT)


def test_threads_may_share_a_sink(tmp_path):
    sink = JsonlSink(tmp_path, HEADER)
    threads = [
        threading.Thread(target=lambda first: [sink.write(started(first + n)) for n in range(50)], args=(k,))
        for k in (0, 100, 200, 300)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close(True)
    assert len({line["id"] for line in lines(sink.path)[1:-1]}) == 200


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_writes_its_own_file_even_if_a_thread_held_the_lock(tmp_path):
    sink = JsonlSink(tmp_path, HEADER)
    sink.write(started(1))
    with sink._lock:
        child = os.fork()
        if child == 0:
            sink.write(started(2))
            sink.close(True)
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sink.write(started(3))
    sink.close(True)
    assert [line.get("id") for line in lines(sink.path)] == [None, "a1", "a3", None]
    assert [line.get("id") for line in lines(tmp_path / "staging" / "r1-2.jsonl")] == [None, "a2", None]


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_writes_nothing_leaves_no_file(tmp_path):
    sink = JsonlSink(tmp_path, HEADER)
    child = os.fork()
    if child == 0:
        sink.close(True)
        os._exit(0)
    os.waitpid(child, 0)
    sink.close(True)
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == ["r1.jsonl"]
