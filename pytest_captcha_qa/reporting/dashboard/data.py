"""Everything the page shows, gathered from the dataset, the figures, the comparison and the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain

from pytest_captcha_qa import __version__
from pytest_captcha_qa.errors import BaselineMissing
from pytest_captcha_qa.reporting.comparison.releases import MetricChange, Regression, Source, compare, read_sides
from pytest_captcha_qa.reporting.dashboard import queries
from pytest_captcha_qa.reporting.dashboard.asking import Asked, Judged
from pytest_captcha_qa.reporting.dashboard.conformance import matrices
from pytest_captcha_qa.reporting.dashboard.formats import shown, whole
from pytest_captcha_qa.reporting.dashboard.gating import rule_rows
from pytest_captcha_qa.reporting.dashboard.headline import headline, standing, without_waived
from pytest_captcha_qa.reporting.dashboard.model import (
    Dashboard,
    Headline,
    Level,
    Matrix,
    PoolView,
    RuleRow,
    Tag,
    VersionRow,
)
from pytest_captcha_qa.reporting.dashboard.movers import movers
from pytest_captcha_qa.reporting.dashboard.releases import UNKNOWN, Known, environments, judged, known_releases, ordered
from pytest_captcha_qa.reporting.dataset import Dataset
from pytest_captcha_qa.reporting.figures import Figures, Pool, figures, figures_of
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.wording import counted

MOST_RELEASES = 200
MOST_POOLS = 24
MOST_FORM_POINTS = 6000

_RUNS = "SELECT count(*) FROM runs WHERE list_contains($envs, env)"


@dataclass(frozen=True, slots=True)
class Compared:
    """What changed in one environment, and what was left out of that."""

    changes: tuple[MetricChange, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a page is about: its environments, how many are left out, their releases, and which of them are judged."""

    envs: Sequence[str]
    others: int
    known: Sequence[Known]
    releases: Mapping[str, Sequence[str]]
    judged: Sequence[Judged]

    @property
    def first(self) -> datetime | None:
        """When the first attempt was, None where none has a time."""
        return min((one.first for one in self.known if one.first is not None), default=None)

    @property
    def last(self) -> datetime | None:
        """When the last attempt was, None where none has a time."""
        return max((one.last for one in self.known if one.last is not None), default=None)


def choose(dataset: Dataset, asked: Asked) -> Chosen:
    """Return what the page is about.

    Raises:
        UnknownName: the environment or a release has no record.
        BaselineMissing: no environment has the baseline.
    """
    envs, others = environments(dataset, asked.env)
    known = known_releases(dataset, envs)
    releases = ordered(known, envs)
    found = judged(dataset, releases, candidate=asked.candidate, baseline=asked.baseline)
    return Chosen(envs, others, known, releases, found)


def collect(dataset: Dataset, asked: Asked) -> Dashboard:
    """Return the content of the page.

    Raises:
        UnknownName: the environment or a release has no record.
        BaselineMissing: no environment has the baseline.
    """
    return gathered(dataset, choose(dataset, asked), asked)


def gathered(dataset: Dataset, about: Chosen, asked: Asked) -> Dashboard:
    """Return the content of a page about what was chosen."""
    envs, others, chosen = about.envs, about.others, about.judged
    by_type, by_form = figures_of(dataset, [("release",), ("release", "form")])
    compared = {one.env: _compared(dataset, one, _several(by_form, one.env), asked) for one in chosen}
    rules = {one.env: _rules(dataset, one, asked) for one in chosen}
    found = _shown(by_type, by_form, about.releases)
    pools, notes = _pools(found)
    grids = list(matrices(dataset, envs, asked.waiving))
    return replace(
        _outline(dataset, about, asked),
        headlines=sorted(_headlines(dataset, chosen, compared, grids, rules, asked), key=_badness),
        movers=movers(chain.from_iterable(one.changes for one in compared.values())),
        rules=list(chain.from_iterable(rules.values())),
        pools=pools,
        figures=found,
        bars=list(queries.bars(dataset, chosen, {pool.pool: pool.key for pool in pools})),
        matrices=grids,
        versions=list(_versions(dataset, chosen)),
        slowest=queries.slowest(dataset, chosen, asked.page),
        notes=[
            *asked.notes,
            *([f"{counted(others, 'environment')} with older runs are left out; name one to see it"] if others else []),
            *notes,
            *(one.fault for one in chosen if one.fault),
            *chain.from_iterable(one.notes for one in compared.values()),
        ],
    )


def _outline(dataset: Dataset, about: Chosen, asked: Asked) -> Dashboard:
    """Return the page with what needs no statistics: what the records are, and what happened when."""
    envs = list(about.releases)
    [(runs,)] = dataset.rows(_RUNS, {"envs": envs})
    return Dashboard(
        title=_title(about.judged),
        made=asked.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=f"pytest-captcha-qa {__version__}",
        attempts=sum(one.attempts for one in about.known),
        runs_count=runs,
        first=queries.iso(about.first),
        last=queries.iso(about.last),
        releases=about.releases,
        compared={one.env: (one.candidate, one.baseline) for one in about.judged},
        moments=queries.moments(dataset, envs, about.first, about.last),
        runs=queries.runs(dataset, envs),
        problems=dataset.problems,
    )


def _title(chosen: Sequence[Judged]) -> str:
    if len(chosen) == 1:
        release = f", release {shown(chosen[0].candidate, 60)}" if chosen[0].candidate is not None else ""
        return f"{shown(chosen[0].env, 60)}{release}"
    names = ", ".join(shown(one.env, 60) for one in chosen)
    return f"{counted(len(chosen), 'environment')}: {names}" if chosen else "No records"


def _several(by_form: Sequence[Figures], env: str) -> set[str]:
    """Return the forms of an environment that are not alone in their pool."""
    forms: dict[Pool, set[str]] = {}
    for one in by_form:
        if one.pool.env == env and one.pool.form is not None:
            forms.setdefault(whole(one.pool), set()).add(one.pool.form)
    return {form for found in forms.values() if len(found) > 1 for form in found}


def _compared(dataset: Dataset, one: Judged, several: Set[str], asked: Asked) -> Compared:
    """Return the changes by type, on which the verdict rests, and by form where a type has several."""
    if one.candidate is None or one.baseline is None:
        return Compared()
    before, after = (Source(dataset, one.env, release, release) for release in (one.baseline, one.candidate))
    rule = Regression(asked.alpha, asked.min_effect)
    try:
        sides = read_sides(before, after)
    except BaselineMissing as missing:
        return Compared(notes=(missing.message,))
    by_type = compare(sides, regression=rule, own_rule_forms=asked.own_rule_forms)
    others = several - {*asked.own_rule_forms}
    by_form = compare(sides, regression=rule, own_rule_forms=others).changes if others else ()
    return Compared((*by_type.changes, *(one for one in by_form if one.pool.form in others)), by_type.notes)


def _shown(
    by_type: Sequence[Figures], by_form: Sequence[Figures], releases: Mapping[str, Sequence[str]]
) -> list[Figures]:
    """Return the figures by release, the oldest first: over all forms, then by form, as many as a page can hold."""
    order = {(env, release): place for env, known in releases.items() for place, release in enumerate(known)}
    least = {env: max(len(known) - MOST_RELEASES, 0) for env, known in releases.items()}
    recent = partial(_recent, order=order, least=least)
    return [*recent(by_type), *recent(by_form)[-MOST_FORM_POINTS:]]


def _recent(
    found: Sequence[Figures], *, order: Mapping[tuple[str, str], int], least: Mapping[str, int]
) -> list[Figures]:
    """Return those of the newest releases of the environments on the page, in the order of the releases."""
    placed = [(order.get((one.pool.env, one.release or ""), -1), one) for one in found if one.pool.env in least]
    kept = [(place, one) for place, one in placed if place >= least[one.pool.env]]
    return [replace(one, release=one.release or UNKNOWN) for _, one in sorted(kept, key=lambda pair: pair[0])]


def _pools(found: Sequence[Figures]) -> tuple[list[PoolView], list[str]]:
    """Return the pools that have panels, the largest ones where there are too many, and what is to be said of that."""
    attempts = Counter[Pool]()
    forms: dict[Pool, set[str]] = {}
    for one in found:
        if one.pool.form is None:
            attempts[one.pool] += one.attempts
        else:
            forms.setdefault(whole(one.pool), set()).add(one.pool.form)
    chosen = sorted(pool for pool, _ in attempts.most_common(MOST_POOLS))
    left = len(attempts) - len(chosen)
    said = f"{counted(left, 'pool')} with the fewest attempts have no panels here; name an environment to see more"
    views = [
        PoolView(key=f"p{n}", pool=pool, forms=tuple(sorted(forms.get(pool, ())))) for n, pool in enumerate(chosen)
    ]
    return views, [said] if left else []


def _versions(dataset: Dataset, chosen: Sequence[Judged]) -> Iterator[VersionRow]:
    """Yield what each version of the worker measured in the judged releases."""
    for one in chosen:
        if one.candidate is None:
            continue
        where = "env = ? AND release = ?"
        for part in figures(dataset, by=("worker_version",), where=where, parameters=[one.env, one.candidate]):
            tag = Tag(part.pool.env, part.pool.project, part.pool.type)
            yield VersionRow(tag=tag, pool=named(part.pool), version=part.worker_version or UNKNOWN, figures=part)


def _badness(head: Headline) -> tuple[int, str]:
    """Order verdicts, the worst first."""
    return [Level.BAD, Level.WARN, Level.UNKNOWN, Level.SAME, Level.GOOD].index(head.level), head.env


def _rules(dataset: Dataset, one: Judged, asked: Asked) -> list[RuleRow]:
    result = asked.judge(dataset, one)
    return rule_rows(result) if result is not None else []


def _headlines(
    dataset: Dataset,
    chosen: Sequence[Judged],
    compared: Mapping[str, Compared],
    grids: Sequence[Matrix],
    rules: Mapping[str, Sequence[RuleRow]],
    asked: Asked,
) -> Iterator[Headline]:
    by_env = {grid.env: grid for grid in grids}
    for one in chosen:
        changes, grid = compared[one.env].changes, by_env.get(one.env)
        known = standing(dataset, one, changes=changes, matrix=grid, rules=rules[one.env])
        yield headline(without_waived(known, asked.waiving))
