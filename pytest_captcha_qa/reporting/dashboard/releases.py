"""Which releases there are, in which order, and which two of an environment are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_captcha_qa.errors import BaselineMissing, UnknownName
from pytest_captcha_qa.reporting.comparison.references import PREVIOUS
from pytest_captcha_qa.reporting.comparison.releases import previous_release
from pytest_captcha_qa.reporting.dashboard.asking import Judged
from pytest_captcha_qa.reporting.dashboard.baseline import Baseline
from pytest_captcha_qa.reporting.dataset import Dataset

UNKNOWN = "unknown"

MOST_ENVIRONMENTS = 24

_ENVIRONMENTS = """
SELECT env FROM runs WHERE env IS NOT NULL GROUP BY env ORDER BY max(started_at) DESC NULLS LAST, env
"""
# Attempts are asked once for all that is said of releases: a question costs as much as what else it reads.
_RELEASES = """
WITH known AS (
    SELECT env, coalesce(release, '') AS release, 0 AS attempts, min(started_at) AS begun, NULL AS first, NULL AS last
    FROM runs WHERE env IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT env, coalesce(release, ''), count(*), min(ts), min(ts), max(ts)
    FROM attempts WHERE env IS NOT NULL GROUP BY ALL
)
SELECT env, release, sum(attempts)::BIGINT, min(first), max(last) FROM known WHERE list_contains($envs, env)
GROUP BY env, release ORDER BY env, min(begun) NULLS FIRST, release
"""
_NEWEST = """
SELECT env, release, max(started_at) AS last FROM runs
WHERE env IS NOT NULL AND attempts > 0 GROUP BY env, release ORDER BY last DESC NULLS LAST, release
"""


def environments(dataset: Dataset, wanted: str | None) -> tuple[list[str], int]:
    """Return the environments of the page, those with the newest runs where there are too many, and how many are left.

    Raises:
        UnknownName: `wanted` has no record.
    """
    known = [str(env) for (env,) in dataset.rows(_ENVIRONMENTS)]
    if wanted is None:
        return sorted(known[:MOST_ENVIRONMENTS]), len(known[MOST_ENVIRONMENTS:])
    if wanted not in known:
        raise UnknownName.among("environment", wanted, known, where="these records")
    return [wanted], 0


@dataclass(frozen=True, slots=True)
class Known:
    """A release of an environment, '' for none, with how many attempts are on record, and from when to when."""

    env: str
    release: str
    attempts: int
    first: datetime | None
    last: datetime | None


def known_releases(dataset: Dataset, envs: Sequence[str]) -> list[Known]:
    """Return the releases of each environment, the oldest first."""
    return [Known(*row) for row in dataset.rows(_RELEASES, {"envs": list(envs)})]


def ordered(known: Sequence[Known], envs: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the releases of each environment."""
    return {env: [one.release for one in known if one.env == env] for env in envs}


def judged(
    dataset: Dataset, releases: Mapping[str, Sequence[str]], *, candidate: str | None, baseline: Baseline
) -> list[Judged]:
    """Return what is compared with what, by environment; without a baseline with the previous release.

    Raises:
        UnknownName: no environment has the candidate.
        BaselineMissing: no environment has the baseline.
    """
    known = {release for listed in releases.values() for release in listed if release}
    if candidate is not None and candidate not in known:
        raise UnknownName.among("release", candidate, known, where="these records")
    newest = [(str(env), release) for env, release, _ in dataset.rows(_NEWEST)]
    found = []
    for env, listed in releases.items():
        older, fault = baseline.asked_in(env)
        others = (release for there, release in newest if there == env and release != older)
        release = candidate if candidate in listed else next(others, None)
        if older in (None, PREVIOUS) and fault is None and release is not None:
            older = previous_release(dataset, env, release)
        elif older not in (None, *listed):
            older, fault = None, f"the baseline {older!r} has no record in environment {env!r}"
        found.append(Judged(env, release, older if older != release else None, fault))
    faults = [one.fault for one in found if one.fault is not None]
    if faults and len(faults) == len(found):
        raise BaselineMissing(faults[0])
    return found
