"""What the page shows besides figures, straight from SQL: distributions, the time line, slow attempts, runs.

All heavy work is DuckDB's: what comes back is a few thousand rows at most, however long the history is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from pytest_captcha_qa.reporting.dashboard.asking import Judged
from pytest_captcha_qa.reporting.dashboard.formats import seconds, shown
from pytest_captcha_qa.reporting.dashboard.model import Bar, Level, Moment, RunRow, Slow, Tag
from pytest_captcha_qa.reporting.dashboard.releases import UNKNOWN
from pytest_captcha_qa.reporting.dataset import Dataset
from pytest_captcha_qa.reporting.figures import Pool
from pytest_captcha_qa.reporting.wording import some_of

MOST_RUNS = 30
MOST_SLOW = 60
MOST_MOMENTS = 1200
_FEWEST_BINS, _MOST_BINS = 6, 24

_OURS = "coalesce(page, 0) + coalesce(submit, 0) + coalesce(verify, 0)"
_ANY_OF_OURS = "(page IS NOT NULL OR submit IS NOT NULL OR verify IS NOT NULL)"
# side, its seconds, the rows that have them
_SIDES = (
    ("wait", "provider", "wait", "wait IS NOT NULL AND source IN ('solved', 'prefetched')"),
    ("ours", "ours", _OURS, _ANY_OF_OURS),
)
_POOL = "env, project, type, provider, key_mode, time_scale"

# The attempts of some releases are read once for both sides. The lists say the same as the join, but before it: what is
# not of these releases is not made ready for it.
_CHOSEN = """
WITH chosen AS (SELECT unnest($envs) AS env, unnest($releases) AS release),
found AS MATERIALIZED (
    SELECT {fields} FROM positive JOIN chosen USING (env, release)
    WHERE list_contains($envs, env) AND list_contains($releases, release)
), times AS ({sides}),
"""
_SPREAD = """
{chosen} ranges AS (
    SELECT place, {pool}, min(x) AS low, greatest(quantile_cont(x, 0.99), min(x) + 0.05) * 1.001 AS high,
        greatest({fewest}, least({most}, ceil(sqrt(count(*))))) AS bins
    FROM times GROUP BY ALL
), binned AS (
    SELECT place, {pool}, release, low, (high - low) / bins AS width, bins,
        floor((x - low) / (high - low) * bins) AS bin
    FROM times JOIN ranges USING (place, {pool})
)
SELECT place, {pool}, release, low + bin * width, low + (bin + 1) * width, count(*),
    count(*) / sum(count(*)) OVER (PARTITION BY place, {pool}, release)
FROM binned GROUP BY place, {pool}, release, low, width, bins, bin QUALIFY bin < bins
ORDER BY place, {pool}, release, bin
"""


def _chosen(fields: str, *, where: str = "true") -> str:
    """Return the SQL of the attempts of `$releases`, in `times` with `x`, the seconds of the side at `place`."""
    sides = " UNION ALL ".join(
        f"SELECT {place} AS place, {value} AS x, * FROM found WHERE {rows} AND {where}"
        for place, (_, _, value, rows) in enumerate(_SIDES)
    )
    return _CHOSEN.format(fields=fields, sides=sides)


def bars(dataset: Dataset, judged: Sequence[Judged], keys: Mapping[Pool, str]) -> Iterator[Bar]:
    """Yield the distributions of the judged releases and their baselines, by pool and side."""
    named = [(one.env, release) for one in judged for release in (one.candidate, one.baseline) if release is not None]
    newest = {(one.env, one.candidate) for one in judged}
    asked = {"envs": [env for env, _ in named], "releases": [release for _, release in named]}
    fields = f"{_POOL}, release, outage, wait, source, page, submit, verify"
    query = _SPREAD.format(chosen=_chosen(fields, where="NOT outage"), pool=_POOL, fewest=_FEWEST_BINS, most=_MOST_BINS)
    for place, *pool, release, start, end, count, share in dataset.rows(query, asked) if named else ():
        key = keys.get(Pool(*pool))
        if key is not None:
            chart, side, *_ = _SIDES[place]
            new = (pool[0], release) in newest
            yield Bar(pool=key, chart=f"spread-{chart}", side=side, release=release, newest=new,
                      start=start, end=end, count=count, share=share)  # fmt: skip


# Times are made of text, so that only those of faults are looked at: not in WHERE, which would ask it of all.
_FAULTS = """
SELECT env, project, type, date_trunc($step, ts) AS start, max(ts), fault_kind, list_sort(list(DISTINCT slug)), count(*)
FROM (
    SELECT *, CASE WHEN outcome = 'lost' THEN 'lost' ELSE coalesce(fault, '') END AS fault_kind FROM attempts
    WHERE NOT (purpose = 'probe' AND expect = 'refuse') AND list_contains($envs, env)
) WHERE fault_kind IN ('lost', 'product', 'provider', 'infrastructure', 'undetermined')
GROUP BY ALL HAVING start IS NOT NULL ORDER BY start DESC, env, project, type, fault_kind LIMIT $most
"""
_EVENTS = """
SELECT env, date_trunc($step, ts) AS start, max(ts), name, count(*) FROM events
WHERE ts IS NOT NULL AND list_contains($names, name) AND list_contains($envs, env)
GROUP BY ALL ORDER BY start DESC, env, name LIMIT $most
"""
_FAULT_KINDS = {
    "product": ("product failure", Level.BAD),
    "lost": ("lost attempt", Level.BAD),
    "provider": ("provider", Level.WARN),
    "infrastructure": ("infrastructure", Level.WARN),
    "undetermined": ("undetermined", Level.UNKNOWN),
}
_EVENT_KINDS = {
    "store_degraded": ("store", Level.WARN, "the shared store was lost"),
    "store_back": ("store", Level.GOOD, "the shared store was back"),
    "submitted_alone": ("store", Level.WARN, "submitted without the shared store"),
    "token_lost": ("token", Level.WARN, "a read-once token was lost"),
    "submit_unknown": ("token", Level.WARN, "a submit was perhaps paid, its id is unknown"),
    "submit_maybe_posted": ("token", Level.WARN, "a form was perhaps posted before a crash"),
    "task_orphaned": ("token", Level.WARN, "a task has no owner any more"),
    "token_refused_once": ("token", Level.WARN, "a fresh token was refused, a second one accepted"),
    "release_changed": ("release changed", Level.WARN, "the release changed during a run"),
    "key_not_closed": ("store", Level.WARN, "a key could not be closed in the store"),
}
_STEPS = ((14, "hour"), (500, "day"), (4000, "week"))


def moments(dataset: Dataset, envs: Sequence[str], first: datetime | None, last: datetime | None) -> list[Moment]:
    """Return outages and degradations, the oldest first, summed up by hour, day, week or month: as history is long.

    `first` and `last`: when its attempts were, None where none has a time.
    """
    asked: dict[str, Any] = {"envs": list(envs), "step": _step(first, last), "most": MOST_MOMENTS}
    found = [
        Moment(tag=Tag(env, project, kind_of, _only(slugs)), start=iso(start), end=iso(end),
               kind=_FAULT_KINDS[fault][0], level=_FAULT_KINDS[fault][1], what=_forms(slugs), count=count)
        for env, project, kind_of, start, end, fault, slugs, count in dataset.rows(_FAULTS, asked)
    ]  # fmt: skip
    for env, start, end, name, count in dataset.rows(_EVENTS, asked | {"names": list(_EVENT_KINDS)}):
        kind, level, what = _EVENT_KINDS[name]
        found.append(
            Moment(tag=Tag(env), start=iso(start), end=iso(end), kind=kind, level=level, what=what, count=count)
        )
    return sorted(found, key=lambda one: (one.start, one.kind))[-MOST_MOMENTS:]


def _only(slugs: Sequence[str]) -> str | None:
    return slugs[0] if len(slugs) == 1 else None


def _forms(slugs: Sequence[str]) -> str:
    return some_of([shown(slug, 40) for slug in slugs])


def _step(first: datetime | None, last: datetime | None) -> str:
    days = (last - first).days if first is not None and last is not None else 0
    return next((step for most, step in _STEPS if days < most), "month")


# Only what can be among the three is put in order, which costs most.
_SLOW = """
{chosen} thirds AS (
    SELECT place, {pool}, slug, list_min(max(x, 3)) AS third FROM times GROUP BY ALL
), slow AS (
    SELECT times.* FROM times JOIN thirds USING (place, {pool}, slug) WHERE x >= third
    QUALIFY row_number() OVER (PARTITION BY place, {pool}, slug ORDER BY x DESC, file, line) <= 3
)
SELECT place, env, project, type, slug, ts, x, wait, page, submit, verify, release, run_id, outcome, file, line
FROM slow QUALIFY row_number() OVER (PARTITION BY place ORDER BY x DESC, file, line) <= {most}
ORDER BY place, x DESC, file, line
"""


def slowest(dataset: Dataset, judged: Sequence[Judged], page: Path) -> list[Slow]:
    """Return the slowest attempts of the judged releases, three of a form and side at most; links lead from `page`."""
    named = [one for one in judged if one.candidate is not None]
    asked = {"envs": [one.env for one in named], "releases": [one.candidate for one in named]}
    fields = f"{_POOL}, slug, ts, wait, source, page, submit, verify, release, run_id, outcome, file, line"
    query = _SLOW.format(chosen=_chosen(fields), pool=_POOL, most=MOST_SLOW)
    found = []
    for place, env, project, kind, slug, ts, x, wait, *ours, release, run, outcome, file, line in (
        dataset.rows(query, asked) if named else ()
    ):
        _, side, *_ = _SIDES[place]
        record, link = _record(file, line, page)
        found.append(
            Slow(tag=Tag(env, project, kind, slug), ts=iso(ts), side=side, seconds=x, parts=_parts(wait, ours),
                 release=release, run_id=run, outcome=outcome, record=record, link=link)
        )  # fmt: skip
    return found


def _parts(wait: float | None, ours: Sequence[float | None]) -> str:
    named = zip(("wait", "page", "submit", "verify"), (wait, *ours), strict=True)
    return ", ".join(f"{name} {seconds(value)}" for name, value in named if value is not None)


def _record(file: str, line: int | None, page: Path) -> tuple[str, str | None]:
    """Return where a record stands in words, and the link from the page; a file on another drive or gone has none."""
    if not Path(file).is_file():
        return f"{file}, line {line}", None
    try:
        way = os.path.relpath(Path(file).absolute(), page.absolute().parent)
    except ValueError:
        return f"{file}, line {line}", None
    # A leading "./" keeps a file name with a colon from being read as a scheme.
    link = "./" + quote(PurePath(way).as_posix().encode(errors="surrogateescape")) + (f"#L{line}" if line else "")
    return f"{PurePath(way).as_posix()}, line {line}" if line else PurePath(way).as_posix(), link


_RUNS = """
SELECT run_id, env, release, started_at, attempts, lost, complete, release_changed, time_scale, count(*) OVER ()
FROM runs WHERE list_contains($envs, env) ORDER BY started_at DESC NULLS LAST, run_id LIMIT {most}
"""


def runs(dataset: Dataset, envs: Sequence[str]) -> list[RunRow]:
    """Return the newest runs."""
    return [
        RunRow(tag=Tag(env), run_id=run, release=release or UNKNOWN, started=iso(started), attempts=attempts,
               lost=lost, complete=complete, remark=_remark(changed, scale))
        for run, env, release, started, attempts, lost, complete, changed, scale, _ in dataset.rows(
            _RUNS.format(most=MOST_RUNS), {"envs": list(envs)}
        )
    ]  # fmt: skip


def _remark(changed: bool, scale: float) -> str:
    said = ["its release changed while it ran"] if changed else []
    said += [f"times are scaled by {scale:g}"] if scale != 1 else []
    return "; ".join(said)


def iso(moment: datetime | None) -> str:
    """Return a time as the page writes it into its data: UTC, to the second; empty for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else ""
