"""What the CI says about the run: its name, and what tokens must not be shared beyond."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Names of one run. `boundary` is equal in a retried job, `run_id` is not (state.md)."""

    run_id: str
    boundary: str
    shard: str | None = None


# For each CI the variables of the pipeline, of the job, and of what tells a retry apart. GitHub gives no variable for
# a matrix cell: a job with a matrix sets CAPTCHA_QA_SHARD.
_CI_VARIABLES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("gitlab", ("CI_PIPELINE_ID", "CI_JOB_NAME"), ("CI_JOB_ID",)),
    ("github", ("GITHUB_RUN_ID", "GITHUB_JOB"), ("GITHUB_RUN_ATTEMPT",)),
    ("jenkins", ("BUILD_TAG",), ()),
    ("circleci", ("CIRCLE_WORKFLOW_ID", "CIRCLE_JOB"), ("CIRCLE_BUILD_NUM",)),
    ("azure", ("BUILD_BUILDID", "SYSTEM_JOBNAME"), ("SYSTEM_JOBATTEMPT",)),
    ("buildkite", ("BUILDKITE_BUILD_ID", "BUILDKITE_STEP_ID"), ("BUILDKITE_RETRY_COUNT",)),
)
# Three of them make a record file's name; numbers that tell builds apart stand at the end.
_LONGEST_WORD = 40
# What says which part of a split run this is, and in how many it is split; some CIs count one part where nothing is.
_SHARD_VARIABLES = (
    ("CAPTCHA_QA_SHARD", ""),
    ("CI_NODE_INDEX", "CI_NODE_TOTAL"),
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
)


def identify(environ: Mapping[str, str], *, root: Path, env: str, given: str | None = None) -> RunIdentity:
    """Return the names of this run: from the CI it runs in, else from the project's folder and at random."""
    shard = shard_of(environ)
    for _, stable, retry in _CI_VARIABLES:
        if all(environ.get(name) for name in stable):
            parts = [environ[name] for name in stable]
            tries = [environ[name] for name in retry if environ.get(name)]
            boundary = _digest(*parts, shard or "", env)
            return RunIdentity(given or _readable(*parts, *tries), boundary, shard)
    return RunIdentity(given or _random_id(), _digest(str(root.resolve()), shard or "", env), shard)


def shard_of(environ: Mapping[str, str]) -> str | None:
    """Return which part of a split run this is, None for a whole one."""
    split = (index for index, total in _SHARD_VARIABLES if environ.get(index) and environ.get(total) != "1")
    return next((environ[index] for index in split), None)


def _readable(*parts: str) -> str:
    """Return a name that fits a file and an HTTP header: a job's may hold anything, and be long."""
    words = (re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-.")[-_LONGEST_WORD:].lstrip("-.") for part in parts)
    return "-".join(word for word in words if word) or _random_id()


def _random_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]
