"""One piece of work over a history in a process of its own; prints its seconds, its peak memory and what it found.

    python -m history.work ours|pandas FOLDER

Both do the same: the median, P90 and P99 of five times and the verification rate for each pool and release, and the
last release against the one before it with a rank test for each time and an exact one for the rate. Our side also
proves the lines, counts the lost attempts, leaves outages out and resamples by run. Imports are not measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peak import peak_mib

ENV = "staging"
_TIMES = ("wait", "blocked", "page", "submit", "verify")
_POOL = ["env", "project", "type", "provider", "key_mode"]


def ours(folder: Path) -> dict[str, Any]:
    """Return what the dataset, its figures and the comparison say."""
    from pytest_captcha_qa.reporting.comparison.releases import compare_releases
    from pytest_captcha_qa.reporting.dataset import open_dataset
    from pytest_captcha_qa.reporting.figures import figures

    with open_dataset([folder]) as dataset:
        groups = figures(dataset)
        before, after = _last_two({group.release for group in groups if group.release})
        compared = compare_releases(dataset, env=ENV, candidate=after, baseline=before)
        changed = sorted({f"{one.pool.type} {one.metric.name}" for one in compared.changes if one.change == "worse"})
        return {"groups": len(groups), "attempts": sum(group.attempts for group in groups), "worse": changed}


def pandas(folder: Path) -> dict[str, Any]:
    """Return the same by pandas and SciPy."""
    from scipy.stats import fisher_exact, mannwhitneyu

    counted = _frame(folder)
    groups = counted.groupby([*_POOL, "release"])
    quantiles = groups[list(_TIMES)].quantile([0.5, 0.9, 0.99])
    groups["verify_status"].value_counts()
    before, after = _last_two(set(counted["release"].unique()))
    worse = []
    for kind, rows in counted.groupby("type"):
        first, second = rows[rows["release"] == before], rows[rows["release"] == after]
        for name in _TIMES:
            found = mannwhitneyu(first[name].dropna(), second[name].dropna())
            if found.pvalue < 0.001 and second[name].median() > 1.15 * first[name].median():
                worse.append(f"{kind} {name}")
        fisher_exact(
            [[int((side["verify_status"] == word).sum()) for word in ("pass", "fail")] for side in (first, second)]
        )
    return {"groups": len(quantiles) // 3, "attempts": len(counted), "worse": sorted(worse)}


def _frame(folder: Path) -> Any:
    import pandas as pd

    history = sorted(folder.rglob("*.parquet"))
    if history:
        columns = ["kind", *_POOL, "release", "wait", "verify_status", "fault", "seconds"]
        read = pd.concat([pd.read_parquet(path, columns=columns) for path in history])
        read = read[read["kind"] == "attempt"].reset_index(drop=True)
    else:
        parts = (pd.read_json(path, lines=True, convert_dates=False) for path in sorted(folder.rglob("*.jsonl")))
        read = pd.concat([part[part["$type"] == "attempt"] for part in parts], ignore_index=True)
    seconds = pd.DataFrame(read.pop("seconds").tolist(), index=read.index)
    read = read.join(seconds[["blocked", "page", "submit", "verify"]])
    return read[~read["fault"].isin(["provider", "infrastructure", "undetermined"])]


def _last_two(releases: set[str]) -> tuple[str, str]:
    ordered = sorted(releases, key=lambda release: [int(part) for part in release.split(".")])
    return ordered[-2], ordered[-1]


_WORK: dict[str, Callable[[Path], dict[str, Any]]] = {"ours": ours, "pandas": pandas}


def _imported(kind: str) -> None:
    import scipy.stats  # noqa: F401

    if kind == "pandas":
        import pandas  # noqa: F401
    else:
        import duckdb  # noqa: F401

        import pytest_captcha_qa.reporting.comparison.releases
        import pytest_captcha_qa.reporting.dataset  # noqa: F401


def main(kind: str, folder: Path) -> None:
    """Do the work once and print what it cost."""
    _imported(kind)
    begun, used = time.perf_counter(), time.process_time()
    found = _WORK[kind](folder)
    took, used = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps({"seconds": round(took, 3), "cpu": round(used, 3), "mib": round(peak_mib()), **found}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
