"""A vendor whose answer about each token a probe can say beforehand: the stand-in, as the probes see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.scope import ScopeGrant


class Vendor(Protocol):
    """What probes ask of a stand-in (docs/sandbox.md, "Scripted answers")."""

    def issue(self, challenge: Challenge, grant: ScopeGrant, *, age: float, outcome: Mapping[str, Any]) -> Solution:
        """Return a new token, `age` seconds old, about which the vendor will answer as `outcome` says."""

    def calls(self, after: int) -> list[Mapping[str, Any]]:
        """Return the log of what the backend has asked, after an entry's number."""

    def mark(self, text: str) -> int:
        """Put a mark into the log, and return the number of its entry."""
