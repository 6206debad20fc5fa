"""Who may be sent anything: the only place where a grant is made (R0).

A grant is a capability for one concrete origin in one process. Adapters take it as an argument and compare it
with their target again through `ensure`. It cannot be pickled, copied, changed or made elsewhere.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused

FRESH_FOR = 600.0  # seconds; R0.2: the proof is fetched again after ten minutes
MAX_VALIDITY = 180 * 86400.0  # seconds; R0.2
WEAK_DAILY_SOLVES = 200  # R0.4
PROBATION_SOLVES = 3  # R0.5

_SEAL = object()


class TokenSource(StrEnum):
    """Where an account's tokens come from, which decides what they may be sent to."""

    LIVE = "live"
    TESTKEYS = "testkeys"
    SANDBOX = "sandbox"
    STANDIN = "standin"


class Probes(StrEnum):
    """Which conformance probes the owner of an origin agreed to, in rising order."""

    NONE = "none"
    SAFE = "safe"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class OriginPattern:
    """An origin, or all origins whose leftmost label stands for `*`."""

    origin: Origin
    wildcard: bool = False

    @classmethod
    def parse(cls, text: str) -> OriginPattern:
        """Return the pattern written as an origin, with at most one `*` as its whole leftmost label.

        Raises:
            UrlRefused: it is written in another way.
        """
        scheme, separator, host = text.partition("://*.")
        if not separator:
            return cls(Origin.parse(text))
        origin = Origin.parse(f"{scheme}://{host}")
        if "." not in origin.host or origin.is_address:
            raise UrlRefused("a * stands for the leftmost label of a name with at least two more labels")
        return cls(origin, wildcard=True)

    def matches(self, origin: Origin) -> bool:
        """Return whether the concrete origin is meant."""
        if not self.wildcard:
            return origin == self.origin
        parent = origin.host.partition(".")[2]
        return (origin.scheme, parent, origin.port) == (
            self.origin.scheme,
            self.origin.host,
            self.origin.port,
        )

    def __str__(self) -> str:
        return str(self.origin).replace("://", "://*.", 1) if self.wildcard else str(self.origin)


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """What the configuration and the command line say about one environment; it can only narrow the proof.

    `allow_production`: hosts named on the command line; `budgeted`: whether the run has a limit on submits;
    `private_ca`: whether TLS is checked against a private authority.
    """

    env: str
    kind: EnvKind
    origins: tuple[OriginPattern, ...]
    source: TokenSource
    allow_production: frozenset[str] = frozenset()
    budgeted: bool = False
    private_ca: bool = False

    def lists(self, origin: Origin) -> bool:
        """Return whether the configuration names the origin."""
        return any(pattern.matches(origin) for pattern in self.origins)

    def needs_proof(self, origin: Origin) -> bool:
        """Return whether the origin must serve a proof (R0.3): all but loopback without a real provider."""
        harmless = self.source in (TokenSource.SANDBOX, TokenSource.TESTKEYS)
        return self.kind is EnvKind.PRODUCTION or not (origin.is_loopback and harmless)


@dataclass(frozen=True, slots=True)
class Evidence:
    """An authenticated proof: what the owner of an origin signed, and where and when it was fetched.

    `expires_at`: seconds since the epoch; `fetched_at`: on the monotonic clock.
    """

    fetched_from: Origin
    fetched_at: float
    origins: tuple[OriginPattern, ...]
    kind: EnvKind
    expires_at: float
    probes: Probes = Probes.NONE
    sitekeys: frozenset[str] = frozenset()
    max_solves_per_hour: int | None = None


class ScopeGrant:
    """The right to send requests to one origin until it has to be asked for again.

    `loopback`: the origin is this machine; `weak`: the evidence is, so that real solves are few (R0.4);
    `fake`: made for the test kit; `probes`, `sitekeys` and `max_solves_per_hour` (None: no limit) are what
    the proof allows.
    """

    __slots__ = (
        "_monotonic", "_process", "_until", "env", "fake", "kind", "loopback", "max_solves_per_hour",
        "origin", "probes", "sitekeys", "source", "weak",
    )  # fmt: skip

    env: str
    kind: EnvKind
    origin: Origin
    source: TokenSource
    loopback: bool
    weak: bool
    fake: bool
    probes: Probes
    sitekeys: frozenset[str]
    max_solves_per_hour: int | None
    _monotonic: Callable[[], float]
    _process: int
    _until: float

    def __init__(self, seal: object, **values: object) -> None:
        """Made by this module only."""
        if seal is not _SEAL:
            raise TypeError("a ScopeGrant is made by scope.check() only")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("ScopeGrant cannot be subclassed")

    def covers(self, url: Url) -> bool:
        """Return whether the URL lies on the granted origin and the grant is still fresh."""
        return url.origin == self.origin and self.fresh

    @property
    def fresh(self) -> bool:
        """Whether the evidence is recent; afterwards, and in a forked process, a new grant is needed."""
        return self._process == os.getpid() and self._monotonic() < self._until

    def __repr__(self) -> str:
        return f"<ScopeGrant {self.env}: {self.origin}>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a ScopeGrant cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a ScopeGrant cannot be changed")

    def __copy__(self) -> NoReturn:
        raise TypeError("a ScopeGrant cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a ScopeGrant cannot be copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a ScopeGrant cannot be pickled or sent to another process; each decides for itself")


def check(
    target: str | Url,
    rules: ScopeRules,
    evidence: Evidence | None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    utc: Callable[[], float] = time.time,
) -> ScopeGrant | ScopeDenied:
    """Return a grant for the target's origin, or why there is none.

    `evidence` is the proof fetched from that origin; None where none is needed or none was found.
    """
    try:
        url = target if isinstance(target, Url) else Url.parse(target)
    except UrlRefused as refused:
        return ScopeDenied(f"the target {_shown(target)} is refused: {refused}", reason="url_refused")
    origin, used = url.origin, evidence if rules.needs_proof(url.origin) else None
    denied = unlisted(origin, rules) or _sandboxed(origin, rules) or _production(origin, rules)
    if denied is None and rules.needs_proof(origin):
        denied = _proven(origin, rules, used, monotonic(), utc())
    if denied is not None:
        return denied
    valid_for = used.expires_at - utc() if used else FRESH_FOR
    return _grant(origin, rules, used, monotonic=monotonic, valid_for=valid_for)


def unlisted(origin: Origin, rules: ScopeRules) -> ScopeDenied | None:
    """Return why not even a proof is fetched from the origin: the configuration does not name it."""
    if rules.lists(origin):
        return None
    known = ", ".join(map(str, rules.origins)) or "none"
    return ScopeDenied(
        f"{origin} is not among the origins of environment {rules.env!r} ({known}); add it there if it is yours",
        reason="origin_not_listed",
    )


def ensure(grant: ScopeGrant, url: Url) -> None:
    """Return quietly if a real grant covers the URL; called by every adapter before it sends.

    Raises:
        ScopeDenied: it does not, it is a fake of the test kit, or it is no grant at all.
    """
    if type(grant) is not ScopeGrant or not hasattr(grant, "origin"):
        raise ScopeDenied(f"no grant was given for {url.without_query}", reason="no_grant")
    if grant.fake:
        raise ScopeDenied(f"a grant of the test kit opens nothing real ({url.without_query})", reason="fake_grant")
    if not grant.covers(url):
        raise ScopeDenied(
            f"{url.without_query} is not covered by the grant for {grant.origin}, "
            "or that grant is too old or from another process",
            reason="grant_mismatch",
        )


def fake_grant(
    origin: Origin, *, env: str = "test", probes: Probes = Probes.NONE, kind: EnvKind = EnvKind.DEMO
) -> ScopeGrant:
    """Return a grant marked as fake for the scripted adapters of `testing`; real adapters refuse it."""
    return ScopeGrant(
        _SEAL,
        env=env,
        kind=kind,
        origin=origin,
        source=TokenSource.SANDBOX,
        loopback=origin.is_loopback,
        weak=False,
        fake=True,
        probes=probes,
        sitekeys=frozenset(),
        max_solves_per_hour=None,
        _monotonic=time.monotonic,
        _process=os.getpid(),
        _until=float("inf"),
    )


def _grant(
    origin: Origin,
    rules: ScopeRules,
    evidence: Evidence | None,
    *,
    monotonic: Callable[[], float],
    valid_for: float,
) -> ScopeGrant:
    now = monotonic()
    fresh_until = (evidence.fetched_at if evidence else now) + FRESH_FOR
    return ScopeGrant(
        _SEAL,
        env=rules.env,
        kind=rules.kind,
        origin=origin,
        source=rules.source,
        loopback=origin.is_loopback,
        weak=rules.source is TokenSource.LIVE and (origin.is_plain or rules.private_ca),
        fake=False,
        probes=evidence.probes if evidence else Probes.ALL,
        sitekeys=evidence.sitekeys if evidence else frozenset(),
        max_solves_per_hour=evidence.max_solves_per_hour if evidence else None,
        _monotonic=monotonic,
        _process=os.getpid(),
        _until=min(fresh_until, now + valid_for),
    )


def _sandboxed(origin: Origin, rules: ScopeRules) -> ScopeDenied | None:
    if rules.source is not TokenSource.SANDBOX or origin.is_loopback:
        return None
    return ScopeDenied(
        f"{origin} is not on this machine: tokens of the sandbox are sent to loopback addresses only; choose "
        "an account with a real provider for it, or serve the site at 127.0.0.1",
        reason="sandbox_not_loopback",
    )


def _production(origin: Origin, rules: ScopeRules) -> ScopeDenied | None:
    if rules.kind is not EnvKind.PRODUCTION:
        return None
    if rules.source is not TokenSource.LIVE:
        return ScopeDenied(
            f"{origin} is production: {rules.source} tokens are never sent there", reason="production_source"
        )
    if origin.host not in rules.allow_production:
        return ScopeDenied(
            f"{origin} is production: pass --captcha-allow-production {origin.host} on the command line",
            reason="production_not_allowed",
        )
    if not rules.budgeted:
        return ScopeDenied(
            f"{origin} is production: set the most submits of this run with --captcha-budget N",
            reason="production_budget",
        )
    return None


def _proven(
    origin: Origin, rules: ScopeRules, evidence: Evidence | None, monotonic: float, utc: float
) -> ScopeDenied | None:
    if evidence is None or evidence.fetched_from != origin:
        return ScopeDenied(
            f"{origin} serves no ownership proof; make one with `captcha-qa authorise {rules.env}`",
            reason="proof_missing",
        )
    if not 0 <= monotonic - evidence.fetched_at < FRESH_FOR:
        return ScopeDenied(f"the proof of {origin} is older than ten minutes", reason="proof_stale")
    if not any(pattern.matches(origin) for pattern in evidence.origins):
        return ScopeDenied(
            f"the proof that {origin} serves does not list it; it is for {', '.join(map(str, evidence.origins))}",
            reason="proof_other_origin",
        )
    return _proof_terms(origin, rules, evidence, utc)


def _proof_terms(origin: Origin, rules: ScopeRules, evidence: Evidence, utc: float) -> ScopeDenied | None:
    renew = f"make a new one with `captcha-qa authorise {rules.env}`"
    if evidence.expires_at <= utc:
        return ScopeDenied(f"the proof of {origin} has expired; {renew}", reason="proof_expired")
    if evidence.expires_at - utc > MAX_VALIDITY:
        return ScopeDenied(f"the proof of {origin} is valid for more than 180 days; {renew}", reason="proof_too_long")
    if evidence.kind is not rules.kind:
        return ScopeDenied(
            f"the proof of {origin} is for kind {evidence.kind}, environment {rules.env!r} is {rules.kind}; {renew}",
            reason="proof_other_kind",
        )
    return None


def _shown(target: str | Url) -> str:
    """Return a target as it may be printed: no query, no fragment, nothing where there may be user info."""
    if isinstance(target, Url):
        return target.without_query
    if "@" in str(target):
        return "(not shown, it holds an @)"
    return ascii(re.split(r"[?#]", str(target))[0])[:200]
