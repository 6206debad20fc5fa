"""What unit tests of several rooms share: benches with a manual clock, grants of a real account, attempt lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import Bench, ManualClock

SHOP = "https://shop.example"
TS = "2026-11-29T11:18:03.120Z"


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
