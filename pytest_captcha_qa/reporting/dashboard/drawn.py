"""What the script of the page draws and filters, as plain values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_captcha_qa.reporting.dashboard import charts, formats
from pytest_captcha_qa.reporting.dashboard.contents import MOST_ROWS
from pytest_captcha_qa.reporting.dashboard.model import DIMENSIONS, Bar, Dashboard, Moment
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.wording import shown

_LEAST_SPREAD = 8  # attempts of a pool, over both releases, from which a distribution is drawn


def drawn(page: Dashboard, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what the script draws and filters; names stand once, rows hold places in the lists of names."""
    place = {name: {value: number for number, value in enumerate(values)} for name, values in names.items()}
    releases = sorted({str(one.release) for one in page.figures})
    release_at = {release: number for number, release in enumerate(releases)}
    pool_at = {pool.pool: number for number, pool in enumerate(page.pools)}
    return {
        "names": {name: _labels(values) for name, values in names.items()},
        "releases": [shown(release, 60) for release in releases],
        "pools": [{"key": p.key, "forms": [place["form"][form] for form in p.forms]} for p in page.pools],
        "columns": list(_COLUMNS),
        "points": [
            [pool_at[whole], place["form"].get(one.pool.form or "", -1), release_at[str(one.release)], *_numbers(one)]
            for one in page.figures
            if (whole := formats.whole(one.pool)) in pool_at
        ],
        "bars": [_bar(bar) for bar in page.bars],
        "moments": [_moment(one, place) for one in page.moments],
        "specs": charts.specs(),
        "needs": charts.NEEDS,
        "told": charts.TOLD,
        "mostRows": MOST_ROWS,
        "leastSpread": _LEAST_SPREAD,
    }


def _labels(values: Sequence[str]) -> list[str]:
    """Return what the filters show; names that look alike, such as long ones, are told apart by a number."""
    seen = Counter[str]()
    labels = []
    for label in map(shown, values):
        seen[label] += 1
        labels.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)
    return labels


_COLUMNS = ("pool", "form", "release", "runs", "attempts", "waits", "median", "P90", "P99", "page", "submit", "verify",
            "judged", "passed", "rate", "low", "high", "keys", "submits", "repeated")  # fmt: skip


def _numbers(one: Figures) -> Iterator[float | int | None]:
    """Yield the numbers of `_COLUMNS`, from `runs` on."""
    wait = one.times.get("wait")
    yield from (one.runs, one.attempts, wait.n if wait else 0)
    times = [(name, part) for name, part in (("wait", "median"), ("wait", "p90"), ("wait", "p99"))]
    times += [(name, "p90") for name in ("page", "submit", "verify")]
    yield from (_rounded(formats.time_of(one, name, part)) for name, part in times)
    low, high = one.interval if one.interval is not None else (None, None)
    yield from (one.judged, one.passed, _share(one.rate), _share(low), _share(high))
    yield from (one.keys, one.submits, _share(one.resolve_share))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _share(value: float | None) -> float | None:
    """Return it short; only all of it is 1, and only nothing is 0."""
    return None if value is None else value if value in (0, 1) else min(max(round(value, 5), 1e-5), 1 - 1e-5)


def _bar(bar: Bar) -> dict[str, Any]:
    which = "this release" if bar.newest else "baseline"
    return {
        "pool": bar.pool,
        "chart": bar.chart,
        "which": which,
        "release": shown(bar.release, 60),
        "start": _rounded(bar.start),
        "end": _rounded(bar.end),
        "share": _rounded(bar.share),
        "count": bar.count,
    }


def _moment(one: Moment, place: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    tags = {key: place[name].get(getattr(one.tag, name)) for key, name in DIMENSIONS.items()}
    return tags | {
        "start": one.start,
        "when": formats.moment(one.start),
        "kind": one.kind,
        "env": shown(one.tag.env or "", 60),
        "what": shown(one.what, 160),
        "count": one.count,
        "level": one.level.value,
    }
