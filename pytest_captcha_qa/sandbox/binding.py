"""What a sandbox token is bound to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Binding:
    """What a token was issued for, and holds for only."""

    type: str
    sitekey: str
    page: str
    """The address of the page, as the solver was told; empty for a type that is solved without one."""
    action: str = ""
    cdata: str = ""
    challenge: str = ""
    answer: str = ""
    """The solution, where the challenge itself decides it."""

    @property
    def hostname(self) -> str:
        """The host of the page, as a vendor reports it."""
        return urlsplit(self.page).hostname or ""
