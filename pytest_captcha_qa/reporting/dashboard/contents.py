"""What stands on the page without any script: the parts of the template, their captions and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_captcha_qa.reporting.dashboard import formats
from pytest_captcha_qa.reporting.dashboard.model import Dashboard, Level, Mover, PoolView, RuleRow, Slow
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.wording import counted, plural, shown

MOST_ROWS = 8
MOST_FINDINGS = 40
_MOST_MOMENTS = 60
_FILTERS = (
    ("e", "Environment", "all"),
    ("p", "Project", "all"),
    ("t", "Type", "all"),
    ("f", "Form", "all"),
)
_SECTIONS = (
    ("verdict", "Verdict"),
    ("changes", "Changes"),
    ("trends", "Trends"),
    ("waits", "Spread"),
    ("verification", "Verification"),
    ("conformance", "Conformance"),
    ("timeline", "Outages"),
    ("versions", "Versions"),
    ("slowest", "Slowest"),
    ("data", "Records"),
    ("reading", "How to read"),
)
_HEADS = {
    "times": (
        "Release",
        "Runs",
        "Waits",
        "Wait, median",
        "Wait, P90",
        "Wait, P99",
        "Page, P90",
        "Submit, P90",
        "Verify, P90",
    ),
    "rates": ("Release", "Runs", "Judged", "Accepted", "Rate", "95 % interval", "Tokens", "Submits", "Repeated"),
}
_NO_COMPARISON = "There is no complete run of an earlier release to compare with in these records."


def contents(page: Dashboard, totals: Mapping[Level, int]) -> dict[str, Any]:
    """Return what the template shows of a page; `totals`: how many changes of each level there are in all."""
    return {
        "page": page,
        "sections": _SECTIONS,
        "filters": _FILTERS,
        "heads": _HEADS,
        "most_rows": MOST_ROWS,
        "most_findings": MOST_FINDINGS,
        "no_comparison": _NO_COMPARISON,
        "scope_line": _scope_line(page),
        "worse": [mover for mover in page.movers if mover.level in (Level.BAD, Level.WARN)],
        "worse_count": totals[Level.BAD] + totals[Level.WARN],
        "other_movers": list(_other_movers(page.movers, totals)),
        "nothing_worse": _nothing_worse(totals),
        "rules": list(_rules(page.rules)),
        "pairs": [_pair(env, new, old) for env, (new, old) in page.compared.items() if None not in (new, old)],
        "spreads": list(_spreads(page)),
        "slow_sides": list(_slow_sides(page)),
        "moments": page.moments[-_MOST_MOMENTS:][::-1],
        "bars_of": lambda key: [bar for bar in page.bars if bar.pool == key],
        "table_rows": lambda kind, key: list(_table_rows(page, kind, key)),
        "release_count": lambda key: len(_points(page, key)),
    }


def _scope_line(page: Dashboard) -> str:
    """Return what the page is about: how many attempts and runs, and of which time."""
    if not page.attempts:
        return "no attempt on record"
    days = dict.fromkeys(formats.moment(one)[:10] for one in (page.first, page.last))
    many = (
        f"{page.attempts:,} {plural(page.attempts, 'attempt')} in {page.runs_count:,} {plural(page.runs_count, 'run')}"
    )
    return f"{many}, {' to '.join(days)} (UTC)"


def _pair(env: str, new: str | None, old: str | None) -> str:
    return "{}: {} against {}".format(*(shown(name or "", 60) for name in (env, new, old)))


def _nothing_worse(totals: Mapping[Level, int]) -> str:
    """Return what is said in place of what got worse; what nobody knows is not called good."""
    unknown = totals[Level.UNKNOWN]
    if unknown == sum(totals.values()):
        return "Nothing can be told yet: no comparison has enough data."
    rest = f"; {counted(unknown, 'comparison')} cannot be told for want of data" if unknown else ""
    return f"Nothing that can be compared got worse, beyond chance and the smallest effect that counts{rest}."


def _other_movers(movers: Sequence[Mover], totals: Mapping[Level, int]) -> Iterator[tuple[list[Mover], int, str]]:
    """Yield (rows, how many there are in all, caption) of what did not get worse."""
    for level, caption in ((Level.UNKNOWN, "Not enough data"), (Level.GOOD, "Got better"), (Level.SAME, "Same")):
        yield [mover for mover in movers if mover.level is level], totals[level], caption


def _rules(rows: Sequence[RuleRow]) -> Iterator[tuple[list[RuleRow], str, bool]]:
    """Yield (rows, caption, whether they stand open) of the gate's answers: what calls for somebody stands open."""
    for levels, caption, opened in (
        ((Level.BAD, Level.WARN), "What counts, warns or is waived", True),
        ((Level.UNKNOWN,), "Too little data, which fails nothing", False),
        ((Level.GOOD,), "Passed", False),
    ):
        yield [row for row in rows if row.level in levels], caption, opened


def _spreads(page: Dashboard) -> Iterator[tuple[PoolView, str]]:
    """Yield each pool that has a distribution, with the releases it compares in words."""
    for pool in page.pools:
        own = [bar for bar in page.bars if bar.pool == pool.key]
        if own:
            newest = next((bar.release for bar in own if bar.newest), None)
            older = next((bar.release for bar in own if not bar.newest), None)
            yield pool, " against ".join(name for name in (newest, older) if name)


def _slow_sides(page: Dashboard) -> Iterator[tuple[str, list[Slow]]]:
    """Yield the slowest attempts by the side that was slow."""
    for side, name in (
        ("ours", "Our side: page, submit and verify together"),
        ("provider", "Provider's side: the wait"),
    ):
        rows = [row for row in page.slowest if row.side == side]
        if rows:
            yield name, rows


def _points(page: Dashboard, key: str) -> list[Figures]:
    """Return the figures of a pool over all its forms, by release, the oldest first."""
    pool = next(one for one in page.pools if one.key == key)
    return [one for one in page.figures if one.pool == pool.pool]


def _table_rows(page: Dashboard, kind: str, key: str) -> Iterator[list[str]]:
    """Yield the newest rows of a table as text."""
    for one in _points(page, key)[: -MOST_ROWS - 1 : -1]:
        yield formats.ROWS[kind](one)
