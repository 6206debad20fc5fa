"""How many of the selected forms were measured, and how long ago each has passed last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pytest_captcha_qa.model.gate import GateRules, Rule
from pytest_captcha_qa.reporting.figures import Rows
from pytest_captcha_qa.reporting.gate.results import Number, RuleResult, Status
from pytest_captcha_qa.reporting.gate.subject import Asked, Subject
from pytest_captcha_qa.reporting.numbers import percent, span
from pytest_captcha_qa.reporting.wording import counted, some_of


@dataclass(frozen=True, slots=True)
class Seen:
    """What the records of what is judged have of one form.

    `measured`: the backend gave a verdict; `tried`: there were attempts, all of them outages if `outage`.
    """

    captcha: str
    measured: bool = False
    tried: bool = False
    outage: bool = False
    key_modes: tuple[str, ...] = ()


def forms_seen(dataset: Rows, subject: Subject, asked: Asked) -> dict[str, Seen]:
    """Return the forms that were to be measured, with what the records have of each."""
    found = dataset.rows(
        "SELECT slug, any_value(type), bool_or(verify_status IN ('pass', 'fail')), bool_and(outage),"
        " list(DISTINCT key_mode) FILTER (key_mode <> '')"
        f" FROM attempts WHERE {subject.where} AND NOT (purpose = 'probe' AND expect = 'refuse') GROUP BY slug",
        subject.parameters,
    )
    seen = {
        str(slug): Seen(str(kind), bool(measured), True, bool(outage), tuple(sorted(map(str, _items(modes)))))
        for slug, kind, measured, outage, modes in found
    }
    if asked.selected is None:
        return dict(sorted(seen.items()))
    return {slug: seen.get(slug, Seen(kind)) for slug, kind in asked.selected.items()}


def judge_coverage(forms: Mapping[str, Seen], rules: GateRules, waived: Sequence[str]) -> Iterator[RuleResult]:
    """Yield whether enough of the forms were measured; a form that is waived, or met an outage, breaches nothing."""
    if rules.min_coverage is None:
        return
    counting = {slug: form for slug, form in forms.items() if form.measured or slug not in waived}
    missing = [slug for slug, form in counting.items() if not form.measured]
    spared = [slug for slug in forms if slug not in counting]
    measured, selected = len(counting) - len(missing), len(counting)
    share = measured / selected if selected else 0.0
    status = _coverage_status(counting, missing, rules.min_coverage)
    said = (
        f"coverage: {measured} of {counted(selected, 'form')} measured ({percent(share)}), "
        f"at least {percent(rules.min_coverage)} asked"
        f"{f'; not measured: {some_of(missing)}' if missing else ''}"
        f"{'; an outage kept them from it' if status is Status.NO_VERDICT else ''}"
        f"{f'; waived: {some_of(spared)}' if spared else ''}"
    )
    numbers: dict[str, Number] = {"measured": measured, "selected": selected, "share": share}
    numbers["limit"] = rules.min_coverage
    yield RuleResult(Rule.MIN_COVERAGE, status, said, forms=tuple(missing), numbers=numbers)


def _coverage_status(counting: Mapping[str, Seen], missing: Sequence[str], least: float) -> Status:
    """Return what the coverage says; it is no verdict where an outage alone kept it from being enough."""
    selected = len(counting)
    if not selected:
        return Status.NOT_ENOUGH_DATA
    if (selected - len(missing)) / selected >= least:
        return Status.PASSED
    without_outage = selected - sum(not counting[slug].outage for slug in missing)
    return Status.NO_VERDICT if without_outage / selected >= least else Status.BREACHED


def judge_ages(dataset: Rows, forms: Mapping[str, Seen], rules: GateRules, asked: Asked) -> Iterator[RuleResult]:
    """Yield for each form whether its last pass is recent enough, over all the records there are.

    Passes of another key mode than the one in use prove something else and do not count, nor do those of the future.
    """
    used = sorted({mode for form in forms.values() for mode in form.key_modes})
    for slug, form in forms.items():
        own = rules.of(form.captcha, form=slug)
        if own.max_age_of_pass is not None:
            last = _last_pass(dataset, asked, slug, form.key_modes or used)
            yield _age(slug, form, last, own.max_age_of_pass, asked.now, own.requires(Rule.MAX_AGE_OF_PASS))


def _last_pass(dataset: Rows, asked: Asked, slug: str, key_modes: Sequence[str]) -> datetime | None:
    ((last,),) = dataset.rows(
        "SELECT epoch(max(ts)) FROM positive WHERE env = ? AND slug = ? AND verify_status = 'pass' AND ts <= ?"
        " AND (len(?) = 0 OR key_mode IN (SELECT unnest(?)))",
        (asked.env, slug, asked.latest, [*key_modes], [*key_modes]),
    )
    return datetime.fromtimestamp(float(str(last)), UTC) if last is not None else None


def _age(slug: str, form: Seen, last: datetime | None, most: timedelta, now: datetime, required: bool) -> RuleResult:
    asked = f"at most {span(most)} allowed"
    if last is None:
        told = "has no pass on record yet" if not form.outage else "has no pass on record yet, and met an outage"
        return RuleResult(
            rule=Rule.MAX_AGE_OF_PASS,
            status=Status.NOT_ENOUGH_DATA,
            sentence=f"age of the last pass: form {slug!r} {told}, {asked}",
            forms=(slug,),
            numbers={"limit": most.total_seconds()},
            required=required,
        )
    age = max(now - last, timedelta())
    return RuleResult(
        rule=Rule.MAX_AGE_OF_PASS,
        status=Status.PASSED if age <= most else Status.BREACHED,
        sentence=f"age of the last pass: form {slug!r} passed {span(age)} ago ({last:%Y-%m-%d %H:%M} UTC), {asked}",
        forms=(slug,),
        numbers={"age": round(age.total_seconds()), "limit": most.total_seconds()},
        required=required,
    )


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
