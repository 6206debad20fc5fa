"""What is right: pure, from what a client answered and what the service has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from faults.programs import Outcome
from faults.puzzles import is_marked
from faults.rows import Row

_SHOWN = 90


@dataclass(frozen=True)
class Grade:
    """One cell of the matrix. `tasks`: what became of accepted tasks that were not read."""

    client: str
    row: str
    right: bool
    why: str
    seconds: float
    tasks: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def grade(client: str, row: Row, outcome: Outcome, *, limit: float, tasks: Mapping[str, Any], strict: bool) -> Grade:
    """Judge one outcome.

    `limit`: seconds it may take at most; `tasks`: the service's tasks of the key by id; `strict`: errors must be of the
    row's codes, which only a client that has these codes can do; of others any error of their own is right.
    """
    unread = {task_id for task_id, task in tasks.items() if task["state"] == "submitted"}
    kept = unread & {outcome.task}
    lost = len(unread - kept)
    problems = [*_about_the_answer(row, outcome, strict=strict)]
    if lost > row.excused:
        problems.append(f"{lost} task{'s' if lost > 1 else ''} lost")
    if outcome.seconds > limit and "never came back" not in problems:
        problems.append(f"came after {outcome.seconds:.1f} s, {limit:.1f} s were given")
    said = "token" if outcome.token is not None else outcome.error[:_SHOWN] or "nothing"
    found = "; ".join(problems) or said
    return Grade(client, row.name, not problems, found, round(outcome.seconds, 1), _fate(len(kept), lost))


def _about_the_answer(row: Row, outcome: Outcome, *, strict: bool) -> list[str]:
    if outcome.token is not None:
        good = is_marked(outcome.token) and row.token
        return [] if good else [f"took {str(outcome.token)[:30]!r} for a token"]
    if not outcome.error:
        return ["never came back"]
    said = outcome.error[:_SHOWN]
    if row.token and not (row.errors and strict):
        return [f"no token, but {said}"]
    if not outcome.own:
        return [f"a slip in place of an error: {said}"]
    code = outcome.error.partition(": ")[2].partition(":")[0]
    return [f"an error of the wrong kind: {said}"] if strict and code not in row.errors else []


def _fate(kept: int, lost: int) -> str:
    words = [f"{count} {word}" for count, word in ((kept, "kept"), (lost, "lost")) if count]
    return ", ".join(words) or "-"


def table(grades: list[Grade]) -> str:
    """Return the matrix as text."""
    first, width = (
        max(len(name) for name in names) for names in zip(*((it.client, it.row) for it in grades), strict=True)
    )
    lines = [f"{'client':<{first}} {'fault':<{width}} {'verdict':<7} {'s':>6}  {'tasks':<8} what came of it"]
    for grade in grades:
        verdict = "right" if grade.right else "WRONG"
        cells = f"{grade.client:<{first}} {grade.row:<{width}} {verdict:<7} {grade.seconds:>6.1f}"
        lines.append(f"{cells}  {grade.tasks:<8} {grade.why}")
    return "\n".join(lines)


def tally(grades: list[Grade]) -> str:
    """Return one line a client: how many rows are right, how many tasks were lost."""
    lines = []
    for client in dict.fromkeys(grade.client for grade in grades):
        own = [grade for grade in grades if grade.client == client]
        lines.append(f"{client}: {sum(grade.right for grade in own)} of {len(own)} rows right")
    return "\n".join(lines)
