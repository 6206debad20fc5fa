"""What a team says of the probes of a form, what a probe comes to, and how bad that is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LONGEST_WAIT = 60.0
"""Seconds of a `Retry-After` that probes wait at most."""


class Severity(StrEnum):
    """How bad an unsafe answer is, the worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def reaches(self, least: Severity) -> bool:
        """Return whether it is at least as bad as another."""
        order = list(Severity)
        return order.index(self) <= order.index(least)


class ProbeVerdict(StrEnum):
    """What one probe says of one form."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    CRASH = "crash"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not applicable"


class Fault(StrEnum):
    """Faults of a vendor at which a team may choose to let visitors pass; what a caller can provoke is none."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER_ERROR = "server_error"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ProbePolicy:
    """What the team has decided for a form, so that a probe does not call it a mistake.

    `grace`: after a success the same session needs no new token for a while; `siblings`: other addresses that do the
    same thing and must refuse the same, `flow`: those of other steps, such as sending again; `sitekey_group`: forms
    with the same one take each other's tokens; `payment_test_mode`: the shop's payments are the vendor's test mode;
    `open_for`: faults of the vendor at which the form lets everybody pass; `own_hostname_check`: the key's domain check
    at the vendor is off, so the backend compares the hostname; `risk_score`: it judges hCaptcha Enterprise's score;
    `least_score`: the score from which it lets pass, which is not what a provider is asked for.
    """

    grace: bool = False
    siblings: tuple[str, ...] = ()
    flow: tuple[str, ...] = ()
    sitekey_group: str | None = None
    payment_test_mode: bool = False
    open_for: tuple[Fault, ...] = ()
    own_hostname_check: bool = False
    risk_score: bool = False
    least_score: float | None = None
