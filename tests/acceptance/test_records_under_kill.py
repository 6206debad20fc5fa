"""Record files written by real processes that are killed, share a run id, or run out of space."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_captcha_qa.records.reading import read

WRITER = """
import sys
from pathlib import Path
from pytest_captcha_qa.model.record import AttemptLine, Header, Started
from pytest_captcha_qa.records.jsonl import JsonlSink

TS = "2026-11-29T11:18:03.120Z"
COMMON = dict(ts=TS, slug="signup", captcha="turnstile", env="staging", run_id="r1", purpose="check")

def started(id_):
    return Started(id=id_, expect="accept", **COMMON)

def attempt(id_):
    return AttemptLine(
        id=id_, task_id="1", wait=1.0, verify_status="pass", release=None, project="default", account="main",
        provider="standin", key_mode="standin", expect="accept", outcome="ok", fault=None, error=None,
        source="solved", generation=1, submits=1, polls=1, seconds={}, token_prefix=None, http_status=200,
        variant=None, attempt=1, worker=None, worker_version="0", nodeid=None, **COMMON)

def sink():
    return JsonlSink(Path(sys.argv[1]), Header(ts=TS, tool="t", run_id="r1", env="staging", release=None))
"""
KILLED = """
records = sink()
for number in range(5):
    records.write(started(f"a{number}"))
    records.write(attempt(f"a{number}"))
records.write(started("unpaired"))
print("ready", flush=True)
sys.stdin.read()
"""
BUSY = """
records = sink()
print("ready", flush=True)
number = 0
while True:
    records.write(started(f"a{number}"))
    records.write(attempt(f"a{number}"))
    number += 1
"""
TWO_HUNDRED = """
records = sink()
for number in range(100):
    records.write(started(f"{sys.argv[2]}-{number}"))
    records.write(attempt(f"{sys.argv[2]}-{number}"))
records.close(True)
"""
OUT_OF_SPACE = """
import resource
from pytest_captcha_qa.errors import RecordError
records = sink()
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
said = []
for number in range(5):
    try:
        records.write(attempt(f"a{number}"))
    except RecordError as error:
        said.append(str(error))
print("\\n".join(said))
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")


def process(script: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER + script, str(folder), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def killed_once_ready(writer: subprocess.Popen[str]) -> None:
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    writer.kill()
    writer.communicate()
    assert writer.returncode == -signal.SIGKILL


def test_a_killed_writer_leaves_whole_lines_and_its_unpaired_attempt_is_lost(tmp_path):
    killed_once_ready(process(KILLED, tmp_path))
    [run] = read([tmp_path])
    assert [(a.id, a.outcome) for a in run.attempts if a.outcome == "lost"] == [("unpaired", "lost")]
    assert (len(run.attempts), run.damaged, run.complete) == (6, 0, False)


def test_a_writer_killed_while_it_writes_loses_one_attempt_at_most(tmp_path):
    killed_once_ready(process(BUSY, tmp_path))
    [run] = read([tmp_path])
    assert not run.complete
    assert run.damaged <= 1
    assert len(run.lost) <= 1
    assert {a.id for a in run.attempts} == {f"a{n}" for n in range(len(run.attempts))}


def test_processes_with_one_run_id_get_a_file_each_and_lose_no_line(tmp_path):
    writers = [process(TWO_HUNDRED, tmp_path, f"w{number}") for number in range(4)]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    names = sorted(path.name for path in (tmp_path / "staging").iterdir())
    assert names == ["r1-2.jsonl", "r1-3.jsonl", "r1-4.jsonl", "r1.jsonl"]
    for path in (tmp_path / "staging").iterdir():
        assert len([json.loads(line) for line in path.read_text().splitlines()]) == 202
    [run] = read([tmp_path])
    assert (run.complete, len({a.id for a in run.attempts}), run.lost) == (True, 400, ())


def test_a_file_that_may_not_grow_fails_the_record_and_keeps_the_lines_before(tmp_path):
    said, _ = process(OUT_OF_SPACE, tmp_path).communicate(timeout=60)
    first, *others = said.splitlines()
    assert "a record was cut off in" in first
    assert all("records cannot be written to" in line for line in others)
    [run] = read([tmp_path])
    assert run.damaged == 1
    assert run.attempts
    assert not run.complete
