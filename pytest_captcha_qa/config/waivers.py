"""The tables `[[waivers]]`: failures that the team has accepted for some days."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.problems import nearest
from pytest_captcha_qa.config.table import Table, Text
from pytest_captcha_qa.model.waiver import Waiver

_PROBE = re.compile(r"M\d\d\Z", re.ASCII)
_NO_RULES = "; a waiver is for a form, or for one probe of it"


def probe_id(text: str) -> str:
    """Return the id of a probe.

    Raises:
        ValueError: it is none.
    """
    if not _PROBE.match(text):
        raise ValueError("must be the id of a probe, such as M12 (docs/conformance.md lists them)")
    return text


class WaiverTable(Table):
    """One waiver. That it has expired is no fault: the file that loaded yesterday loads today."""

    later: ClassVar[Mapping[str, str]] = {"rule": _NO_RULES}

    form: Text | None = None
    probe: Annotated[Text, AfterValidator(probe_id)] | None = None
    until: Annotated[date, Field(strict=True, description="the last day, such as 2026-12-10")]
    reason: Text = Field(description="why the failure is accepted")
    ticket: Text | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield whether it says what is waived."""
        if self.form is None:
            yield "form", "is missing: the name of the form whose failures are waived"

    def waiver(self) -> Waiver:
        """Return the waiver as the report knows it."""
        assert self.form is not None, "`faults` refuses it"
        return Waiver(self.form, self.until, self.reason, self.ticket, self.probe)


def waiver_faults(
    waivers: Mapping[int, WaiverTable], most_days: Mapping[str, int], forms: Iterable[str], today: date
) -> Iterator[tuple[int, str, str]]:
    """Yield (place in the list, key, what is wrong) for what one waiver alone does not show.

    `most_days` maps each form that an environment has to the longest waiver it allows; `forms` are all the file names.
    """
    known, seen = set(forms), set[tuple[str, str | None]]()
    for place, waiver in waivers.items():
        form = waiver.form
        if form is None:
            continue
        if form not in known:
            yield place, "form", f"{form!r} is no form{nearest(form, known)}"
        elif (form, waiver.probe) in seen:
            what = f"probe {waiver.probe} of {form!r}" if waiver.probe else repr(form)
            yield place, "form", f"{what} is waived twice; keep one of the two"
        elif (days := (waiver.until - today).days) > most_days.get(form, days):
            yield (
                place,
                "until",
                f"is {days} days from today; a waiver lasts at most {most_days[form]} days "
                "(waivers_max_days of the environment)",
            )
        seen.add((form, waiver.probe))


def waivers_of(tables: Sequence[WaiverTable], forms: Iterable[str]) -> tuple[Waiver, ...]:
    """Return the waivers of these forms."""
    wanted = set(forms)
    return tuple(table.waiver() for table in tables if table.form in wanted)
