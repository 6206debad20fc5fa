"""The gate's judgement: every rule of `[gate]` held against what the records say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_captcha_qa.model.gate import GateRules, Rule, Rules
from pytest_captcha_qa.model.metrics import METRICS
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.figures import Pool, Rows
from pytest_captcha_qa.reporting.gate.coverage import Seen, forms_seen, judge_ages, judge_coverage
from pytest_captcha_qa.reporting.gate.groups import Group, find_groups
from pytest_captcha_qa.reporting.gate.regression import judge_regression
from pytest_captcha_qa.reporting.gate.results import RECORDS, RELEASE, GateResult, RuleResult, Status
from pytest_captcha_qa.reporting.gate.subject import Asked, Subject, find_subject, nothing_recorded
from pytest_captcha_qa.reporting.gate.thresholds import judge_group
from pytest_captcha_qa.reporting.wording import counted, some_of


def judge_gate(dataset: Rows, rules: GateRules, asked: Asked) -> GateResult:
    """Return what the rules say of a run or a release, from the records alone.

    Nothing on record is 11, a run without its end 12, a release that changed during its run 11 whatever else it shows.
    """
    subject = find_subject(dataset, asked)
    if subject is None:
        return nothing_recorded(asked)
    if subject.changed:
        said = (
            f"the release under test changed during {_runs(subject.changed)}, so what was measured is of neither; "
            "run again when the deployment is through"
        )
        return _answer(subject, asked, [*_records(subject, asked), RuleResult(RELEASE, Status.NOT_ENOUGH_DATA, said)])
    alone = rules.own_forms | {waiver.form for waiver in asked.waivers if waiver.form and waiver.probe is None}
    forms = forms_seen(dataset, subject, asked)
    results = [*_records(subject, asked), *_measured(dataset, subject)]
    results += _of_groups(dataset, subject, rules, alone, forms)
    results += judge_coverage(forms, rules, _waived_forms(asked))
    results += judge_ages(dataset, forms, rules, asked)
    regressed = judge_regression(dataset, subject, asked, rules, alone)
    answer = _answer(subject, asked, [*results, *regressed.results])
    compared = regressed.comparison.notes if regressed.comparison is not None else ()
    notes = (*subject.notes, *_notes(dataset, subject, forms, asked), *compared, *_unneeded(asked, answer))
    return replace(answer, baseline=regressed.baseline, comparison=regressed.comparison, notes=notes)


def _answer(subject: Subject, asked: Asked, results: Sequence[RuleResult]) -> GateResult:
    judged = tuple(result.under(_applying(asked), asked.today) for result in results)
    return GateResult(subject.env, subject.label, subject.release, subject.runs, judged)


def _applying(asked: Asked) -> list[Waiver]:
    """Return the waivers: those in force first, of these the ones of a rule at a form."""
    return sorted(asked.waivers, key=lambda one: (one.expired(asked.today), one.rule is None, not one.form))


def _records(subject: Subject, asked: Asked) -> Iterator[RuleResult]:
    """Yield that a run has no end; of one that just ends its own verdict says so."""
    if subject.incomplete and asked.since is None:
        said = f"the records of {_runs(subject.incomplete)} are incomplete: a writer ended early, or lines are damaged"
        yield RuleResult(RECORDS, Status.NO_VERDICT, said)


def _measured(dataset: Rows, subject: Subject) -> Iterator[RuleResult]:
    """Yield that nothing at all was measured, and whether an outage is why."""
    ((attempts, outages, measured),) = dataset.rows(
        "SELECT count(*), count(*) FILTER (outage), count(*) FILTER (verify_status IN ('pass', 'fail'))"
        f" FROM attempts WHERE {subject.where}",
        subject.parameters,
    )
    if measured:
        return
    if attempts and attempts == outages:
        said = f"nothing was measured: all of {counted(int(str(attempts)), 'attempt')} met an outage"
        yield RuleResult(RECORDS, Status.NO_VERDICT, said)
    else:
        said = f"nothing was measured in {counted(int(str(attempts)), 'attempt')} of {subject.label}"
        yield RuleResult(RECORDS, Status.NOT_ENOUGH_DATA, said)


def _of_groups(
    dataset: Rows, subject: Subject, rules: GateRules, alone: Collection[str], forms: Mapping[str, Seen]
) -> Iterator[RuleResult]:
    groups = find_groups(dataset, subject, alone)
    for group in groups:
        pool = group.pool
        yield from judge_group(dataset, subject, group, rules.of(pool.type, project=pool.project, form=pool.form))
    there = {(group.pool.type, group.pool.form) for group in groups}
    for captcha, form in dict.fromkeys((seen.captcha, slug if slug in alone else None) for slug, seen in forms.items()):
        if (captcha, form) not in there:
            empty = Group(Pool(subject.env, "default", captcha, "", "", 1.0, form))
            yield from _unmeasured(empty, rules.of(captcha, form=form))


def _unmeasured(group: Group, rules: Rules) -> Iterator[RuleResult]:
    """Yield what the rules say of forms that no good token was tried on."""
    asked = {Rule.MIN_VERIFY_RATE: rules.min_verify_rate, Rule.MAX_RESOLVE_SHARE: rules.max_resolve_share}
    told = [(rule, METRICS[rule.partition("_")[2]].label) for rule, limit in asked.items() if limit is not None]
    for rule in (Rule.MAX_P90, Rule.WARN_P90):
        told += [(rule, METRICS[time].label) for time in rules.limits(rule, group.pool.type)]
    for rule, label in told:
        yield RuleResult(
            rule=rule,
            status=Status.NOT_ENOUGH_DATA,
            sentence=f"{label} of {group.named}: no good token was tried",
            pool=group.pool,
            forms=(group.pool.form,) if group.pool.form is not None else (),
            required=rules.requires(rule),
        )


def _waived_forms(asked: Asked) -> list[str]:
    return sorted(
        waiver.form
        for waiver in asked.waivers
        if waiver.form and waiver.probe is None
        and waiver.rule in (None, Rule.MIN_COVERAGE)
        and not waiver.expired(asked.today)
    )  # fmt: skip


def _notes(dataset: Rows, subject: Subject, forms: Mapping[str, Seen], asked: Asked) -> Iterator[str]:
    """Yield that key modes were judged apart, and which forms are new while others of their type are gone."""
    modes = sorted({mode for form in forms.values() for mode in form.key_modes})
    if len(modes) > 1:
        yield f"key modes {' and '.join(modes)} prove different things and are judged apart"
    known = dataset.rows(
        f"SELECT slug, type FROM positive WHERE env = ? AND NOT ({subject.where}) GROUP BY ALL ORDER BY ALL",
        (subject.env, *subject.parameters),
    )
    yield from _of_the_future(dataset, subject, asked)
    before = {str(slug): str(kind) for slug, kind in known}
    for slug, form in forms.items():
        gone = [old for old, kind in before.items() if kind == form.captcha and old not in forms]
        if before and slug not in before and gone:
            yield f"form {slug!r} is new, {some_of(gone)} of its type gone: a form that was renamed has no history"


def _of_the_future(dataset: Rows, subject: Subject, asked: Asked) -> Iterator[str]:
    query = "SELECT run_id FROM runs WHERE env = ? AND started_at > ? ORDER BY started_at, run_id"
    names = [str(name) for (name,) in dataset.rows(query, (subject.env, asked.latest))]
    if names:
        said = f"{counted(len(names), 'run')} began in the future ({some_of(names)}): the clock of a machine is wrong"
        yield f"{said}; their passes are no recent ones"


def _unneeded(asked: Asked, answer: GateResult) -> Iterator[str]:
    """Yield which waivers of rules nothing has failed of."""
    used = [result.waiver for result in answer.rules]
    for waiver in asked.waivers:
        if waiver.rule is not None and waiver not in used:
            past = f"has expired, its last day was {waiver.until}" if waiver.expired(asked.today) else "can go"
            yield f"nothing fails of what is waived by {waiver}; the waiver {past}"


def _runs(names: Sequence[str]) -> str:
    return f"run {names[0]}" if len(names) == 1 else f"runs {some_of([*names])}"
