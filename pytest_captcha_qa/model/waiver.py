"""A failure that a team has accepted for some days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

MOST_DAYS = 14


@dataclass(frozen=True, slots=True)
class Waiver:
    """What is waived, the last day (UTC) on which it is, and why.

    It is the form's failures; with a `probe` what that probe finds at the form; with a `rule` what that rule of the
    gate says of the form, or of anything where `form` is empty.
    """

    form: str
    until: date
    reason: str
    ticket: str | None = None
    probe: str | None = None
    rule: str | None = None

    def expired(self, day: date) -> bool:
        """Return whether its last day lies before that day."""
        return day > self.until

    def __str__(self) -> str:
        """The form, the probe or rule, the ticket and the reason."""
        ticket = f" ({self.ticket})" if self.ticket else ""
        what = " ".join(filter(None, (self.form, self.probe, self.rule)))
        return f"{what}{ticket}: {self.reason}"
