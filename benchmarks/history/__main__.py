"""Measures how fast history is summed up and compared, beside pandas on the same files: `make bench`.

    python -m history [-n ATTEMPTS] [-o reports/benchmarks.json]

Makes a million attempts (two million lines and a header and footer a run, 1 GB), once as our writer writes them and
once as another program may (`foreign`: a million lines, spaces, keys in another order), measures each piece of work in
processes of its own, three times, and adds the keys `report.*` to the file: medians of seconds per million attempts,
the worst peak of memory in MiB, and `ratio`, how many times as long pandas took. Lines of pandas are measured once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from history.generate import World, generate
from pytest_captcha_qa.reporting.compacting import compact

ATTEMPTS = 1_000_000
_TIMES = 3
_LIMIT = 1_200.0


def measure(attempts: int, place: Path) -> dict[str, Any]:
    """Return the figures of `report.*`; `place` gets the made-up records and is left as it is."""
    others = generate(place / "others", World(attempts, foreign=True))
    found = {"report.attempts": attempts, **_both("foreign", others, attempts)}
    shutil.rmtree(others)
    records = generate(place / "records", World(attempts))
    found |= _both("jsonl", records, attempts)
    begun = time.perf_counter()
    compact(records, delete=True)
    found["report.compact.seconds_per_million"] = _per_million(time.perf_counter() - begun, attempts)
    found |= _both("parquet", records, attempts)
    return found | _dashboard(records, place / "dashboard.html", attempts)


def _both(kind: str, records: Path, attempts: int) -> dict[str, Any]:
    """Return our figures and those of pandas, which took the same files in turn."""
    ours, theirs = [], []
    beside = all(map(find_spec, ("pandas", "pyarrow")))
    for turn in range(_TIMES):
        ours.append(_work("ours", records))
        if beside and (turn == 0 or kind == "parquet"):
            theirs.append(_work("pandas", records))
    key = f"report.{kind}"
    seconds = median(one["seconds"] for one in ours)
    found = {
        f"{key}.seconds_per_million": _per_million(seconds, attempts),
        f"{key}.cpu_seconds_per_million": _per_million(median(one["cpu"] for one in ours), attempts),
        f"{key}.mib": max(one["mib"] for one in ours),
    }
    if theirs:
        slow = median(one["seconds"] for one in theirs)
        found[f"{key}.pandas.seconds_per_million"] = _per_million(slow, attempts)
        found[f"{key}.pandas.mib"] = max(one["mib"] for one in theirs)
        found[f"{key}.ratio"] = round(slow / seconds, 2)
        found[f"{key}.same_attempts"] = ours[0]["attempts"] == theirs[0]["attempts"]
    return found


def _work(kind: str, records: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "history.work", kind, str(records)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _dashboard(records: Path, page: Path, attempts: int) -> dict[str, Any]:
    """Return what the dashboard of that history takes, a process with all its imports; nothing where it is missing."""
    try:
        missing = find_spec("pytest_captcha_qa.reporting.dashboard") is None or find_spec("altair") is None
    except ModuleNotFoundError:
        missing = True
    if missing:
        return {}
    command = [sys.executable, "-m", "pytest_captcha_qa.cli.main", "report", str(records), "-o", str(page)]
    took = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        subprocess.run(command, capture_output=True, timeout=_LIMIT, check=True)
        took.append(time.perf_counter() - begun)
    return {
        "report.dashboard.seconds_per_million": _per_million(median(took), attempts),
        "report.dashboard.bytes": page.stat().st_size,
    }


def _per_million(seconds: float, attempts: int) -> float:
    return round(seconds * 1_000_000 / attempts, 3)


def add_to(path: Path, found: dict[str, Any]) -> None:
    """Put the figures into a file that may hold others, in the place of those of an earlier time."""
    try:
        known = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        known = {}
    kept = {key: value for key, value in known.items() if not key.startswith("report.")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**kept, **found}, indent=2) + "\n", "utf-8")


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description="how fast history is summed up and compared, beside pandas")
    parser.add_argument("-n", "--attempts", type=int, default=ATTEMPTS)
    parser.add_argument("-o", "--output", type=Path, default=Path("reports/benchmarks.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="captcha-qa-bench-") as place:
        found = measure(asked.attempts, Path(place))
    add_to(asked.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
