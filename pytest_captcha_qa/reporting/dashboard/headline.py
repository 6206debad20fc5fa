"""The verdict on a release in one sentence, from its newest run, its probes, its gate and the comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_captcha_qa.reporting.comparison.releases import Change, MetricChange
from pytest_captcha_qa.reporting.dashboard.asking import Judged
from pytest_captcha_qa.reporting.dashboard.model import Headline, Level, Matrix, RuleRow
from pytest_captcha_qa.reporting.dashboard.movers import effect_of, level_of
from pytest_captcha_qa.reporting.dataset import Dataset, open_dataset
from pytest_captcha_qa.reporting.pools import briefly
from pytest_captcha_qa.reporting.waiving import Waiving
from pytest_captcha_qa.reporting.wording import counted, shown, some_of

# Of every test the last try. A form that was only seen to refuse has passed nothing: one that refuses everybody does
# that, too. Two refused fresh tokens are the form's fault where another form of the type took one.
_STATES = """
WITH own AS (
    SELECT * FROM attempts WHERE env = $env AND run_id = $run AND NOT (purpose = 'probe' AND expect = 'refuse')
), controls AS (
    SELECT type, account, provider, key_mode, list(DISTINCT slug) AS slugs FROM own
    WHERE expect = 'accept' AND outcome = 'ok' GROUP BY ALL
), judged AS (
    SELECT o.slug, o.nodeid, o.variant, o.ts, o.outcome, o.line, o.expect,
        CASE WHEN o.error_code = 'refused_twice' AND o.fault = 'undetermined'
            AND len(list_filter(c.slugs, lambda one: one <> o.slug)) > 0 THEN 'product' ELSE o.fault END AS fault
    FROM own o LEFT JOIN controls c USING (type, account, provider, key_mode)
), last AS (
    SELECT * FROM judged QUALIFY nodeid IS NULL OR row_number() OVER (
        PARTITION BY slug, nodeid, variant ORDER BY ts DESC, line DESC) = 1
)
SELECT slug, count(*) FILTER (outcome = 'ok' AND expect = 'accept'),
    count(*) FILTER (outcome <> 'ok' AND fault = 'product'),
    count(*) FILTER (outcome <> 'ok' AND fault IS DISTINCT FROM 'product'), count(*)
FROM last GROUP BY slug ORDER BY slug
"""
_NEWEST_FILES = """
SELECT DISTINCT run_id, file FROM attempts WHERE env = $env AND run_id = (
    SELECT arg_max(run_id, started_at) FROM runs WHERE env = $env AND release IS NOT DISTINCT FROM $release
)
"""
_RESERVATIONS = """
SELECT count(*) FILTER (NOT complete), count(*) FILTER (release_changed), coalesce(sum(lost), 0), count(*)
FROM runs WHERE env = $env AND release IS NOT DISTINCT FROM $release
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one release when its verdict is written."""

    judged: Judged
    broken: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    passed: int = 0
    forms: int = 0
    incomplete: int = 0
    changed: int = 0
    lost: int = 0
    runs: int = 0
    changes: Sequence[MetricChange] = ()
    matrix: Matrix | None = None
    rules: Sequence[RuleRow] = field(default_factory=tuple)

    @property
    def worse(self) -> list[MetricChange]:
        """What got worse, our side first."""
        found = [one for one in self.changes if one.change is Change.WORSE]
        return sorted(found, key=lambda one: (level_of(one) is not Level.BAD, -abs(one.effect or 0)))


def standing(
    dataset: Dataset, one: Judged, *, changes: Sequence[MetricChange], matrix: Matrix | None, rules: Sequence[RuleRow]
) -> Standing:
    """Return how a release stands, from its newest run and from what others have found out."""
    asked = {"env": one.env, "release": one.candidate}
    states = _states(dataset, asked)
    incomplete, changed, lost, runs = dataset.rows(_RESERVATIONS, asked)[0]
    broken = tuple(str(slug) for slug, _, product, _, _ in states if product)
    return Standing(
        judged=one,
        broken=broken,
        unclear=tuple(str(slug) for slug, passed, product, other, _ in states if not product and other and not passed),
        passed=sum(1 for _, passed, product, other, _ in states if passed and not product and not other),
        forms=len(states),
        incomplete=incomplete,
        changed=changed,
        lost=int(lost),
        runs=runs,
        changes=changes,
        matrix=matrix,
        rules=rules,
    )


def _states(dataset: Dataset, asked: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """Return how the forms did in the newest run.

    Its files are opened anew: fields that only this asks for would have to be read from the whole history. Where that
    is packed, they are at hand, and the files may be gone.
    """
    found = dataset.rows(_NEWEST_FILES, asked)
    if not found:
        return []
    run, files = {"env": asked["env"], "run": found[0][0]}, [Path(file) for _, file in found]
    if not all(file.is_file() for file in files):
        return dataset.rows(_STATES, run)
    with open_dataset(files) as newest:
        return newest.rows(_STATES, run)


def without_waived(standing: Standing, waiving: Waiving) -> Standing:
    """Return it with the broken forms apart whose failures are waived on the day."""
    waived = tuple(form for form in standing.broken if waiving.in_force(form))
    return replace(standing, waived=waived, broken=tuple(form for form in standing.broken if form not in waived))


def headline(standing: Standing) -> Headline:
    """Return the verdict: the strongest thing that can be said, in one sentence, with the rest as facts."""
    (level, word, said), *others = _verdicts(standing)
    one = standing.judged
    release = (
        f"Release {shown(one.candidate, 60)}"
        if one.candidate is not None
        else "The newest release (its name is unknown)"
    )
    sentence = f"{release} on {shown(one.env, 60)} {said}"
    return Headline(
        env=one.env, level=level, word=word, sentence=sentence, facts=(*_besides(others), *_facts(standing))
    )


def _besides(others: Sequence[tuple[Level, str, str]]) -> Iterator[str]:
    """Yield what is wrong besides what the sentence says."""
    yield from (f"It {said}" for level, _, said in others if level in (Level.BAD, Level.WARN))


def _verdicts(standing: Standing) -> Iterator[tuple[Level, str, str]]:
    """Yield what applies, the strongest first: (level, word, the rest of the sentence)."""
    yield from _failures(standing)
    worse, baseline = standing.worse, standing.judged.baseline
    if worse:
        level = level_of(worse[0])
        word = "Got worse" if level is Level.BAD else "Slower provider"
        yield level, word, f"got worse than {shown(str(baseline), 60)}: {_told(worse)}."
    if not standing.passed:
        yield Level.UNKNOWN, "No verdict", "has no form that passed in its newest run, so nothing is known of it."
    if standing.unclear:
        names = _names(standing.unclear)
        yield (
            Level.WARN,
            "Not all measured",
            f"has no verdict on {names}: provider, network or an unclear answer stood in the way.",
        )
    yield _works(standing)


def _works(standing: Standing) -> tuple[Level, str, str]:
    """Return what is said of a release that nothing speaks against; what was not compared is not called good."""
    works = f"works: {standing.passed} of {counted(standing.forms, 'form')} passed in its newest run"
    if standing.judged.baseline is None:
        return (
            Level.UNKNOWN,
            "Works, not compared",
            f"{works}; there is no complete run of an earlier release to compare with.",
        )
    baseline = shown(standing.judged.baseline, 60)
    if all(one.change is Change.NOT_ENOUGH_DATA for one in standing.changes):
        return Level.UNKNOWN, "Not enough data", f"{works}; there is not enough data to compare it with {baseline}."
    return Level.GOOD, "No worse", f"{works} and nothing that can be compared got worse than in {baseline}."


def _failures(standing: Standing) -> Iterator[tuple[Level, str, str]]:
    found = [finding for finding in (standing.matrix.findings if standing.matrix else ()) if finding[1] is Level.BAD]
    if standing.broken:
        verb = "fails" if len(standing.broken) == 1 else "fail"
        yield (
            Level.BAD,
            "Broken",
            f"is broken: {_names(standing.broken)} {verb} by the site's own fault in its newest run.",
        )
    if found:
        forms = list(dict.fromkeys(str(tag.form) for tag, _, _ in found))
        yield Level.BAD, "Unsafe", f"accepts what it must refuse: {counted(len(found), 'finding')} at {_names(forms)}."
    breached = [rule for rule in standing.rules if rule.level is Level.BAD]
    if breached:
        more = f" (and {len(breached) - 1} more)" if len(breached) > 1 else ""
        yield Level.BAD, "Gate breached", f"breaches the gate: {shown(breached[0].sentence, 240)}{more}"


def _told(worse: Sequence[MetricChange]) -> str:
    told = [f"{briefly(one.pool)}: {one.metric.label} {effect_of(one)}" for one in worse[:3]]
    more = f"; and {len(worse) - 3} more" if len(worse) > 3 else ""
    return "; ".join(told) + more


def _facts(standing: Standing) -> Iterator[str]:
    """Yield what else belongs to the verdict."""
    if standing.passed and (standing.broken or standing.unclear or standing.worse):
        yield f"{standing.passed} of {counted(standing.forms, 'form')} passed in the newest run."
    if standing.waived:
        yield f"Failures of {_names(standing.waived)} are waived."
    few = Counter(one.lacking for one in standing.changes if one.change is Change.NOT_ENOUGH_DATA)
    if few:
        all_of_them = counted(len(standing.changes), "comparison")
        (enough, _), *_ = few.most_common(1)
        yield f"Not enough data for {few.total()} of {all_of_them}: these are not known to be good ({enough})."
    if standing.lost:
        yield f"{counted(standing.lost, 'attempt')} of this release started and left no record."
    if standing.incomplete:
        yield f"{standing.incomplete} of {counted(standing.runs, 'run')} of this release are incomplete."
    if standing.changed:
        yield "The release changed while a run was under way: what it measured belongs to two releases."


def _names(forms: Sequence[str]) -> str:
    return some_of([shown(form, 40) for form in forms])
