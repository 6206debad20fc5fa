"""What the newest run with probes of each environment found, as a matrix of forms and families."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.reporting.dashboard.model import Cell, Level, Matrix, Tag
from pytest_captcha_qa.reporting.dataset import Dataset
from pytest_captcha_qa.reporting.probing import PROBE, ProbeFinding, findings_of, matrix
from pytest_captcha_qa.reporting.waiving import Waiving

_NEWEST = """
SELECT e.env, arg_max(e.run_id, r.started_at) FROM events e JOIN runs r ON r.run_id = e.run_id AND r.env = e.env
WHERE e.name = $name AND list_contains($envs, e.env) GROUP BY e.env ORDER BY e.env
"""
_EVENTS = """
SELECT CAST(ts AS VARCHAR), run_id, CAST(data AS VARCHAR), release FROM events
WHERE name = $name AND env = $env AND run_id = $run ORDER BY ts, line
"""


def matrices(dataset: Dataset, envs: Sequence[str], waiving: Waiving) -> Iterator[Matrix]:
    """Yield the matrix of each environment that has one; waived findings are marked."""
    for env, run in dataset.rows(_NEWEST, {"name": PROBE, "envs": list(envs)}):
        rows = dataset.rows(_EVENTS, {"name": PROBE, "env": env, "run": run})
        lines = [
            EventLine(ts=str(ts), name=PROBE, run_id=run, data=json.loads(data or "{}")) for ts, run, data, _ in rows
        ]
        found = findings_of(lines, waiving)
        if found:
            yield _matrix(env, run, rows[0][3], found)


def _matrix(env: str, run: str, release: str | None, found: Sequence[ProbeFinding]) -> Matrix:
    (_, *families), *rows = matrix(found)
    slugs = {finding.form: finding.slug for finding in found}
    told = [one for one in found if one.verdict in (ProbeVerdict.UNSAFE, ProbeVerdict.CRASH)]
    return Matrix(
        env=env,
        run_id=run,
        release=release,
        families=tuple(families),
        rows=tuple((Tag(env, form=slugs[form]), form, tuple(map(_cell, cells))) for form, *cells in rows),
        findings=tuple((Tag(env, form=one.slug), _level(one), one.sentence) for one in told),
    )


def _level(finding: ProbeFinding) -> Level:
    """A finding that fails its test is bad; one below the chosen severity, or waived, is a warning."""
    return Level.BAD if finding.code else Level.WARN


def _cell(text: str) -> Cell:
    """Return a cell of the matrix with its style; its first word says what it is."""
    word, _, rest = text.partition(" ")
    if word in (ProbeVerdict.UNSAFE, ProbeVerdict.CRASH):
        return Cell(level=Level.WARN if "(waived)" in rest else Level.BAD, text=text)
    safe, _, asked = rest.partition("/")
    whole = word == ProbeVerdict.SAFE and safe == asked
    return Cell(level=Level.GOOD if whole else Level.UNKNOWN, text=text)
