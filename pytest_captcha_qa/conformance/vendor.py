"""A vendor whose answer about each token a probe can say beforehand: the stand-in, as the probes see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import Solution


class Vendor(Protocol):
    """What probes ask of a stand-in (docs/sandbox.md, "Scripted answers")."""

    def solution(self, challenge: Challenge, outcome: Mapping[str, Any], *, age: float = 0.0) -> Solution:
        """Return a new token, `age` seconds old, about which the vendor will answer as `outcome` says."""

    def calls(self, after: int = 0, *, own: bool = True) -> list[Mapping[str, Any]]:
        """Return what backends have asked after an entry's number; `own`: about tokens that were made here."""

    def mark(self, text: str) -> int:
        """Put a mark into the log, and return the number of its entry."""
