"""Runs that a CI has split: each part writes its own files, and together they are one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pytest_captcha_qa.records.reading import Run, read

TESTS = """\
import os, pytest

@pytest.mark.parametrize("n", range(int(os.environ["HOW_MANY"])))
def test_it(captcha_attempt, n):
    assert captcha_attempt("login")
"""
RUN = ("--captcha-env=staging", "--captcha-run-id=nightly-7")
# One shard's name is the beginning of the other's.
SHARDS = {"1": 2, "10": 3}


def shards(project: Any, *arguments: str, parallel: bool) -> dict[str, Any]:
    """Return what became of each shard, run one after the other or at the same time."""

    def run(shard: str) -> Any:
        return project.run(*RUN, *arguments, env={"CI_NODE_INDEX": shard, "HOW_MANY": str(SHARDS[shard])})

    with ThreadPoolExecutor(len(SHARDS) if parallel else 1) as pool:
        return dict(zip(SHARDS, pool.map(run, SHARDS), strict=True))


def verdict_of(project: Any, shard: str) -> Any:
    return json.loads((project.folder / "reports" / f"verdict-{shard}.json").read_text())


def merged(project: Any) -> Run:
    """Return the one run that all files in the folder of records are."""
    [run] = read([project.folder / "reports" / "records"])
    return run


@pytest.mark.parametrize(
    ("parallel", "workers"), [(False, ()), (True, ()), (True, ("-n2",))], ids=["in turn", "at once", "at once with -n2"]
)
def test_shards_of_one_run_merge_without_renaming(
    staging: Callable[..., Any], parallel: bool, workers: tuple[str, ...]
) -> None:
    project = staging({"test_it.py": TESTS})
    ran = shards(project, *workers, parallel=parallel)
    assert [one.code for one in ran.values()] == [0, 0], "\n".join(one.output for one in ran.values())
    run = merged(project)
    assert (run.run_id, run.complete, run.lost, run.damaged) == ("nightly-7", True, (), 0)
    assert Counter(file.header.shard for file in run.files if file.header for _ in file.attempts) == SHARDS
    assert len({attempt.id for attempt in run.attempts}) == sum(SHARDS.values())
    for shard, tests in SHARDS.items():
        written = [f"nightly-7-{shard}{worker}.jsonl" for worker in (("-gw0", "-gw1") if workers else ("",))]
        verdict = verdict_of(project, shard)
        assert verdict["records"] == [f"reports/records/staging/{name}" for name in written]
        assert verdict["forms"]["login"]["attempts"] == verdict["cost"]["submits"] == tests
    assert not (project.folder / "reports" / "verdict.json").exists()


def test_a_broken_shard_does_not_fail_the_others(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS + "    assert n < 2\n"})
    ran = shards(project, parallel=True)
    assert {shard: one.code for shard, one in ran.items()} == {"1": 0, "10": 1}


def test_the_cells_of_a_github_matrix_name_themselves(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS})
    job = {"GITHUB_RUN_ID": "5512", "GITHUB_JOB": "qa", "GITHUB_RUN_ATTEMPT": "1", "HOW_MANY": "1"}
    for cell in ("py3.11", "py3.12"):
        ran = project.run("--captcha-env=staging", env=job | {"CAPTCHA_QA_SHARD": cell})
        assert ran.code == 0, ran.output
    assert [path.name for path in ran.record_files] == ["5512-qa-1-py3.11.jsonl", "5512-qa-1-py3.12.jsonl"]
    assert len(merged(project).attempts) == 2


def test_a_retried_shard_keeps_what_the_first_try_wrote(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": TESTS})
    again = {"CAPTCHA_QA_SHARD": "1", "HOW_MANY": "1"}
    for _ in range(2):
        ran = project.run(*RUN, env=again)
    assert [path.name for path in ran.record_files] == ["nightly-7-1-2.jsonl", "nightly-7-1.jsonl"]
    assert verdict_of(project, "1")["records"] == ["reports/records/staging/nightly-7-1-2.jsonl"]
