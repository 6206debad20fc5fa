"""Counts attempts and events for Prometheus: a listener to the lines of records, with a registry of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pytest_captcha_qa.model.attempt import Expect, Fault, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Line, Started
from pytest_captcha_qa.model.token import OWN_SOLVES
from pytest_captcha_qa.observe.metric_table import FAMILIES, POOL, Family, Kind

# The most values of one label: whatever a record says, a scrape stays readable.
MOST_VALUES = 300
OTHER = "other"
NONE = "none"
_LONGEST = 120

_COUNTED = frozenset({Purpose.CHECK, Purpose.LOAD})
_STAGES = ("page", "submit", "verify", "confirm", "queue", "rate")
_CONCLUSIVE = frozenset({ProbeVerdict.SAFE, ProbeVerdict.UNSAFE, ProbeVerdict.CRASH})
_STORE = {"store_degraded": 0, "store_back": 1}
_PROBE = "probe"


class Metrics:
    """What happened since the process began, for a scrape or a file; thread-safe as its metrics are.

    It changes nothing, and no task id, address or text of an error becomes a label.
    """

    def __init__(self) -> None:
        """Make a registry of its own, so that a program's other metrics stay apart."""
        self.registry = CollectorRegistry()
        self._made = {name: _made(family, self.registry) for name, family in FAMILIES.items()}
        self._values: dict[str, set[str]] = {}
        self._open: set[str] = set()

    def listener(self, env: str, *, time_scale: float = 1.0) -> Callable[[Line], None]:
        """Return what is to be called with each line that is recorded on an environment.

        `time_scale`: that of its account; scaled times are never added up with real ones.
        """
        return partial(self._listen, env, f"{time_scale:g}")

    def tell_run(self, env: str, *, exit_code: int, at: float) -> None:
        """Note what a run came to; `at` in seconds since 1970, UTC."""
        self._set("run_exit_code", {"env": env}, exit_code)
        self._set("run_timestamp_seconds", {"env": env}, at)

    def tell_provider(self, env: str, provider: str, *, up: bool) -> None:
        """Note whether a solving service gives tokens."""
        self._set("provider_up", {"env": env, "provider": provider}, up)

    def _listen(self, env: str, time_scale: str, line: Line) -> None:
        match line:
            case Started():
                self._open.add(line.id)
                self._in_flight(line).inc()
            case AttemptLine():
                if line.id in self._open:
                    self._open.discard(line.id)
                    self._in_flight(line).dec()
                self._attempt(line, time_scale)
            case EventLine():
                self._event(env, line)

    def _in_flight(self, line: Started | AttemptLine) -> Any:
        labels = {"env": line.env, "project": line.project, "form": line.slug, "type": line.captcha}
        return self._child("in_flight", labels)

    # Attempts.

    def _attempt(self, line: AttemptLine, time_scale: str) -> None:
        labels = _labels(line)
        told = {"purpose": line.purpose, "expect": line.expect, "outcome": line.outcome, "fault": line.fault or NONE}
        self._add("attempts_total", {**labels, **told})
        self._add("submits_total", labels, line.submits)
        self._set("last_attempt_timestamp_seconds", labels, _seconds(line.ts))
        if line.fault is not None:
            code = (line.error or {}).get("code", NONE)
            self._add("errors_total", {**labels, "fault": line.fault, "code": code})
        if line.purpose in _COUNTED and line.expect == Expect.ACCEPT:
            self._good_attempt(line, {**labels, "time_scale": time_scale})
        elif line.purpose in _COUNTED and line.outcome in (Result.OK, Result.FAILED):
            self._set("form_refuses", labels, line.outcome == Result.OK)
        self._provider(line)

    def _good_attempt(self, line: AttemptLine, labels: Mapping[str, str]) -> None:
        for status in VerifyStatus:  # a count that begins with its first failure would hide that from increase()
            self._add("verifications_total", {**labels, "status": status}, line.verify_status == status)
        self._add("keys_total", labels, line.submits > 0)
        self._add("repeated_solves_total", labels, max(0, line.submits - 1))
        if line.wait is not None and line.source in OWN_SOLVES:
            self._observe("wait_seconds", labels, line.wait)
        if "blocked" in line.seconds:
            self._observe("blocked_seconds", labels, line.seconds["blocked"])
        for stage in _STAGES:
            if stage in line.seconds:
                self._observe("stage_seconds", {**labels, "stage": stage}, line.seconds[stage])
        if line.outcome == Result.OK and line.verify_status == VerifyStatus.PASS:
            self._set("form_up", labels, 1)
            self._set("last_pass_timestamp_seconds", labels, _seconds(line.ts))
        elif line.fault == Fault.PRODUCT:
            self._set("form_up", labels, 0)

    def _provider(self, line: AttemptLine) -> None:
        if line.fault == Fault.PROVIDER:
            self.tell_provider(line.env, line.provider, up=False)
        elif line.source in OWN_SOLVES:
            self.tell_provider(line.env, line.provider, up=True)

    # Events.

    def _event(self, env: str, event: EventLine) -> None:
        self._add("events_total", {"env": env, "event": event.name})
        if event.name in _STORE:
            self._set("store_up", {"env": env}, _STORE[event.name])
        if event.name == _PROBE and event.data.get("verdict") in _CONCLUSIVE:
            told = {name: str(event.data.get(name) or NONE) for name in ("form", "probe", "severity", "key_mode")}
            self._set("probe_unsafe", {"env": env, **told}, event.data.get("counts") is True)

    # Prometheus.

    def _add(self, name: str, labels: Mapping[str, str], amount: float = 1) -> None:
        self._child(name, labels).inc(amount)

    def _set(self, name: str, labels: Mapping[str, str], value: float) -> None:
        self._child(name, labels).set(value)

    def _observe(self, name: str, labels: Mapping[str, str], seconds: float) -> None:
        self._child(name, labels).observe(seconds)

    def _child(self, name: str, labels: Mapping[str, str]) -> Any:
        """Return the series of a metric; labels that it does not have are left out."""
        values = (self._bounded(label, labels[label]) for label in FAMILIES[name].labels)
        return self._made[name].labels(*values)

    def _bounded(self, label: str, value: str) -> str:
        known = self._values.setdefault(label, set())
        plain = value.encode("utf-8", "backslashreplace").decode()  # half a character would break every scrape
        short = plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
        if short not in known and len(known) >= MOST_VALUES:
            return OTHER
        known.add(short)
        return short


def _labels(line: AttemptLine) -> dict[str, str]:
    pool = (line.env, line.project, line.slug, line.captcha, line.provider, line.key_mode)
    named = dict(zip(POOL, pool, strict=True))
    return named | {"release": line.release or NONE, "worker_version": line.worker_version}


def _seconds(ts: str) -> float:
    return datetime.fromisoformat(ts).timestamp()


def _made(family: Family, registry: CollectorRegistry) -> Any:
    told = (family.full_name, family.help, family.labels)
    match family.kind:
        case Kind.COUNTER:
            return Counter(*told, registry=registry)
        case Kind.GAUGE:
            return Gauge(*told, registry=registry)
        case Kind.HISTOGRAM:
            return Histogram(*told, registry=registry, buckets=family.buckets)
