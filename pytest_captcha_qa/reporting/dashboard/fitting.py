"""A page that stays below two megabytes, however wide the history is: fewer rows, and the page says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from pytest_captcha_qa.reporting.dashboard.model import Dashboard, Level, Mover

MOST_BYTES = 1_990_000
SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
"""How much of the usual room is tried, one after the other, until the page is small enough."""

_MOVERS, _RULES, _PANELS, _POINTS, _MOMENTS, _MATRIX, _OTHERS = 200, 200, 24, 6000, 1200, 300, 120


def fitted(page: Dashboard, share: float) -> Dashboard:
    """Return the page with at most that share of the room that its parts may take; the worst and newest stay."""
    room = {name: max(int(most * share), 1) for name, most in _ROOMS.items()}
    pools = page.pools[: room["panels"]]
    kept = {pool.key for pool in pools}
    over_all = [one for one in page.figures if one.pool.form is None]
    by_form = [one for one in page.figures if one.pool.form is not None]
    return replace(
        page,
        movers=list(chain.from_iterable(rows[: room["rows of a kind of change"]] for rows in _by_level(page.movers))),
        rules=page.rules[: room["answers of the gate"]],
        pools=pools,
        figures=[*over_all, *by_form[-room["points of single forms"] :]],
        bars=[bar for bar in page.bars if bar.pool in kept],
        moments=page.moments[-room["entries of the time line"] :],
        matrices=[replace(grid, rows=grid.rows[: room["forms of a matrix"]]) for grid in page.matrices],
        slowest=page.slowest[: room["other rows"]],
        versions=page.versions[: room["other rows"]],
        notes=[*page.notes, _note(room)] if share < 1 else page.notes,
    )


_ROOMS = {
    "rows of a kind of change": _MOVERS,
    "answers of the gate": _RULES,
    "panels": _PANELS,
    "points of single forms": _POINTS,
    "entries of the time line": _MOMENTS,
    "forms of a matrix": _MATRIX,
    "other rows": _OTHERS,
}


def _by_level(movers: Sequence[Mover]) -> Iterator[list[Mover]]:
    for level in Level:
        yield [mover for mover in movers if mover.level is level]


def _note(room: dict[str, int]) -> str:
    said = ", ".join(f"{most:,} {name}" for name, most in room.items())
    return f"To stay below two megabytes this page has no more than {said}; name an environment to see more of it"
