"""History of a million attempts, beside pandas: `make bench` writes the figures to reports/benchmarks.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from history.__main__ import ATTEMPTS, add_to, measure

REPORT = Path(__file__).parents[2] / "reports" / "benchmarks.json"
MOST_MIB = 1024


@pytest.mark.bench
@pytest.mark.timeout(3000)
def test_history_is_summed_up_and_compared_faster_than_by_pandas_and_in_less_than_a_gigabyte(tmp_path: Path):
    pytest.importorskip("pandas", reason="pandas is not installed: pip install '.[bench]'")

    found = measure(ATTEMPTS, tmp_path)
    add_to(REPORT, found)

    print(json.dumps(found, indent=2))
    for kind in ("jsonl", "parquet"):
        assert found[f"report.{kind}.same_attempts"]
        # Seconds are the machine's; what else it does slows both sides.
        assert found[f"report.{kind}.ratio"] > 1
        assert found[f"report.{kind}.mib"] < MOST_MIB
