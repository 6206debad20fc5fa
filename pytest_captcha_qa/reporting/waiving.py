"""Which failures waivers keep from deciding the exit code, and which never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from pytest_captcha_qa.model.attempt import Result
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.codes import exit_code_of, is_bypass

# A broken form and an outage. Never an unauthorised target (15), a bypassed verification (14, or what had to be refused
# and was accepted), a used-up budget (13), or a configuration that cannot work (4).
WAIVABLE = frozenset({1, 12})


class Waiving:
    """The waivers of a run on one day, and the attempts that tell which forms a failed test fails of."""

    def __init__(self, waivers: Iterable[Waiver], day: date, attempts: Iterable[AttemptLine]) -> None:
        given = [waiver for waiver in waivers if waiver.rule is None]
        self._waivers = {waiver.form: waiver for waiver in given if waiver.probe is None}
        self._of_probes = {(waiver.form, waiver.probe): waiver for waiver in given if waiver.probe is not None}
        self._day = day
        self._against = _last_against(attempts)

    def of_form(self, slug: str) -> Waiver | None:
        """Return the form's waiver, in force or expired."""
        return self._waivers.get(slug)

    def in_force(self, slug: str) -> bool:
        """Return whether the form's failures are waived on the day."""
        waiver = self._waivers.get(slug)
        return waiver is not None and not waiver.expired(self._day)

    def of_probe(self, slug: str, probe: str) -> Waiver | None:
        """Return the waiver of one probe of a form, while it is in force."""
        waiver = self._of_probes.get((slug, probe))
        return waiver if waiver is not None and not waiver.expired(self._day) else None

    def covers_form(self, slug: str, code: int) -> bool:
        """Return whether a failure of the form with that exit code is waived."""
        return code in WAIVABLE and self.in_force(slug)

    def covers_test(self, nodeid: str | None, code: int) -> bool:
        """Return whether the failure of a test is waived.

        It is if the test's last execution left attempts that failed, one of them with this code, and all of them are
        waived. A failure that no attempt explains is the test's own and never waived.
        """
        against = self._against.get(nodeid, ()) if nodeid is not None else ()
        explained = any(exit_code_of(attempt) == code for attempt in against)
        return explained and all(map(self._covers, against))

    def _covers(self, attempt: AttemptLine) -> bool:
        never = attempt.outcome == Result.LOST or is_bypass(attempt)
        return not never and self.covers_form(attempt.slug, exit_code_of(attempt))


def _last_against(attempts: Iterable[AttemptLine]) -> Mapping[str | None, Sequence[AttemptLine]]:
    """Return by test the attempts of its last execution that somebody is at fault for."""
    by_test: dict[str | None, list[AttemptLine]] = {}
    for attempt in attempts:
        by_test.setdefault(attempt.nodeid, []).append(attempt)
    return {nodeid: _at_fault(group) for nodeid, group in by_test.items()}


def _at_fault(attempts: Sequence[AttemptLine]) -> Sequence[AttemptLine]:
    last = max(attempt.attempt for attempt in attempts)
    return [attempt for attempt in attempts if attempt.attempt == last and exit_code_of(attempt)]
