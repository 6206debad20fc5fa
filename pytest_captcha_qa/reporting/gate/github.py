"""The gate's answer on the pages of GitHub Actions: annotations and the job's summary.

Escapes of workflow commands as GitHub documents them ("Workflow commands for GitHub Actions"): `%`, CR and LF in the
message, `:` and `,` besides in properties. Records may hold anything, so whatever is quoted stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_captcha_qa.reporting.gate.results import Place, RuleResult, Status
from pytest_captcha_qa.reporting.gate.telling import (
    GateAnswer,
    closing_line,
    headline,
    open_rules,
    ordered,
    shown,
    told_apart,
)
from pytest_captcha_qa.reporting.wording import counted, one_line

# GitHub shows ten of each kind in a step, and cuts a summary at a mebibyte.
_MOST_ANNOTATIONS = 10
_MOST_ROWS = 100
_LONGEST = 2000
_MARKUP = re.compile(r"""[^\w\s,;%=?]|_""")
_SIGNS = {
    Status.PASSED: "✅", Status.BREACHED: "❌", Status.NO_BASELINE: "❌", Status.NO_VERDICT: "❔", Status.WARNING: "⚠️",
    Status.WAIVED: "⏸️", Status.NOT_ENOUGH_DATA: "❔",
}  # fmt: skip


def commands(answer: GateAnswer, locate: Callable[[RuleResult], Place]) -> Iterator[str]:
    """Yield a workflow command for what counts, errors first, and for warnings."""
    if answer.result is None:
        yield f"::error title=captcha gate::{_message(answer.fault or '')}"
        return
    told = shown(ordered(answer.result))
    errors = [one for one in told if one.code and answer.counts]
    for name, group in (("error", errors), ("warning", [one for one in told if one not in errors])):
        for one in group[:_MOST_ANNOTATIONS]:
            place = locate(one)
            where = f"file={_property(place.path)},line={place.line},title={_property(f'captcha gate: {one.rule}')}"
            yield f"::{name} {where}::{_message(f'{one.status}: {one.sentence}')}"


def job_summary(answer: GateAnswer) -> str:
    """Return the answer in Markdown: a heading, a table of results, the notes."""
    if answer.result is None:
        return f"## captcha gate\n\n{inert(answer.fault or '')}\n\n"
    lines = ["## captcha gate", "", f"**{inert(closing_line(answer))}**", "", inert(headline(answer.result)), ""]
    rows = [*told_apart(answer.result), *(one for one in answer.result.rules if one.status is Status.PASSED)]
    if rows:
        lines += ["| | rule | what it says |", "| --- | --- | --- |", *map(_row, rows[:_MOST_ROWS])]
        lines += [f"| | | and {counted(len(rows) - _MOST_ROWS, 'more result')} |"] if len(rows) > _MOST_ROWS else []
        lines.append("")
    notes = [*filter(None, [open_rules(answer.result)]), *answer.result.notes[:_MOST_ROWS]]
    return "\n".join([*lines, *(f"- {inert(note)}" for note in notes)]) + "\n\n"


def _row(one: RuleResult) -> str:
    return f"| {_SIGNS[one.status]} {one.status} | {inert(one.rule)} | {inert(one.sentence)} |"


def inert(text: str) -> str:
    """Return text that is no Markdown, HTML or link, on one line: every sign that could be is a character reference."""
    return _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", one_line(text)[:_LONGEST])


def plain(line: str) -> str:
    """Return a line of output that the runner takes for no command of its own."""
    return re.sub(r"^(\s*)::", r"\1: :", line).replace("##[", "# #[")


def _message(text: str) -> str:
    return (
        one_line(text)[:_LONGEST].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace("##[", "# #[")
    )


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
