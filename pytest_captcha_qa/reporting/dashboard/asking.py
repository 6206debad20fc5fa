"""What a page should be about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.model.gate import ALPHA, MIN_EFFECT
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.dashboard.baseline import Baseline
from pytest_captcha_qa.reporting.gate.results import GateResult
from pytest_captcha_qa.reporting.waiving import Waiving

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Judged:
    """The release of an environment that is judged, None if none is known, and the one it is compared with.

    `fault`: why the baseline that was named is not there.
    """

    env: str
    candidate: str | None
    baseline: str | None
    fault: str | None = None


def no_gate(dataset: Dataset, judged: Judged) -> GateResult | None:
    """Say nothing: there is no gate."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page should be about; None: whatever the records have.

    `page` is where it will lie, for links from it; `candidate` is a release.
    `alpha` and `min_effect`: when a change counts. `own_rule_forms` are compared alone. `judge` gives what the gate
    says of a release, or None. `notes` are sentences to be told with the records.
    """

    page: Path
    env: str | None = None
    candidate: str | None = None
    baseline: Baseline = field(default_factory=Baseline)
    alpha: float = ALPHA
    min_effect: float = MIN_EFFECT
    own_rule_forms: Collection[str] = ()
    judge: Callable[[Dataset, Judged], GateResult | None] = no_gate
    waivers: Sequence[Waiver] = ()
    notes: Sequence[str] = ()
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def waiving(self) -> Waiving:
        """What is waived on the day the page is made."""
        return Waiving(self.waivers, self.now.date(), ())
