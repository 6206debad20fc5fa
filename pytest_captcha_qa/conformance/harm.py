"""What keeps probes from doing harm: counters that all workers of a run share."""

from __future__ import annotations

from pytest_captcha_qa.engine.store import Limits

MOST_ACCEPTED = 20
"""Most submits of one form and run that probes and their controls may have accepted."""

_RUN = 86400.0  # seconds a counter of a run is kept


class Harm:
    """The shared limits of the probes of one form in one run."""

    def __init__(self, limits: Limits, *, session: str, slug: str) -> None:
        """Keep where to count; `session` is what the processes of one run have in common."""
        self._limits = limits
        self._name = f"probes:{session}:{slug}"

    def reserve(self, amount: int = 1) -> bool:
        """Take so many of the accepted submits that are left, before they are sent: each may be accepted."""
        return self._limits.add(f"{self._name}:accepted", amount, limit=MOST_ACCEPTED, seconds=_RUN)

    def give_back(self, amount: int = 1) -> None:
        """Give back what was not accepted."""
        self._limits.add(f"{self._name}:accepted", -amount, limit=None, seconds=_RUN)

    @property
    def accepted(self) -> int:
        """How many are taken."""
        return self._limits.count(f"{self._name}:accepted")

    def stop_family(self, family: str, why: str) -> None:
        """Let no process send another probe of this family to the form."""
        self._limits.raise_flag(f"{self._name}:stopped:{family}", why, seconds=_RUN)

    def stopped(self, family: str) -> str | None:
        """Return why no more is sent, None while nothing has happened."""
        return self._limits.flag(f"{self._name}:stopped:{family}")

    def note(self, name: str, value: str) -> None:
        """Remember for all processes of the run what was found out."""
        self._limits.raise_flag(f"{self._name}:noted:{name}", value, seconds=_RUN)

    def noted(self, name: str) -> str | None:
        """Return what was found out, None if nobody has."""
        return self._limits.flag(f"{self._name}:noted:{name}")
