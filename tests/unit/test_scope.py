import copy
import dataclasses
import itertools
import multiprocessing
import os
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler

import pytest

from pytest_captcha_qa import scope
from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused
from pytest_captcha_qa.scope import Evidence, OriginPattern, Probes, ScopeGrant, ScopeRules, TokenSource

SHOP = Origin.parse("https://staging.shop.example")
PREVIEW = Origin.parse("https://pr-7.preview.shop.example")
PLAIN = Origin.parse("http://staging.shop.example")
LOOPBACK = Origin.parse("http://127.0.0.1:8000")
NOW = 1_800_000_000.0  # seconds since the epoch
UPTIME = 5_000.0  # seconds on the monotonic clock
DAY = 86400.0


def patterns(*texts: str) -> tuple[OriginPattern, ...]:
    return tuple(OriginPattern.parse(text) for text in texts)


RULES = ScopeRules(
    env="staging",
    kind=EnvKind.STAGING,
    origins=patterns("https://staging.shop.example", "https://*.preview.shop.example"),
    source=TokenSource.LIVE,
)
PROOF = Evidence(
    fetched_from=SHOP,
    fetched_at=UPTIME,
    origins=patterns("https://staging.shop.example", "https://*.preview.shop.example"),
    kind=EnvKind.STAGING,
    expires_at=NOW + 30 * DAY,
    probes=Probes.SAFE,
    sitekeys=frozenset({"6Lc"}),
    max_solves_per_hour=60,
)
PRODUCTION = dataclasses.replace(RULES, kind=EnvKind.PRODUCTION, allow_production=frozenset({SHOP.host}), budgeted=True)
PRODUCTION_STANDIN = dataclasses.replace(PRODUCTION, source=TokenSource.STANDIN)


def decide(
    target: str | Url, rules: ScopeRules = RULES, evidence: Evidence | None = PROOF, *, later: float = 0.0
) -> ScopeGrant | ScopeDenied:
    return scope.check(target, rules, evidence, monotonic=lambda: UPTIME + later, utc=lambda: NOW + later)


def granted(target: str, rules: ScopeRules = RULES, evidence: Evidence | None = PROOF) -> ScopeGrant:
    decision = decide(target, rules, evidence)
    assert isinstance(decision, ScopeGrant), decision
    return decision


def refused(decision: ScopeGrant | ScopeDenied) -> str:
    assert isinstance(decision, ScopeDenied), decision
    return decision.reason


def proof(**changes: object) -> Evidence:
    return dataclasses.replace(PROOF, **changes)  # type: ignore[arg-type]


def rules(base: ScopeRules = RULES, **changes: object) -> ScopeRules:
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def test_a_configured_and_proven_origin_is_granted_with_what_its_proof_allows() -> None:
    grant = granted("https://staging.shop.example/signup?x=1")
    assert (grant.env, grant.kind, grant.origin) == ("staging", EnvKind.STAGING, SHOP)
    assert (grant.source, grant.loopback, grant.weak, grant.fake) == (TokenSource.LIVE, False, False, False)
    assert (grant.probes, grant.sitekeys, grant.max_solves_per_hour) == (Probes.SAFE, frozenset({"6Lc"}), 60)


@pytest.mark.parametrize(
    ("reason", "target", "with_rules", "evidence"),
    [
        ("url_refused", "https://staging.shop.example\\@evil.example", RULES, PROOF),
        ("origin_not_listed", "https://evil.example/", RULES, PROOF),
        ("origin_not_listed", "http://staging.shop.example/", RULES, PROOF),
        ("origin_not_listed", "https://staging.shop.example:8443/", RULES, PROOF),
        ("origin_not_listed", "https://shop.example/", RULES, PROOF),
        ("origin_not_listed", "https://staging.shop.example/", rules(origins=()), PROOF),
        ("proof_missing", "https://staging.shop.example/", RULES, None),
        ("proof_missing", "https://pr-7.preview.shop.example/", RULES, PROOF),
        ("proof_stale", "https://staging.shop.example/", RULES, proof(fetched_at=UPTIME - 600)),
        ("proof_stale", "https://staging.shop.example/", RULES, proof(fetched_at=UPTIME + 1)),
        ("proof_other_origin", "https://staging.shop.example/", RULES, proof(origins=())),
        (
            "proof_other_origin",
            "https://staging.shop.example/",
            RULES,
            proof(origins=patterns("https://*.preview.shop.example", "http://staging.shop.example")),
        ),
        ("proof_expired", "https://staging.shop.example/", RULES, proof(expires_at=NOW)),
        ("proof_too_long", "https://staging.shop.example/", RULES, proof(expires_at=NOW + 180 * DAY + 1)),
        ("proof_other_kind", "https://staging.shop.example/", RULES, proof(kind=EnvKind.PRODUCTION)),
        ("proof_other_kind", "https://staging.shop.example/", RULES, proof(kind=EnvKind.QA)),
        ("proof_other_kind", "https://staging.shop.example/", PRODUCTION, PROOF),
        ("production_source", "https://staging.shop.example/", PRODUCTION_STANDIN, PROOF),
        (
            "production_not_allowed",
            "https://staging.shop.example/",
            rules(PRODUCTION, allow_production=frozenset({"shop.example"})),
            proof(kind=EnvKind.PRODUCTION),
        ),
        (
            "production_budget",
            "https://staging.shop.example/",
            rules(PRODUCTION, budgeted=False),
            proof(kind=EnvKind.PRODUCTION),
        ),
        ("proof_missing", "https://staging.shop.example/", PRODUCTION, None),
    ],
)  # fmt: skip
def test_every_refusal_has_its_own_reason_and_exit_code(
    reason: str, target: str, with_rules: ScopeRules, evidence: Evidence | None
) -> None:
    decision = decide(target, with_rules, evidence)
    assert refused(decision) == reason
    assert isinstance(decision, ScopeDenied)
    assert (decision.exit_code, decision.fault) == (15, "scope")


def test_a_proof_of_exactly_180_days_is_taken() -> None:
    assert granted("https://staging.shop.example/", evidence=proof(expires_at=NOW + 180 * DAY))


def test_production_is_granted_with_host_budget_and_a_proof_for_production() -> None:
    grant = granted("https://staging.shop.example/", PRODUCTION, proof(kind=EnvKind.PRODUCTION))
    assert grant.kind is EnvKind.PRODUCTION


@pytest.mark.parametrize(
    ("source", "kind"), list(itertools.product(TokenSource, EnvKind)), ids=lambda value: str(value.value)
)
def test_loopback_goes_without_proof_only_with_sandbox_or_test_keys_and_never_as_production(
    source: TokenSource, kind: EnvKind
) -> None:
    local = ScopeRules("local", kind, patterns("http://127.0.0.1:8000"), source, frozenset({"127.0.0.1"}), True)
    harmless = source in (TokenSource.SANDBOX, TokenSource.TESTKEYS)
    decision = decide("http://127.0.0.1:8000/", local, None)
    if kind is EnvKind.PRODUCTION:
        assert refused(decision) == ("proof_missing" if source is TokenSource.LIVE else "production_source")
    elif harmless:
        assert isinstance(decision, ScopeGrant)
        assert (decision.loopback, decision.probes, decision.weak) == (True, Probes.ALL, False)
    else:
        assert refused(decision) == "proof_missing"


@pytest.mark.parametrize("source", TokenSource)
def test_production_needs_a_proof_on_loopback_too(source: TokenSource) -> None:
    assert rules(PRODUCTION, source=source).needs_proof(LOOPBACK)


@pytest.mark.parametrize("source", [source for source in TokenSource if source is not TokenSource.SANDBOX])
def test_what_is_not_loopback_needs_a_proof_whatever_the_tokens_are(source: TokenSource) -> None:
    assert refused(decide("https://staging.shop.example/", rules(source=source), None)) == "proof_missing"


def test_tokens_of_the_sandbox_never_leave_loopback_not_even_with_a_proof() -> None:
    sandbox = rules(source=TokenSource.SANDBOX)
    assert refused(decide("https://staging.shop.example/", sandbox)) == "sandbox_not_loopback"


@pytest.mark.parametrize(
    "host",
    [
        "localhost.example",
        "127.0.0.1.nip.io",
        "lvh.me",
        "localtest.me",
        "ip6-localhost",
        "a.localhost",
        "0.0.0.0",
    ],
)
def test_a_name_that_may_resolve_to_loopback_needs_a_proof(host: str) -> None:
    named = rules(origins=patterns(f"http://{host}:8000"), source=TokenSource.TESTKEYS)
    assert refused(decide(f"http://{host}:8000/", named, None)) == "proof_missing"
    sandbox = rules(named, source=TokenSource.SANDBOX)
    assert refused(decide(f"http://{host}:8000/", sandbox, None)) == "sandbox_not_loopback"


@pytest.mark.parametrize("target", ["http://LOCALHOST:8000/", "http://localhost.:8000/", "http://127.1:8000/"])
def test_another_spelling_of_loopback_is_refused_as_a_url(target: str) -> None:
    local = rules(origins=patterns("http://localhost:8000", "http://127.0.0.1:8000"), source=TokenSource.SANDBOX)
    assert refused(decide(target, local, None)) == "url_refused"


def test_a_real_provider_on_loopback_is_granted_by_a_proof_that_lists_loopback() -> None:
    local = rules(origins=patterns("http://127.0.0.1:8000"))
    evidence = proof(fetched_from=LOOPBACK, origins=patterns("http://127.0.0.1:8000"))
    grant = granted("http://127.0.0.1:8000/", local, evidence)
    assert (grant.loopback, grant.weak) == (True, True)


def test_evidence_is_not_used_where_none_is_needed() -> None:
    local = rules(origins=patterns("http://127.0.0.1:8000"), source=TokenSource.SANDBOX)
    evidence = proof(fetched_from=LOOPBACK, origins=patterns("http://127.0.0.1:8000"))
    grant = granted("http://127.0.0.1:8000/", local, evidence)
    assert (grant.sitekeys, grant.max_solves_per_hour) == (frozenset(), None)


@pytest.mark.parametrize(
    ("configured", "proven"),
    [
        (("https://staging.shop.example",), ("https://staging.shop.example", "https://*.shop.example")),
        (("https://staging.shop.example", "https://*.shop.example"), ("https://staging.shop.example",)),
        (("https://*.shop.example",), ("https://staging.shop.example",)),
        (("https://staging.shop.example",), ("https://*.shop.example",)),
    ],
)
def test_configuration_and_proof_narrow_each_other(configured: tuple[str, ...], proven: tuple[str, ...]) -> None:
    narrowed = rules(origins=patterns(*configured))
    for name in ("staging", "other"):
        origin = Origin.parse(f"https://{name}.shop.example")
        decision = decide(f"{origin}/", narrowed, proof(fetched_from=origin, origins=patterns(*proven)))
        assert isinstance(decision, ScopeGrant) == (name == "staging")


@pytest.mark.parametrize(
    ("origin", "source", "private_ca", "weak"),
    [
        (SHOP, TokenSource.LIVE, False, False),
        (SHOP, TokenSource.LIVE, True, True),
        (PLAIN, TokenSource.LIVE, False, True),
        (PLAIN, TokenSource.STANDIN, False, False),
        (SHOP, TokenSource.TESTKEYS, True, False),
    ],
)
def test_evidence_over_plain_http_or_a_private_authority_is_weak_for_real_solves(
    origin: Origin, source: TokenSource, private_ca: bool, weak: bool
) -> None:
    changed = rules(origins=patterns(str(origin)), source=source, private_ca=private_ca)
    grant = granted(f"{origin}/", changed, proof(fetched_from=origin, origins=patterns(str(origin))))
    assert grant.weak is weak


def clocked(evidence: Evidence) -> tuple[ScopeGrant, Callable[[float], None]]:
    clock = [UPTIME]
    decision = scope.check(
        "https://staging.shop.example/", RULES, evidence, monotonic=lambda: clock[0], utc=lambda: NOW
    )
    assert isinstance(decision, ScopeGrant)
    return decision, lambda seconds: clock.__setitem__(0, UPTIME + seconds)


def test_a_grant_is_fresh_for_ten_minutes_after_its_proof_was_fetched() -> None:
    grant, advance = clocked(proof(fetched_at=UPTIME - 400))
    advance(199.9)
    assert grant.covers(Url.parse("https://staging.shop.example/any?thing"))
    advance(200)
    assert not grant.fresh
    assert not grant.covers(Url.parse("https://staging.shop.example/any"))


def test_a_grant_ends_when_its_proof_expires() -> None:
    grant, advance = clocked(proof(expires_at=NOW + 30))
    advance(29.9)
    assert grant.fresh
    advance(30)
    assert not grant.fresh


@pytest.mark.parametrize(
    ("pattern", "origin", "matches"),
    [
        ("https://*.shop.example", "https://a.shop.example", True),
        ("https://*.shop.example", "https://shop.example", False),
        ("https://*.shop.example", "https://a.b.shop.example", False),
        ("https://*.shop.example", "https://ashop.example", False),
        ("https://*.shop.example", "http://a.shop.example", False),
        ("https://*.shop.example", "https://a.shop.example:8443", False),
        ("https://*.shop.example:8443", "https://a.shop.example:8443", True),
        ("https://*.shop.example", "https://a.shop.example.evil.example", False),
        ("https://shop.example", "https://shop.example", True),
        ("https://shop.example", "https://a.shop.example", False),
        ("http://[::1]:8000", "http://[::1]:8000", True),
        ("https://*.dev2.k8s", "https://a.dev2.k8s", True),
    ],
)
def test_a_star_stands_for_exactly_one_leftmost_label(pattern: str, origin: str, matches: bool) -> None:
    parsed = OriginPattern.parse(pattern)
    assert parsed.matches(Origin.parse(origin)) is matches
    assert str(parsed) == pattern


@pytest.mark.parametrize(
    "text",
    ["*", "https://*", "https://*.", "https://*.example", "https://*.localhost", "https://*.*.shop.example",
     "https://a.*.shop.example", "https://a*.shop.example", "https://*shop.example", "https://**.shop.example",
     "http://*.0.0.1", "http://*.127.0.0.1", "http://*.[::1]", "*://a.shop.example", "https://*.shop.example/a",
     "https://*.shop.example:443", "https://*.Shop.example", "https://*.a.example://*.b.example",
     "https://user@*.shop.example", "https://shop.example/a", "", "null"],
)  # fmt: skip
def test_any_other_star_or_spelling_is_no_pattern(text: str) -> None:
    with pytest.raises(UrlRefused):
        OriginPattern.parse(text)


@pytest.mark.parametrize(
    ("target", "secret"),
    [
        ("https://user:hunter2@staging.shop.example/", "hunter2"),
        ("https://user:hun?ter2@staging.shop.example/", "hun"),
        ("https://user:hun/ter2@staging.shop.example/", "hun"),
        ("https:/user:hunter2@staging.shop.example/", "hunter2"),
        ("user:hunter2@staging.shop.example", "hunter2"),
        ("HTTPS://staging.shop.example/?token=hunter2", "hunter2"),
        ("https://evil.example/?token=hunter2", "hunter2"),
        ("HTTPS://staging.shop.example/#hunter2", "hunter2"),
        ("https://staging.shop.example/\x1b[31m", "\x1b"),
        ("https://staging.shop.example/\n", "\n"),
    ],
)
def test_a_refusal_shows_no_user_info_query_or_control_character(target: str, secret: str) -> None:
    decision = decide(target)
    assert isinstance(decision, ScopeDenied)
    assert secret not in decision.message


def test_a_refusal_of_a_very_long_target_is_short() -> None:
    decision = decide("https://STAGING.shop.example/" + "a" * 100_000)
    assert isinstance(decision, ScopeDenied)
    assert len(decision.message) < 400


@pytest.mark.parametrize(
    "attempt",
    [
        lambda grant: pickle.dumps(grant),
        lambda grant: pickle.dumps([grant], protocol=0),
        lambda grant: pickle.dumps({"grant": grant}, protocol=5),
        lambda grant: ForkingPickler.dumps(grant),
        lambda grant: copy.copy(grant),
        lambda grant: copy.deepcopy(grant),
        lambda grant: copy.deepcopy({"kwargs": [grant]}),
        lambda grant: ScopeGrant(object()),
        lambda grant: ScopeGrant(object(), origin=SHOP, fake=False),
        lambda grant: type(grant)(None),
        lambda grant: type("Wider", (ScopeGrant,), {}),
        lambda grant: dataclasses.replace(grant, origin=PLAIN),
        lambda grant: setattr(grant, "origin", PLAIN),
        lambda grant: setattr(grant, "fake", False),
        lambda grant: setattr(grant, "_until", float("inf")),
        lambda grant: setattr(grant, "anything", 1),
        lambda grant: delattr(grant, "fake"),
        lambda grant: setattr(grant, "__class__", object),
    ],
)
def test_a_grant_cannot_be_pickled_copied_made_subclassed_or_changed(
    attempt: Callable[[ScopeGrant], object],
) -> None:
    grant = granted("https://staging.shop.example/")
    with pytest.raises((TypeError, AttributeError)):
        attempt(grant)
    assert grant.origin == SHOP


def test_a_grant_cannot_be_sent_to_another_process() -> None:
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs, pytest.raises(TypeError, match="another process"):
        ours.send(granted("https://staging.shop.example/"))


def test_a_grant_that_a_forked_process_inherits_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    grant = granted("https://staging.shop.example/")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not grant.fresh
    with pytest.raises(ScopeDenied, match="another process"):
        scope.ensure(grant, Url.parse("https://staging.shop.example/"))


def test_a_grant_shows_its_environment_and_origin_only() -> None:
    assert repr(granted("https://staging.shop.example/x")) == "<ScopeGrant staging: https://staging.shop.example>"


def test_ensure_is_quiet_where_the_grant_covers_the_url() -> None:
    grant = granted("https://staging.shop.example/")
    scope.ensure(grant, Url.parse("https://staging.shop.example/other?x=1"))


@pytest.mark.parametrize(
    "url",
    [
        "https://pr-7.preview.shop.example/",
        "https://evil.example/",
        "http://staging.shop.example/",
        "https://staging.shop.example:8443/",
    ],
)
def test_ensure_refuses_every_other_origin(url: str) -> None:
    with pytest.raises(ScopeDenied) as error:
        scope.ensure(granted("https://staging.shop.example/"), Url.parse(url))
    assert error.value.reason == "grant_mismatch"


def test_ensure_refuses_a_grant_that_is_too_old() -> None:
    grant, advance = clocked(PROOF)
    advance(600)
    with pytest.raises(ScopeDenied) as error:
        scope.ensure(grant, Url.parse("https://staging.shop.example/"))
    assert error.value.reason == "grant_mismatch"


class Lookalike:
    origin = SHOP
    fake = False
    fresh = True

    def covers(self, url: Url) -> bool:
        return True


@pytest.mark.parametrize("thing", [None, True, "grant", Lookalike(), SHOP, ScopeGrant])
def test_ensure_refuses_what_is_no_grant(thing: object) -> None:
    with pytest.raises(ScopeDenied) as error:
        scope.ensure(thing, Url.parse("https://staging.shop.example/"))  # type: ignore[arg-type]
    assert error.value.reason == "no_grant"


def test_ensure_refuses_an_empty_shell_of_a_grant() -> None:
    with pytest.raises(ScopeDenied) as error:
        scope.ensure(ScopeGrant.__new__(ScopeGrant), Url.parse("https://staging.shop.example/"))
    assert error.value.reason == "no_grant"


def test_a_fake_grant_covers_its_origin_and_opens_nothing_real() -> None:
    fake = scope.fake_grant(LOOPBACK)
    url = Url.parse("http://127.0.0.1:8000/signup")
    assert fake.fake
    assert fake.covers(url)
    with pytest.raises(ScopeDenied) as error:
        scope.ensure(fake, url)
    assert error.value.reason == "fake_grant"


def test_an_unlisted_origin_is_told_before_anything_is_fetched() -> None:
    assert scope.unlisted(SHOP, RULES) is None
    assert scope.unlisted(PREVIEW, RULES) is None
    denied = scope.unlisted(PLAIN, RULES)
    assert denied is not None
    assert denied.reason == "origin_not_listed"
    assert "https://*.preview.shop.example" in denied.message
