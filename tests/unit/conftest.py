"""What unit tests of several rooms share: benches with a manual clock, grants of a real account, lines and records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.gate import GateRules, Rules
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, timestamp
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.records.lines import encode
from pytest_captcha_qa.reporting.gate.results import GateResult
from pytest_captcha_qa.reporting.gate.subject import Asked
from pytest_captcha_qa.testing import Bench, ManualClock

SHOP = "https://shop.example"
TS = "2026-11-29T11:18:03.120Z"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


class ProvenGrants:
    """Grants for one origin that serves a proof and is solved for with a live account."""

    def __init__(self, clock: ManualClock, origin: str, solves_per_hour: int | None) -> None:
        self._clock = clock
        self._pattern = scope.OriginPattern.parse(origin)
        self._solves_per_hour = solves_per_hour
        self.asked = 0

    def grant(self, url: Url) -> scope.ScopeGrant:
        self.asked += 1
        now = self._clock.monotonic()
        rules = scope.ScopeRules("staging", EnvKind.STAGING, (self._pattern,), scope.TokenSource.LIVE)
        proof = scope.Evidence(
            fetched_from=url.origin,
            fetched_at=now,
            origins=(self._pattern,),
            kind=EnvKind.STAGING,
            expires_at=now + 86400,
            max_solves_per_hour=self._solves_per_hour,
        )
        decision = scope.check(url, rules, proof, monotonic=self._clock.monotonic, utc=self._clock.utc)
        if isinstance(decision, ScopeDenied):
            raise decision
        return decision


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def challenge() -> Challenge:
    return Challenge(CaptchaType.RECAPTCHA_V2, "sitekey", Url.parse(f"{SHOP}/signup"))


@pytest.fixture
def proven(bench: Bench) -> Callable[..., GrantSource]:
    def make(origin: str = SHOP, solves_per_hour: int | None = None) -> GrantSource:
        return ProvenGrants(bench.clock, origin, solves_per_hour)

    return make


@pytest.fixture
def attempt() -> Callable[..., AttemptLine]:
    """Make an attempt on `signup` that passed, changed by keywords."""
    numbers = itertools.count(1)

    def make(**changes: Any) -> AttemptLine:
        fields: dict[str, Any] = {
            "ts": TS, "id": f"a{next(numbers)}", "slug": "signup", "captcha": "turnstile", "task_id": "1",
            "wait": 8.0, "verify_status": "pass", "env": "staging", "release": "1.3.0", "run_id": "r1",
            "project": "default", "account": "main", "provider": "captchaai", "key_mode": "live",
            "purpose": "check", "expect": "accept", "outcome": "ok", "fault": None, "error": None,
            "source": "solved", "generation": 1, "submits": 1, "polls": 2, "seconds": {},
            "token_prefix": None, "http_status": 200, "variant": None, "attempt": 1, "worker": None,
            "worker_version": "0.3.0", "nodeid": "t.py::test_signup",
        }  # fmt: skip
        return AttemptLine(**(fields | changes))

    return make


class Records:
    """A folder of record files of small runs, and the gate over them."""

    def __init__(self, folder: Path, attempt: Callable[..., AttemptLine]) -> None:
        self.folder = folder
        self._attempt = attempt

    def run(
        self,
        name: str,
        attempts: Iterable[Mapping[str, Any]],
        *,
        release: str | None = "1.3.0",
        ago: timedelta = timedelta(),
        complete: bool = True,
        events: Iterable[tuple[str, Mapping[str, Any]]] = (),
        **header: Any,
    ) -> Path:
        """Write one file of a run; its attempts are those of the fixture `attempt`, changed."""
        at = timestamp((NOW - ago).timestamp())
        fields: dict[str, Any] = {"ts": at, "tool": "t", "run_id": name, "env": "staging", "release": release} | header
        lines = [self._attempt(**{"ts": at, "run_id": name, "release": release} | dict(one)) for one in attempts]
        told = [EventLine(ts=at, name=event, run_id=name, data=data) for event, data in events]
        footer = [Footer(ts=at, run_id=name, complete=True, attempts=len(lines))] if complete else []
        path = self.folder / f"{name}-{fields.get('shard') or 0}.jsonl"
        path.write_bytes(b"".join(map(encode, [Header(**fields), *lines, *told, *footer])))
        return path

    def judge(self, rules: Rules | GateRules, **asked: Any) -> GateResult:
        """Return the gate's answer about the newest run, twelve hours into the day of the records."""
        from pytest_captcha_qa.reporting.dataset import open_dataset
        from pytest_captcha_qa.reporting.gate.judging import judge_gate

        whole = rules if isinstance(rules, GateRules) else GateRules(all=rules)
        question = replace(Asked(env="staging", now=NOW), **asked)
        with closing(open_dataset([self.folder])) as dataset:
            return judge_gate(dataset, whole, question)


@pytest.fixture
def records(tmp_path: Path, attempt: Callable[..., AttemptLine]) -> Records:
    folder = tmp_path / "records"
    folder.mkdir()
    return Records(folder, attempt)
