"""The metrics we tell Prometheus: name, labels and meaning of each, for all who fill, read or document them.

No label holds a task id, a test's name, an address or the text of an error: each has as many values as a configuration
has forms, accounts and releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "captcha_qa_"

# Samples that differ in one of these are never added up (R2.5).
POOL = ("env", "project", "form", "type", "provider", "key_mode")
ATTEMPT = (*POOL, "release", "worker_version")
TIMED = (*ATTEMPT, "time_scale")

# Upper bounds in seconds: of what a solving service takes, and of what a page takes.
WAITS = (0.1, 0.25, 0.5, 1, 2, 4, 6, 8, 10, 12.5, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 300, 600)
STEPS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60)


class Kind(StrEnum):
    """How Prometheus is told to read a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric without the prefix; a counter's name ends in `_total`, times are in seconds."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """What Prometheus calls it."""
        return PREFIX + self.name


_ALL = (
    Family(
        "attempts_total", Kind.COUNTER, (*ATTEMPT, "purpose", "expect", "outcome", "fault"),
        "Attempts by outcome and by whose fault they are; fault is none where there is none.",
    ),
    Family(
        "verifications_total", Kind.COUNTER, (*ATTEMPT, "status"),
        "What the backend said of good tokens: pass, fail, error or skipped.",
    ),
    Family("submits_total", Kind.COUNTER, ATTEMPT, "Captchas submitted to the solving service."),
    Family("keys_total", Kind.COUNTER, ATTEMPT, "Good attempts that needed at least one submit of their own."),
    Family(
        "repeated_solves_total", Kind.COUNTER, ATTEMPT,
        "Submits of good attempts beyond their first; over captcha_qa_keys_total: the share of repeated solves.",
    ),
    Family(
        "wait_seconds", Kind.HISTOGRAM, TIMED,
        "From the service's acceptance of a task to the token in hand, of own solves: the provider's side.", WAITS,
    ),
    Family("blocked_seconds", Kind.HISTOGRAM, TIMED, "What a good attempt waited for its token.", WAITS),
    Family(
        "stage_seconds", Kind.HISTOGRAM, (*TIMED, "stage"),
        "Stages of a good attempt. Our side: page, submit, verify, confirm; waiting for our own limits: queue, rate.",
        STEPS,
    ),
    Family(
        "errors_total", Kind.COUNTER, ("env", "type", "provider", "key_mode", "fault", "code"),
        "Attempts that failed, by the error's code.",
    ),
    Family("events_total", Kind.COUNTER, ("env", "event"), "Degradations, renewals and windows, by the event's name."),
    Family("in_flight", Kind.GAUGE, ("env", "project", "form", "type"), "Attempts that have begun and not ended."),
    Family("form_up", Kind.GAUGE, POOL, "1 if the form took the last good token it was shown, 0 if it is broken."),
    Family(
        "form_refuses", Kind.GAUGE, POOL,
        "1 if the form refused the last thing it had to refuse, 0 if it took it.",
    ),
    Family(
        "provider_up", Kind.GAUGE, ("env", "provider"), "1 if the service's last answer was a token, 0 if it failed.",
    ),
    Family("store_up", Kind.GAUGE, ("env",), "1 while the shared store is in use, 0 while workers go on without it."),
    Family(
        "probe_unsafe", Kind.GAUGE, ("env", "form", "probe", "severity", "key_mode"),
        "1 if the form took what the conformance probe sent and must not have, 0 if it refused.",
    ),
    Family("last_pass_timestamp_seconds", Kind.GAUGE, POOL, "When the form last took a good token."),
    Family("last_attempt_timestamp_seconds", Kind.GAUGE, ("env",), "When the last attempt ended."),
    Family("run_exit_code", Kind.GAUGE, ("env",), "The exit code of the last run; from runs of pytest only."),
    Family("run_timestamp_seconds", Kind.GAUGE, ("env",), "When the last run was decided; from runs of pytest only."),
)  # fmt: skip
FAMILIES: Mapping[str, Family] = {family.name: family for family in _ALL}


def series_names(family: Family) -> tuple[str, ...]:
    """Return the names under which a query finds a metric."""
    if family.kind is Kind.HISTOGRAM:
        return tuple(f"{family.full_name}_{part}" for part in ("bucket", "count", "sum"))
    return (family.full_name,)


def markdown_table() -> str:
    """Return the table of metrics as docs/metrics.md shows it."""
    groups = {ATTEMPT: "*attempt*", TIMED: "*attempt*, `time_scale`", POOL: "*pool*"}
    lines = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for family in _ALL:
        base = max((group for group in groups if family.labels[: len(group)] == group), key=len, default=())
        named = [groups[base]] if base else []
        labels = ", ".join([*named, *(f"`{label}`" for label in family.labels[len(base) :])])
        lines.append(f"| `{family.full_name}` | {family.kind} | {labels} | {family.help} |")
    return "\n".join(lines) + "\n"
