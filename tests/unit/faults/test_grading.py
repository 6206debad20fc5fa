"""What the fault matrix calls right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults.grading import grade, table, tally
from faults.programs import Outcome
from faults.puzzles import PUZZLES
from faults.rows import ROWS, Row
from pytest_captcha_qa.sandbox.faults import Fault
from pytest_captcha_qa.sandbox.types import TYPES

GOOD = "0.c4ptchaqaSANDBOXabc"
SOLVABLE = Row("solvable")
HOPELESS = Row("hopeless", token=False, errors=("deadline",))
OPEN = {"7": {"state": "submitted"}}


def judged(row: Row, outcome: Outcome, *, seconds: float = 1.0, tasks: Any = None, strict: bool = True) -> Any:
    return grade("client", row, replace(outcome, seconds=seconds), limit=10.0, tasks=tasks or {}, strict=strict)


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (SOLVABLE, Outcome(token=GOOD)),
        (SOLVABLE, Outcome(token={"validate": "5a9db0c4ca7a0"})),
        (HOPELESS, Outcome(error="Failed: deadline: too late", own=True)),
        (Row("either", errors=("unsolvable",)), Outcome(error="Failed: unsolvable: given up", own=True)),
    ],
)
def test_a_token_or_the_error_of_the_row_is_right(row: Row, outcome: Outcome) -> None:
    assert judged(row, outcome).right


@pytest.mark.parametrize(
    ("row", "outcome", "why"),
    [
        (SOLVABLE, Outcome(token="ERROR_SOMETHING"), "for a token"),
        (HOPELESS, Outcome(token=GOOD), "for a token"),
        (SOLVABLE, Outcome(error="Failed: deadline: too late", own=True), "no token, but"),
        (HOPELESS, Outcome(error="Failed: unsolvable: given up", own=True), "wrong kind"),
        (HOPELESS, Outcome(error="KeyError: 'status'"), "a slip"),
        (HOPELESS, Outcome(), "never came back"),
    ],
)
def test_anything_else_is_wrong_and_says_why(row: Row, outcome: Outcome, why: str) -> None:
    found = judged(row, outcome)
    assert not found.right
    assert why in found.why


def test_of_a_client_without_our_codes_any_error_of_its_own_is_right_where_there_is_no_token() -> None:
    error = Outcome(error="TimeoutException: timeout", own=True)
    assert judged(HOPELESS, error, strict=False).right
    assert not judged(Row("either", errors=("unsolvable",)), error, strict=False).right


def test_a_task_whose_id_nobody_has_is_lost() -> None:
    nameless, named = (Outcome(error="Failed: deadline: late", own=True, task=task) for task in (None, "7"))
    lost, kept = (judged(HOPELESS, outcome, tasks=OPEN) for outcome in (nameless, named))
    assert (lost.right, lost.tasks) == (False, "1 lost")
    assert (kept.right, kept.tasks) == (True, "1 kept")
    assert judged(Row("excused", excused=1), Outcome(token=GOOD), tasks=OPEN).right


def test_a_task_that_was_read_or_given_up_is_not_lost() -> None:
    tasks = {"1": {"state": "read"}, "2": {"state": "failed"}}
    assert judged(SOLVABLE, Outcome(token=GOOD), tasks=tasks).tasks == "-"


def test_what_comes_after_its_time_is_wrong() -> None:
    assert "came after 11.0 s" in judged(SOLVABLE, Outcome(token=GOOD), seconds=11.0).why


def test_the_table_has_a_line_a_cell_and_the_tally_one_a_client() -> None:
    grades = [judged(SOLVABLE, Outcome(token=GOOD)), judged(HOPELESS, Outcome())]
    assert [line.split()[0] for line in table(grades).splitlines()] == ["client", "client", "client"]
    assert "WRONG" in table(grades)
    assert tally(grades) == "client: 1 of 2 rows right"


def test_the_rows_have_names_of_their_own_and_faults_that_the_sandbox_knows() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) > 80
    assert all(Fault.from_data({**fault, "key": "k"}) for row in ROWS for fault in row.faults)


def test_there_is_a_puzzle_of_every_type() -> None:
    assert set(PUZZLES) == set(TYPES)
