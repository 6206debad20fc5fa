"""What the gate answers: one result a rule and pool, and the exit codes they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pytest_captcha_qa.model.gate import Rule
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.codes import strongest

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.comparison.releases import ReleaseComparison
    from pytest_captcha_qa.reporting.figures import Pool

BREACH = 10
NO_DATA = 11
NO_VERDICT = 12
NO_BASELINE = 16

RECORDS = "records"
RELEASE = "release"
"""Besides the rules, what the gate says of the records as a whole and of the release under test."""

Number = float | int | str | None


class Status(StrEnum):
    """What a rule says."""

    PASSED = "passed"
    BREACHED = "breached"
    WARNING = "warning"
    NOT_ENOUGH_DATA = "not enough data"
    NO_VERDICT = "no verdict"
    NO_BASELINE = "no baseline"
    WAIVED = "waived"


CODES: Mapping[Status, int] = {
    Status.PASSED: 0,
    Status.BREACHED: BREACH,
    Status.WARNING: 0,
    Status.NOT_ENOUGH_DATA: NO_DATA,
    Status.NO_VERDICT: NO_VERDICT,
    Status.NO_BASELINE: NO_BASELINE,
    Status.WAIVED: 0,
}


class Place(NamedTuple):
    """A line of the configuration file, relative to where the command runs."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What one rule says of one pool, or of everything where `pool` is None.

    `rule` is a `Rule`, `records` or `release`; `numbers` are those of the sentence; `required`: whether too little data
    is a failure. `forms` are those it is about, `metric` the time it is about. `waiver` is in force or has expired.
    """

    rule: str
    status: Status
    sentence: str
    pool: Pool | None = None
    forms: tuple[str, ...] = ()
    metric: str | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    required: bool = True
    waiver: Waiver | None = None

    @property
    def code(self) -> int:
        """The exit code it stands for, 0 for none."""
        if self.status is Status.NOT_ENOUGH_DATA and not self.required:
            return 0
        return CODES[self.status]

    def under(self, waivers: Sequence[Waiver], day: date) -> RuleResult:
        """Return the result with what the team has waived on that day."""
        waiver = next((one for one in waivers if self._is_meant(one)), None)
        if waiver is None or self.code == 0:
            return self
        if waiver.expired(day):
            said = f"{self.sentence} (its waiver has expired, the last day was {waiver.until})"
            return replace(self, sentence=said, waiver=waiver)
        said = f"{self.sentence} (waived until {waiver.until}: {waiver})"
        return replace(self, status=Status.WAIVED, sentence=said, waiver=waiver)

    def _is_meant(self, waiver: Waiver) -> bool:
        if self.rule not in list(Rule) or waiver.probe is not None or waiver.rule not in (None, self.rule):
            return False
        return waiver.form in self.forms and len(self.forms) == 1 if waiver.form else waiver.rule == self.rule


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's answer about a run or a release of an environment.

    `subject` says in words what was judged; `baseline` is the release it was compared with; `notes` are sentences on
    what was read with reservations.
    """

    env: str
    subject: str
    release: str | None
    runs: tuple[str, ...]
    rules: tuple[RuleResult, ...]
    baseline: str | None = None
    comparison: ReleaseComparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[int, ...]:
        """Every code that applies, each once."""
        return tuple(sorted({result.code for result in self.rules} - {0}))

    @property
    def exit(self) -> int:
        """The code that decides."""
        return strongest(self.codes)

    @property
    def deciding(self) -> tuple[RuleResult, ...]:
        """The results that the exit code comes from."""
        return tuple(result for result in self.rules if result.code != 0 and result.code == self.exit)
