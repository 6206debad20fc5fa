"""The groups that rules are held against: pools that may be counted together, forms with rules of their own alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.errors import ProviderError, all_errors
from pytest_captcha_qa.reporting.figures import Pool, Rows
from pytest_captcha_qa.reporting.gate.subject import Subject
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.stats.bounds import Bound, rate_bound
from pytest_captcha_qa.reporting.wording import some_of

# Names of events, as engine.events has them.
_RENEWED, _REFUSED_ONCE = "token_renewed", "token_refused_once"


@dataclass(frozen=True, slots=True)
class FormCounts:
    """What the positive checks on one form in one run come to.

    `repeats` are the submits beyond the first of `keys` captchas, `again` those of them that had any; `outages` the
    attempts left out of everything else.
    """

    slug: str
    run: str
    passed: int
    judged: int
    keys: int
    repeats: int
    again: int
    outages: int


@dataclass(frozen=True, slots=True)
class Group:
    """A pool and its forms; `forgiven`: how many repeated solves were the provider's doing, as events tell."""

    pool: Pool
    counts: tuple[FormCounts, ...] = field(default=())
    forgiven: int = 0

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms in it, each once."""
        return tuple(dict.fromkeys(count.slug for count in self.counts))

    def total(self, name: str) -> int:
        """Return the sum of one of the counts over the forms."""
        return sum(int(getattr(count, name)) for count in self.counts)

    def by_run(self, name: str) -> list[int]:
        """Return the sum of one of the counts in each run: attempts of one run are correlated."""
        found: dict[str, int] = {}
        for count in self.counts:
            found[count.run] = found.get(count.run, 0) + int(getattr(count, name))
        return list(found.values())

    def least_share(self, *, forgiven: bool) -> float:
        """Return the lower bound of the share of repeated solves, without those that the provider caused if `forgiven`.

        What is counted for it are captchas that needed more than one, so that a single one that needed many is one.
        """
        again = self.total("again")
        held = max(again - self.forgiven, 0) if forgiven else again
        counts = [count * held / again for count in self.by_run("again")] if again else [0]
        return rate_bound(counts, self.by_run("keys"), Bound.LOWER) if again else 0.0

    @property
    def named(self) -> str:
        """The pool in words."""
        return named(self.pool)


def find_groups(dataset: Rows, subject: Subject, alone: Collection[str]) -> list[Group]:
    """Return the groups of what is judged; forms that are `alone` are groups of their own."""
    found = dataset.rows(
        "SELECT project, type, provider, key_mode, time_scale, slug, run_id,"
        " count(*) FILTER (NOT outage AND verify_status = 'pass'),"
        " count(*) FILTER (NOT outage AND verify_status IN ('pass', 'fail')),"
        " count(*) FILTER (NOT outage AND submits > 0),"
        " coalesce(sum(submits - 1) FILTER (NOT outage AND submits > 0), 0),"
        " count(*) FILTER (NOT outage AND submits > 1), count(*) FILTER (outage)"
        f" FROM positive WHERE {subject.where} AND outcome <> 'lost' GROUP BY ALL ORDER BY ALL",
        subject.parameters,
    )
    forgiven = _forgiven(dataset, subject)
    pools: dict[Pool, list[FormCounts]] = {}
    for project, kind, provider, key_mode, scale, slug, run, *counts in found:
        form = str(slug) if slug in alone else None
        pool = Pool(subject.env, str(project), str(kind), str(provider), str(key_mode), float(str(scale)), form)
        pools.setdefault(pool, []).append(FormCounts(str(slug), str(run), *(int(str(count)) for count in counts)))
    return [
        Group(pool, tuple(counts), sum(forgiven.get((slug, pool.provider), 0) for slug in {one.slug for one in counts}))
        for pool, counts in sorted(pools.items(), key=lambda item: (item[0].type, item[0].form or "", str(item[0])))
    ]


def _forgiven(dataset: Rows, subject: Subject) -> Mapping[tuple[str, str], int]:
    """Return by form and provider how often a captcha was solved again because the provider failed."""
    whys = sorted(code for code, error in all_errors().items() if issubclass(error, ProviderError))
    found = dataset.rows(
        "WITH told AS (SELECT data->>'$.slug' AS slug, name, data->>'$.why' AS why FROM events"
        f" WHERE {subject.where}), solved AS (SELECT DISTINCT slug, provider FROM positive WHERE {subject.where})"
        " SELECT slug, provider, count(*) FROM told JOIN solved USING (slug)"
        " WHERE name = ? OR (name = ? AND why IN (SELECT unnest(?))) GROUP BY ALL",
        (*subject.parameters, *subject.parameters, _REFUSED_ONCE, _RENEWED, whys),
    )
    return {(str(slug), str(provider)): int(str(count)) for slug, provider, count in found}


def with_failures(group: Group) -> str:
    """Return in words which of several forms did not always pass."""
    totals = {slug: [one for one in group.counts if one.slug == slug] for slug in group.forms}
    sums = {slug: (sum(one.passed for one in ones), sum(one.judged for one in ones)) for slug, ones in totals.items()}
    short = [f"{slug} {passed} of {judged}" for slug, (passed, judged) in sums.items() if passed < judged]
    return some_of(short) if len(totals) > 1 else ""
