from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.errors import AccessNotConfigured, CaptchaQAError, ScopeDenied
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeRules, TokenSource
from pytest_captcha_qa.testing import ManualClock

SHOP, PLAIN, LOCAL = "https://shop.example", "http://shop.example", "http://127.0.0.1:8000"


class Proofs:
    """Serves a proof for each origin, or an error; counts how often it is asked."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked: list[Origin] = []
        self.error: CaptchaQAError | None = None

    def evidence(self, origin: Origin) -> Evidence:
        self.asked.append(origin)
        if self.error is not None:
            raise self.error
        return Evidence(
            fetched_from=origin,
            fetched_at=self.clock.monotonic(),
            origins=(OriginPattern(origin),),
            kind=EnvKind.STAGING,
            expires_at=self.clock.utc() + 86400,
        )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def proofs(clock: ManualClock) -> Proofs:
    return Proofs(clock)


@pytest.fixture
def told() -> list[events.Event]:
    return []


@pytest.fixture
def grants(clock: ManualClock, proofs: Proofs, told: list[events.Event]) -> Grants:
    return Grants(_rules(TokenSource.LIVE), proofs, clock, told.append)


def _rules(source: TokenSource) -> ScopeRules:
    listed = tuple(OriginPattern.parse(origin) for origin in (SHOP, PLAIN, LOCAL))
    return ScopeRules("staging", EnvKind.STAGING, listed, source)


def test_one_proof_serves_all_pages_of_an_origin(grants: Grants, proofs: Proofs) -> None:
    first = grants.grant(Url.parse(f"{SHOP}/signup"))

    assert grants.grant(Url.parse(f"{SHOP}/login?next=1")) is first
    assert list(map(str, proofs.asked)) == [SHOP]


def test_each_origin_has_its_own_proof_fetched(grants: Grants, proofs: Proofs) -> None:
    for base in (SHOP, PLAIN):
        assert str(grants.grant(Url.parse(f"{base}/signup")).origin) == base

    assert list(map(str, proofs.asked)) == [SHOP, PLAIN]


def test_the_proof_is_fetched_again_after_ten_minutes(grants: Grants, proofs: Proofs, clock: ManualClock) -> None:
    url = Url.parse(f"{SHOP}/signup")
    first = grants.grant(url)
    clock.advance(scope.FRESH_FOR - 1)
    assert grants.grant(url) is first

    clock.advance(1)

    assert grants.grant(url) is not first
    assert len(proofs.asked) == 2


def test_a_proof_that_is_gone_after_ten_minutes_ends_the_grant(
    grants: Grants, proofs: Proofs, clock: ManualClock
) -> None:
    url = Url.parse(f"{SHOP}/signup")
    grants.grant(url)
    clock.advance(scope.FRESH_FOR)
    proofs.error = ScopeDenied("no proof", reason="proof_missing")

    with pytest.raises(ScopeDenied, match="no proof"):
        grants.grant(url)


def test_an_origin_that_is_not_listed_is_asked_for_nothing(grants: Grants, proofs: Proofs) -> None:
    with pytest.raises(ScopeDenied) as denied:
        grants.grant(Url.parse("https://elsewhere.example/signup"))

    assert denied.value.reason == "origin_not_listed"
    assert proofs.asked == []


@pytest.mark.parametrize("error", [ScopeDenied("none", reason="proof_missing"), AccessNotConfigured("a login page")])
def test_a_refusal_is_remembered_for_half_a_minute(
    grants: Grants, proofs: Proofs, clock: ManualClock, error: CaptchaQAError
) -> None:
    proofs.error = error
    for _ in range(3):
        with pytest.raises(type(error)):
            grants.grant(Url.parse(f"{SHOP}/signup"))
    assert len(proofs.asked) == 1

    clock.advance(30)
    proofs.error = None

    assert grants.grant(Url.parse(f"{SHOP}/signup")).fresh


def test_loopback_with_the_sandbox_needs_no_proof(clock: ManualClock, proofs: Proofs) -> None:
    grants = Grants(_rules(TokenSource.SANDBOX), proofs, clock)

    assert grants.grant(Url.parse(f"{LOCAL}/signup")).loopback
    assert proofs.asked == []


def test_loopback_with_a_real_provider_needs_a_proof(grants: Grants, proofs: Proofs) -> None:
    assert grants.grant(Url.parse(f"{LOCAL}/signup")).loopback
    assert list(map(str, proofs.asked)) == [LOCAL]


def test_weak_evidence_is_told_with_its_limit(grants: Grants, told: list[events.Event]) -> None:
    grants.grant(Url.parse(f"{SHOP}/signup"))
    assert told == []

    grants.grant(Url.parse(f"{PLAIN}/signup"))

    assert [(event.name, dict(event.data)) for event in told] == [
        (events.WEAK_EVIDENCE, {"origin": PLAIN, "most_solves_a_day": scope.WEAK_DAILY_SOLVES})
    ]


def test_threads_that_ask_at_once_cause_one_fetch(grants: Grants, proofs: Proofs) -> None:
    together = threading.Barrier(4)
    url = Url.parse(f"{SHOP}/signup")

    def ask() -> scope.ScopeGrant:
        together.wait(10)
        return grants.grant(url)

    with ThreadPoolExecutor(4) as pool:
        answers = {id(future.result()) for future in [pool.submit(ask) for _ in range(4)]}

    assert (len(answers), len(proofs.asked)) == (1, 1)
