"""What really arrived: counts that tests compare with what the harness claims it did.

Keys, secrets and tokens appear as fingerprints only.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, fields
from typing import Any


def fingerprint(secret: str) -> str:
    """Return what stands for a key, secret or token in the audit: the start of its SHA-256."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True)
class Traffic:
    """Provider calls: of all keys, of one, or about one task."""

    submits: int = 0
    polls: int = 0
    reads: int = 0
    reports_good: int = 0
    reports_bad: int = 0


@dataclass(slots=True)
class KeyTraffic(Traffic):
    """The provider calls of one key, and the most of its tasks that were being solved or waited at one time."""

    peak: int = 0


@dataclass(slots=True)
class TaskTraffic(Traffic):
    """The provider calls about one task."""

    key: str = ""
    """Fingerprint of the key it was submitted with."""
    type: str = ""
    state: str = "submitted"


@dataclass(slots=True)
class ProviderCounts:
    """What the solving service was asked: a poll asks for a result, a read is a poll that delivered it."""

    total: Traffic = field(default_factory=Traffic)
    by_key: defaultdict[str, KeyTraffic] = field(default_factory=lambda: defaultdict(KeyTraffic))
    tasks: defaultdict[str, TaskTraffic] = field(default_factory=lambda: defaultdict(TaskTraffic))
    codes: Counter[str] = field(default_factory=Counter)

    def submitted(self, key: str, task_id: str, type_: str, *, in_flight: int) -> None:
        """Count an accepted task; `in_flight`: how many of the key's, with it, have no result yet."""
        task = self.tasks[task_id]
        task.type, task.key = type_, fingerprint(key)
        by_key = self.by_key[fingerprint(key)]
        by_key.peak = max(by_key.peak, in_flight)
        for traffic in self._about(key, task_id):
            traffic.submits += 1

    def polled(self, key: str, task_id: str) -> None:
        """Count a request for the result of a task that exists."""
        for traffic in self._about(key, task_id):
            traffic.polls += 1

    def read(self, key: str, task_id: str) -> None:
        """Count a delivered result."""
        self.tasks[task_id].state = "read"
        for traffic in self._about(key, task_id):
            traffic.reads += 1

    def reported(self, key: str, task_id: str, *, good: bool) -> None:
        """Count a report about a solution."""
        for traffic in self._about(key, task_id):
            traffic.reports_good += good
            traffic.reports_bad += not good

    def _about(self, key: str, task_id: str) -> tuple[Traffic, ...]:
        return self.total, self.by_key[fingerprint(key)], self.tasks[task_id]

    def failed(self, task_id: str) -> None:
        """Note that a task was reported as failed."""
        self.tasks[task_id].state = "failed"

    def snapshot(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            **asdict(self.total),
            "by_key": {key: asdict(traffic) for key, traffic in self.by_key.items()},
            "tasks": {task_id: asdict(task) for task_id, task in self.tasks.items()},
            "codes": dict(self.codes),
        }


@dataclass(slots=True)
class VendorCounts:
    """What the vendor stand-in was asked, and how it answered."""

    calls: int = 0
    accepted: int = 0
    refused: int = 0
    by_endpoint: Counter[str] = field(default_factory=Counter)
    by_secret: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def called(self, endpoint: str, secret: str = "") -> None:
        """Count a call, and the secret it came with."""
        self.calls += 1
        self.by_endpoint[endpoint] += 1
        if secret:
            self.by_secret[fingerprint(secret)] += 1

    def answered(self, errors: list[str]) -> None:
        """Count a verdict: accepted when there are no error codes."""
        self.errors.update(errors)
        if errors:
            self.refused += 1
        else:
            self.accepted += 1

    def snapshot(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return _as_json(self)


@dataclass(slots=True)
class SiteCounts:
    """What the forms received. `posts_by_token` shows a token that was posted twice."""

    gets: Counter[str] = field(default_factory=Counter)
    posts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    posts_by_token: Counter[str] = field(default_factory=Counter)

    def posted(self, form: str, token: str) -> None:
        """Count a submission, and the token it came with."""
        self.posts[form] += 1
        if token:
            self.posts_by_token[fingerprint(token)] += 1

    def rejected(self, form: str, code: str) -> None:
        """Count a submission that was turned down, and for which reason."""
        self.refused[form] += 1
        self.refusals[code] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return _as_json(self)


@dataclass(slots=True)
class Audit:
    """All counts of one sandbox."""

    provider: ProviderCounts = field(default_factory=ProviderCounts)
    vendor: VendorCounts = field(default_factory=VendorCounts)
    site: SiteCounts = field(default_factory=SiteCounts)

    def reset(self) -> None:
        """Start counting from zero."""
        self.provider, self.vendor, self.site = ProviderCounts(), VendorCounts(), SiteCounts()

    def snapshot(self) -> dict[str, Any]:
        """Return all counts as JSON values."""
        return {
            "provider": self.provider.snapshot(),
            "vendor": self.vendor.snapshot(),
            "site": self.site.snapshot(),
        }


def _as_json(counts: VendorCounts | SiteCounts) -> dict[str, Any]:
    values = {spec.name: getattr(counts, spec.name) for spec in fields(counts)}
    return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}
