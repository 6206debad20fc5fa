"""A failure that a team has accepted for some days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

MOST_DAYS = 14


@dataclass(frozen=True, slots=True)
class Waiver:
    """What is waived, the last day (UTC) on which it is, and why.

    Without a `probe` it is the form's failures, with one what that probe finds at the form.
    """

    form: str
    until: date
    reason: str
    ticket: str | None = None
    probe: str | None = None

    def expired(self, day: date) -> bool:
        """Return whether its last day lies before that day."""
        return day > self.until

    def __str__(self) -> str:
        """The form, the probe, the ticket and the reason."""
        ticket = f" ({self.ticket})" if self.ticket else ""
        probe = f" {self.probe}" if self.probe else ""
        return f"{self.form}{probe}{ticket}: {self.reason}"
