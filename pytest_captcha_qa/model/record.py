"""The lines of a record file, as contracts.md shows them; `line()` names every field that may leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from pytest_captcha_qa.model.extra import Scalar

SCHEMA_VERSION = 1


def timestamp(seconds: float) -> str:
    """Return UTC in ISO 8601 with milliseconds and Z."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line: who wrote the file and what was under test; `shard` names the part of a run that a CI has split."""

    type: ClassVar[str] = "header"
    ts: str
    tool: str
    run_id: str
    env: str
    release: str | None
    time_scale: float = 1.0
    shard: str | None = None
    schema: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Written before anything is sent; without its attempt line the attempt is lost."""

    type: ClassVar[str] = "started"
    ts: str
    id: str
    slug: str
    captcha: str
    env: str
    run_id: str
    purpose: str
    expect: str | None = None
    nodeid: str | None = None
    worker: str | None = None
    project: str = "default"
    account: str | None = None
    key_mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """What became of one attempt; `wait` and `seconds` are in seconds, `extra` is what extensions added.

    `price`: what its solves have cost, in the provider's own unit; None where the provider does not say.
    """

    type: ClassVar[str] = "attempt"
    ts: str
    id: str
    slug: str
    captcha: str
    task_id: str | None
    wait: float | None
    verify_status: str
    env: str
    release: str | None
    run_id: str
    project: str
    account: str
    provider: str
    key_mode: str
    purpose: str
    expect: str
    outcome: str
    fault: str | None
    error: Mapping[str, str] | None
    source: str | None
    generation: int | None
    submits: int
    polls: int
    seconds: Mapping[str, float]
    token_prefix: str | None
    http_status: int | None
    variant: str | None
    attempt: int
    worker: str | None
    worker_version: str
    nodeid: str | None
    synthetic: bool = True
    extra: Mapping[str, Scalar] = field(default_factory=dict)
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """Something that happened besides the attempts."""

    type: ClassVar[str] = "event"
    ts: str
    name: str
    run_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """Last line; without it the file is incomplete and its run is never green."""

    type: ClassVar[str] = "footer"
    ts: str
    run_id: str
    complete: bool
    attempts: int = 0


Line = Header | Started | AttemptLine | EventLine | Footer
