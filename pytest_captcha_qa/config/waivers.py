"""The tables `[[waivers]]`: failures that the team has accepted for some days."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.gate import rule_name
from pytest_captcha_qa.config.problems import nearest
from pytest_captcha_qa.config.table import Table, Text
from pytest_captcha_qa.model.waiver import MOST_DAYS, Waiver

_PROBE = re.compile(r"M\d\d\Z", re.ASCII)


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

    form: Text | None = None
    probe: Annotated[Text, AfterValidator(probe_id)] | None = None
    rule: Annotated[Text, AfterValidator(rule_name)] | None = None
    until: Annotated[date, Field(strict=True, description="the last day, such as 2026-12-10")]
    reason: Text = Field(description="why the failure is accepted")
    ticket: Text | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield whether it says what is waived."""
        if self.form is None and self.rule is None:
            yield "form", "is missing: the name of the form whose failures are waived, or a rule of the gate"
        elif self.probe is not None and self.rule is not None:
            yield "probe", "is waived at one form, and a rule of the gate by a waiver of its own"

    def waiver(self) -> Waiver:
        """Return the waiver as the report knows it."""
        return Waiver(self.form or "", self.until, self.reason, self.ticket, self.probe, self.rule)


def waiver_faults(
    waivers: Mapping[int, WaiverTable], most_days: Mapping[str, int], forms: Iterable[str], today: date
) -> Iterator[tuple[int, str, str]]:
    """Yield (place in the list, key, what is wrong) for what one waiver alone does not show.

    `most_days` maps each form that an environment has to the longest waiver it allows; `forms` are all the file names.
    """
    known, seen = set(forms), set[tuple[str | None, str | None, str | None]]()
    for place, waiver in waivers.items():
        form, what = waiver.form, (waiver.form, waiver.probe, waiver.rule)
        longest = most_days.get(form, sys.maxsize) if form is not None else min(most_days.values(), default=MOST_DAYS)
        if form is not None and form not in known:
            yield place, "form", f"{form!r} is no form{nearest(form, known)}"
        elif what in seen:
            yield (
                place,
                "form" if form is not None else "rule",
                f"{_named(waiver)} is waived twice; keep one of the two",
            )
        elif (days := (waiver.until - today).days) > longest:
            yield (
                place,
                "until",
                f"is {days} days from today; a waiver lasts at most {longest} days "
                "(waivers_max_days of the environment)",
            )
        seen.add(what)


def _named(waiver: WaiverTable) -> str:
    where = repr(waiver.form) if waiver.form is not None else "every form"
    if waiver.probe is not None:
        return f"probe {waiver.probe} of {where}"
    return f"{waiver.rule} of {where}" if waiver.rule is not None else where


def waivers_of(tables: Sequence[WaiverTable], forms: Iterable[str]) -> tuple[Waiver, ...]:
    """Return the waivers of these forms, and those of rules of the gate for every form."""
    wanted = {None, *forms}
    return tuple(table.waiver() for table in tables if table.form in wanted)
