"""Our own client against every fault of the matrix, in a twentieth of life's time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faults.grading import table
from faults.matrix import OURS, OURS_AS, Client, graded
from faults.rows import ROWS

# Long enough for a call without an answer (2 s) or a Retry-After (2 s), and the rest of a solve.
DEADLINE = 6.0
TOLERANCE = 2.0  # other tests run beside this one


def test_our_client_is_right_in_every_row() -> None:
    grades = graded([replace(OURS, deadline=DEADLINE, tolerance=TOLERANCE)], ROWS)
    wrong = [found for found in grades if not found.right]
    assert not wrong, table(wrong)
    assert len(grades) == len(ROWS)


@pytest.mark.soak
@pytest.mark.parametrize("client", OURS_AS, ids=lambda client: client.dialect)
def test_it_is_right_as_a_client_of_each_real_service(client: Client) -> None:
    wrong = [found for found in graded([client], ROWS) if not found.right]
    assert not wrong, table(wrong)


CARELESS = """\
import json, time, urllib.parse, urllib.request
from serving import serve

def ask(address, **fields):
    query = urllib.parse.urlencode(fields)
    with urllib.request.urlopen(f"{address}?{query}") as reply:
        return json.load(reply)["request"]

def solve(job):
    about = {"key": job["key"], "json": 1}
    sitekey, page = job["data"]["sitekey"], job["page"]
    task = ask(job["http"] + "/in.php", method="turnstile", sitekey=sitekey, pageurl=page, **about)
    while (answer := ask(job["http"] + "/res.php", action="get", id=task, **about)) == "CAPCHA_NOT_READY":
        time.sleep(0.1)
    return answer

serve(solve, "careless")
"""


def test_a_careless_client_of_somebody_else_is_told_what_it_does_wrong(tmp_path: Path) -> None:
    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    chosen = ("no fault", "poll: HTTP 502, once", "submit: ERROR_ZERO_BALANCE, always", "service not running")
    grades = graded([Client("careless", script, sdk=False)], [row for row in ROWS if row.name in chosen])
    assert {found.row: (found.right, found.tasks) for found in grades} == {
        "no fault": (True, "-"),
        "poll: HTTP 502, once": (False, "1 lost"),
        "submit: ERROR_ZERO_BALANCE, always": (False, "-"),
        "service not running": (False, "-"),
    }
