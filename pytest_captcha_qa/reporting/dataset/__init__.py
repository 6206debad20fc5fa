"""Record files as tables for SQL: `open_dataset` gives `runs`, `attempts`, `positive`, `events` and `probes`."""

from __future__ import annotations

from pytest_captcha_qa.reporting.dataset.dataset import Dataset, open_dataset

__all__ = ["Dataset", "open_dataset"]
