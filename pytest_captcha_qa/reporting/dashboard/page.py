"""The page as one file that loads nothing: template, style, scripts and data; its policy names them by their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from pytest_captcha_qa.reporting.dashboard import charts, formats
from pytest_captcha_qa.reporting.dashboard.fitting import MOST_BYTES, SHARES, fitted
from pytest_captcha_qa.reporting.dashboard.model import Bar, Dashboard, Level, Mover, PoolView, RuleRow, Slow, Tag
from pytest_captcha_qa.reporting.figures import Figures
from pytest_captcha_qa.reporting.wording import counted, plural, shown

MOST_ROWS = 8
MOST_FINDINGS = 40
_MOST_MOMENTS = 60
_LEAST_SPREAD = 8  # attempts of a pool, over both releases, from which a distribution is drawn
_DIMENSIONS = {"e": "env", "p": "project", "t": "type", "f": "form"}
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


def render(page: Dashboard) -> str:
    """Return the page as HTML, with fewer rows where it would be larger than two megabytes."""
    totals = Counter(row.level for row in page.movers)
    text = ""
    for share in SHARES:
        text = _rendered(fitted(page, share), totals)
        if len(text.encode(errors="surrogatepass")) <= MOST_BYTES:
            break
    return text


def _rendered(page: Dashboard, totals: Mapping[Level, int]) -> str:
    scripts = [_bundle(), _resource("page.js")]
    style = _resource("page.css")
    names = {name: page.choices(name) for name in _DIMENSIONS.values()}
    context = {
        **_constants(),
        "page": page,
        "policy": _policy(scripts, style),
        "style": Markup(style),
        "scripts": [Markup(script) for script in scripts],
        "data": Markup(_inert(_data(page, names))),
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
    return _environment(names).get_template("page.html.j2").render(context)


def _constants() -> dict[str, Any]:
    return {
        "sections": _SECTIONS,
        "filters": _FILTERS,
        "heads": _HEADS,
        "most_rows": MOST_ROWS,
        "most_findings": MOST_FINDINGS,
        "no_comparison": _NO_COMPARISON,
    }


def _environment(names: Mapping[str, Sequence[str]]) -> jinja2.Environment:
    """Return the templates' environment; a value that is missing is an error, not an empty place."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource), autoescape=True, undefined=jinja2.StrictUndefined
    )
    places = {name: {value: place for place, value in enumerate(values)} for name, values in names.items()}
    environment.filters |= formats.FILTERS | {
        "attrs": lambda tag: _attributes(tag, places),
        "index": lambda value, name: places[name].get(value, ""),
    }
    return environment


def _attributes(tag: Tag, places: Mapping[str, Mapping[str, int]]) -> Markup:
    """Return what filters look at as places in the lists of names: no text of a record stands in an attribute."""
    found = ((key, places[name].get(getattr(tag, name))) for key, name in _DIMENSIONS.items())
    return Markup(" ".join(f'data-{key}="{place}"' for key, place in found if place is not None))


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed with all they need, as one script."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str], style: str) -> Markup:
    """Return the content security policy: these scripts and this style, nothing else, no eval, no request."""
    allowed = " ".join(map(_hash, scripts))
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _inert(value: object) -> str:
    """Return JSON that ends no script, opens no comment and breaks no line, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(page: Dashboard, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
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


def _moment(one: Any, place: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    tags = {key: place[name].get(getattr(one.tag, name)) for key, name in _DIMENSIONS.items()}
    return tags | {
        "start": one.start,
        "when": formats.moment(one.start),
        "kind": one.kind,
        "env": shown(one.tag.env or "", 60),
        "what": shown(one.what, 160),
        "count": one.count,
        "level": one.level.value,
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
