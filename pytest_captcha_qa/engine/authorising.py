"""Grants for the URLs of one environment: asks scope, with evidence that is fresh."""

from __future__ import annotations

import threading
from collections import defaultdict

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.ports import Clock, EvidenceSource
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied
from pytest_captcha_qa.model.url import Origin, Url

# A refusal is remembered for this long, so that a hundred tests do not fetch a missing proof a hundred times.
_REFUSED_FOR = 30.0


class Grants:
    """Implements GrantSource: one decision per origin, taken again when its evidence is ten minutes old."""

    def __init__(
        self,
        rules: scope.ScopeRules,
        evidence: EvidenceSource,
        clock: Clock,
        emit: events.Emit = events.silent,
    ) -> None:
        self._rules = rules
        self._evidence = evidence
        self._clock = clock
        self._emit = emit
        self._granted: dict[Origin, scope.ScopeGrant] = {}
        self._refused: dict[Origin, tuple[float, CaptchaQAError]] = {}
        self._locks: defaultdict[Origin, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def grant(self, url: Url) -> scope.ScopeGrant:
        """Return a grant that covers the URL.

        Raises:
            ScopeDenied: it is not authorised; nothing was sent to it but the question for its proof.
            AccessNotConfigured: a login stood in place of the proof.
        """
        with self._guard:
            lock = self._locks[url.origin]
        with lock:
            known = self._granted.get(url.origin)
            if known is None or not known.fresh:
                self._raise_known_refusal(url.origin)
                known = self._granted[url.origin] = self._decide(url)
            return known

    def _raise_known_refusal(self, origin: Origin) -> None:
        since, error = self._refused.get(origin, (float("-inf"), None))
        if error is not None and self._clock.monotonic() - since < _REFUSED_FOR:
            raise error.with_traceback(None)

    def _decide(self, url: Url) -> scope.ScopeGrant:
        decision: scope.ScopeGrant | CaptchaQAError
        decision = scope.check(url, self._rules, None, monotonic=self._clock.monotonic, utc=self._clock.utc)
        if isinstance(decision, ScopeDenied) and decision.reason == "proof_missing":
            decision = self._decide_with_proof(url)
        if isinstance(decision, CaptchaQAError):
            self._refused[url.origin] = (self._clock.monotonic(), decision)
            raise decision
        if decision.weak:
            limit = scope.WEAK_DAILY_SOLVES
            self._emit(events.Event(events.WEAK_EVIDENCE, {"origin": str(url.origin), "most_solves_a_day": limit}))
        return decision

    def _decide_with_proof(self, url: Url) -> scope.ScopeGrant | CaptchaQAError:
        try:
            proof = self._evidence.evidence(url.origin)
        except CaptchaQAError as refusal:
            return refusal
        return scope.check(url, self._rules, proof, monotonic=self._clock.monotonic, utc=self._clock.utc)
