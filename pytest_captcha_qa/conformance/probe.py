"""What one probe is: its facts as data, and the function that provokes the mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_captcha_qa.conformance.judge import Judged, not_applicable
from pytest_captcha_qa.model.probing import Severity

if TYPE_CHECKING:
    from pytest_captcha_qa.conformance.trial import Trial


class Family(StrEnum):
    """Probes that share one positive control and stop together; also the columns of the matrix."""

    TOKEN = "token"  # nothing, or something made up, in the token's place
    REPLAY = "replay"  # a good token where it is not good
    SHAPE = "shape"  # the same submit written in another way
    ROUTE = "route"  # ways around the check
    VENDOR = "vendor"  # what the backend makes of the vendor's answer
    PAGE = "page"  # what the page shows; read only
    LOAD = "load"  # many or large submits; destructive


class Keys(StrEnum):
    """Under which keys a probe means anything (reference/verification.md 2.4)."""

    ANY = "any"
    JUDGED = "judged"  # not where the test secret takes every text (Google)
    REAL_LIFE = "real life"  # not with test keys, whose tokens pass for ever


def _never(trial: Trial) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Probe:
    """One mistake that a backend can make, and how it is provoked.

    `standards`: CWE and OWASP numbers; `safe`: what a sound form does, in words; `keys`: under which it means anything;
    `reads_only`: nothing is sent but GET requests for the page; `accepts`: most ordinary submits that a flawed form
    takes in it; `needs_control`: what is safe is a refusal, which says nothing where good tokens are refused, too;
    `needs_standin`: a vendor must answer as the probe says; `meaningless` says why it means nothing for a form, as
    far as that is known before anything is sent, None where it does;
    `implies`: probes that a form with this flaw fails too; `why_destructive`: empty for a safe one.
    """

    id: str
    family: Family
    title: str
    severity: Severity
    standards: tuple[str, ...]
    provoked: str
    safe: str
    run: Callable[[Trial], Judged]
    keys: Keys = Keys.ANY
    reads_only: bool = False
    accepts: int = 1
    implies: tuple[str, ...] = ()
    needs_control: bool = True
    needs_standin: bool = False
    why_destructive: str = ""
    meaningless: Callable[[Trial], str | None] = _never

    @property
    def destructive(self) -> bool:
        """Whether it runs only when it is asked for and the proof allows it."""
        return bool(self.why_destructive)

    def __repr__(self) -> str:
        return f"<Probe {self.id} {self.title}>"


def around_the_check(run: Callable[[Trial], Judged]) -> Callable[[Trial], Judged]:
    """Return a probe that looks for a way around the check, which says something only where there is a check."""

    def guarded(trial: Trial) -> Judged:
        if trial.takes_bare():
            return not_applicable("the form takes a submit without any token, so there is nothing to get around")
        return run(trial)

    return guarded
