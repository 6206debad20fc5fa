"""Everything the page shows, as plain values: nothing here knows DuckDB, Altair or HTML.

Single texts stand as the records have them, and `page` makes them inert; texts made of several are inert already. Times
are seconds, shares lie between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pytest_captcha_qa.reporting.figures import Figures, Pool
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.wording import short


class Level(StrEnum):
    """How bad a thing is; also the name of its style."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"
    SAME = "same"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tag:
    """What the filters look at; None: not about one of them, so no filter on it hides the thing."""

    env: str | None = None
    project: str | None = None
    type: str | None = None
    form: str | None = None


DIMENSIONS: Mapping[str, str] = {"e": "env", "p": "project", "t": "type", "f": "form"}
"""What filters look at, by its short name in the page's address and attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict on one release of one environment in a sentence, and what else belongs to it."""

    env: str
    level: Level
    word: str
    sentence: str
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """One metric of one pool in two releases, as a row: values are written out, such as `1.2 s`."""

    tag: Tag
    level: Level
    word: str
    pool: str
    what: str
    side: str
    baseline: str
    candidate: str
    effect: str
    n: str
    runs: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """What one rule of the gate says."""

    tag: Tag
    level: Level
    word: str
    rule: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """What may be drawn in one picture: one environment, project, type, provider, key mode and time scale."""

    key: str
    pool: Pool
    forms: tuple[str, ...]

    @property
    def tag(self) -> Tag:
        """What filters see of it; a filter by form swaps its numbers instead of hiding it."""
        return Tag(env=self.pool.env, project=self.pool.project, type=self.pool.type)

    @property
    def label(self) -> str:
        """Its name for the reader."""
        return named(self.pool)

    @property
    def place(self) -> str:
        """The environment it belongs to."""
        return short(self.pool.env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A part of a distribution: a release's attempts between two times; `newest`: it is the release under test."""

    pool: str
    chart: str
    side: str
    release: str
    newest: bool
    start: float
    end: float
    count: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What the probes of one family found at one form."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Forms x families of one run with probes."""

    env: str
    run_id: str
    release: str | None
    families: tuple[str, ...]
    rows: tuple[tuple[Tag, str, tuple[Cell, ...]], ...]
    findings: tuple[tuple[Tag, Level, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What happened in one span of time: so many outages or degradations of a kind, or a release seen first."""

    tag: Tag
    start: str
    end: str
    kind: str
    what: str
    count: int
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """What one version of the worker measured in the release that is judged."""

    tag: Tag
    pool: str
    version: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """One of the slowest attempts; `link` is relative to the page, None where there is no way from there."""

    tag: Tag
    ts: str
    side: str
    seconds: float
    parts: str
    release: str
    run_id: str
    outcome: str
    record: str
    link: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run: the newest ones are listed."""

    tag: Tag
    run_id: str
    release: str
    started: str
    attempts: int
    lost: int
    complete: bool
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The whole page."""

    title: str
    made: str
    tool: str
    attempts: int = 0
    runs_count: int = 0
    first: str | None = None
    last: str | None = None
    headlines: Sequence[Headline] = ()
    movers: Sequence[Mover] = ()
    rules: Sequence[RuleRow] = ()
    pools: Sequence[PoolView] = ()
    releases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    compared: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    figures: Sequence[Figures] = ()
    bars: Sequence[Bar] = ()
    matrices: Sequence[Matrix] = ()
    moments: Sequence[Moment] = ()
    versions: Sequence[VersionRow] = ()
    slowest: Sequence[Slow] = ()
    runs: Sequence[RunRow] = ()
    notes: Sequence[str] = ()
    problems: Sequence[str] = ()

    def choices(self, name: str) -> list[str]:
        """Return the values of one filter: `env`, `project`, `type` or `form`."""
        tags: list[Any] = [pool.tag for pool in self.pools]
        tags += [Tag(form=form) for pool in self.pools for form in pool.forms]
        tags += [mover.tag for mover in self.movers] + [row.tag for row in self.runs]
        tags += [tag for matrix in self.matrices for tag, _, _ in matrix.rows]
        return sorted({value for tag in tags if (value := getattr(tag, name)) is not None})
