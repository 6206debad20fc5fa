"""A comparison for people: a table on the terminal, plain text where it is none, and sentences on what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pytest_captcha_qa.model.metrics import Kind, Metric
from pytest_captcha_qa.reporting.comparison.changes import change_by
from pytest_captcha_qa.reporting.comparison.releases import MetricChange, ReleaseComparison
from pytest_captcha_qa.reporting.figures import Figures, Size
from pytest_captcha_qa.reporting.numbers import NOTHING, percent, seconds
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.stats.comparing import Change
from pytest_captcha_qa.reporting.wording import counted, short

# What calls for action comes first; what says nothing has no row.
_STYLES = {Change.WORSE: "bold red", Change.BETTER: "green", Change.SAME: ""}
# Lines of a log are not cut at the width of a terminal that nobody has.
_WIDE = 200


def print_table(found: ReleaseComparison) -> None:
    """Print one row for each metric that something can be said of, colours and lines on a terminal only."""
    told = [one for change in _STYLES for one in found.of(change)]
    if not told:
        return
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDE
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column("change")
    for heading in ("captcha", "metric"):
        table.add_column(heading, overflow="fold")
    for heading in (short(found.baseline), short(found.candidate), "change by", "attempts", "runs"):
        table.add_column(Text(heading), justify="right", overflow="fold")
    for one in told:
        table.add_row(*map(Text, _cells(one)), style=_STYLES[one.change])
    console.print(table)


def _cells(one: MetricChange) -> tuple[str, ...]:
    sides = (one.baseline, one.candidate)
    sizes = [side.size(one.metric) for side in sides]
    values = [_value(side, one.metric) for side in sides]
    by = change_by(one.metric, one.effect, one.shift)
    numbers = (" -> ".join(str(size[place]) for size in sizes) for place in (0, 1))
    return (str(one.change), named(one.pool), one.metric.name, *values, by or NOTHING, *numbers)


def _value(side: Figures, metric: Metric) -> str:
    if metric.kind is Kind.TIME:
        times = side.times.get(metric.name)
        return seconds(times.median if times is not None else None)
    return percent(side.share(metric))


def sentences(found: ReleaseComparison) -> Iterator[str]:
    """Yield what changed, what was left out, and the sum in one sentence."""
    for change in (Change.WORSE, Change.BETTER):
        yield from (one.sentence for one in found.of(change))
    lacking = found.of(Change.NOT_ENOUGH_DATA)
    if lacking and len(lacking) < len(found.changes):
        yield f"not enough data for {counted(len(lacking), 'metric')}, not listed: {_too_little(found, lacking)}"
    yield from (f"note: {note}" for note in found.notes)
    yield f"{short(found.candidate)} against {short(found.baseline)} in {short(found.env)}: {_sum(found, lacking)}"


def _sum(found: ReleaseComparison, lacking: Sequence[MetricChange]) -> str:
    metrics = counted(len(found.changes), "metric")
    if lacking and len(lacking) == len(found.changes):
        return f"not enough data for any of {metrics}: {_too_little(found, lacking)}"
    parts = [f"{len(found.of(change))} {change}" for change in (*_STYLES, Change.NOT_ENOUGH_DATA) if found.of(change)]
    return f"{', '.join(parts)} of {metrics}" if parts else "nothing was measured that could be compared"


def _too_little(found: ReleaseComparison, lacking: Sequence[MetricChange]) -> str:
    """Return how much there is at most of the metrics, and what would be enough, of most of them if they differ."""
    before = _most([one.baseline.size(one.metric) for one in lacking], found.baseline)
    after = _most([one.candidate.size(one.metric) for one in lacking], found.candidate)
    enough = Counter(one.lacking for one in lacking).most_common()
    most = "; for most of them " if len(enough) > 1 else "; "
    return f"at most {before} and {after}{most}{enough[0][0]}"


def _most(sizes: Sequence[Size], release: str) -> str:
    attempts, runs = (max(column) for column in zip(*sizes, strict=True))
    return f"{counted(attempts, 'attempt')} in {counted(runs, 'run')} of {short(release)}"
