"""The terminal summary of a run: a table by form, and what one must know to read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_captcha_qa.model.attempt import KeyMode, Result
from pytest_captcha_qa.reporting.forms import FormState, FormVerdict, Pool
from pytest_captcha_qa.reporting.gate.telling import answer_lines
from pytest_captcha_qa.reporting.matrix import probe_lines
from pytest_captcha_qa.reporting.numbers import NOTHING, percent, seconds
from pytest_captcha_qa.reporting.pools import made_by, scaled
from pytest_captcha_qa.reporting.shown import BAD as _BAD
from pytest_captcha_qa.reporting.shown import GOOD as _GOOD
from pytest_captcha_qa.reporting.shown import PLAIN as _PLAIN
from pytest_captcha_qa.reporting.shown import WARN as _WARN
from pytest_captcha_qa.reporting.shown import SummaryLine
from pytest_captcha_qa.reporting.verdict import Verdict
from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.reporting.wording import counted, how_often, one_line, plural, some_of

HEADINGS = ("form", "type", "ok", "pass", "wait", "max", "submits", "fault")
_LEFT = {0, 1, 7}
_SHRINKABLE = (0, 1, 7)
_NARROWEST = 6
_GAP = "  "
_MOST_OK_FORMS = 20
_BUDGET_SHOWN = 0.8  # the share from which a budget that nobody set is worth a word

WHAT_KEYS_CAN_PROVE: Mapping[KeyMode, str] = {
    KeyMode.LIVE: "real tokens can prove the whole path, the vendor's service included",
    KeyMode.TESTKEYS: "vendor test keys can prove the wiring, not that real tokens are judged",
    KeyMode.STANDIN: "stand-in tokens can prove form and backend, not the vendor's service",
}

# Names of events, as engine.events has them.
TOLD_EVENTS: Mapping[str, str] = {
    "store_degraded": "the state store was out of reach; an extra submit may have been paid",
    "submitted_alone": "a task was submitted while the state store was out of reach; perhaps another worker did too",
    "submit_unknown": "a submit's task id is unknown; it may have been paid",
    "token_lost": "a token that can be read once was lost; it was solved again",
    "submit_maybe_posted": "a worker ended while it posted a form; the form was not posted again",
    "token_refused_once": "a fresh token was refused and a second one accepted: the provider's fault",
    "account_held": "a service asked for a pause of a minute or more; the events account_held say who waits how long",
    "release_changed": "the release under test changed during the run",
    "standin_in_use": "A BACKEND ASKS THE STAND-IN: point it back at its vendor, or it judges no visitor rightly",
    "extension_refused": "fields of an extension are masked or left out; the events extension_refused say which",
}

_MARKUP: Mapping[FormState, dict[str, bool]] = {
    FormState.OK: _PLAIN,
    FormState.FAILED: _BAD,
    FormState.INDETERMINATE: _WARN,
    FormState.NOT_MEASURED: _WARN,
    FormState.REFUSALS_ONLY: _WARN,
}
_WORST_FIRST = (
    FormState.FAILED, FormState.INDETERMINATE, FormState.NOT_MEASURED, FormState.REFUSALS_ONLY, FormState.OK,
)  # fmt: skip


def summary(
    verdict: Verdict, *, root: Path, verdict_path: Path | None = None, skipped: int = 0, width: int = 80
) -> list[SummaryLine]:
    """Return the lines of the summary; table lines keep to `width`, paths are relative to `root`.

    `skipped` counts the captcha tests that were skipped. Each text is one line and inert, whatever tests, sites and
    records say.
    """
    lines = [
        *_table(verdict.forms, width),
        *_why(verdict.forms),
        *_waivers(verdict.forms),
        *probe_lines(verdict.probes),
        *answer_lines(verdict.gate),
        *_context(verdict),
        *_reservations(verdict, skipped),
        *_where(verdict, root, verdict_path),
        *_end(verdict),
    ]
    return [SummaryLine(one_line(line.text), line.markup) for line in lines]


def _table(forms: Sequence[FormVerdict], width: int) -> Iterator[SummaryLine]:
    if not forms:
        return
    shown, hidden = _most_telling(forms)
    rows = [(form, row) for form in shown for row in _rows(form)]
    widths = _fit([HEADINGS, *(row for _, row in rows)], width)
    yield SummaryLine(_joined(HEADINGS, widths), {"bold": True})
    for form, row in rows:
        yield SummaryLine(_joined(row, widths), _markup(form))
    if hidden:
        yield SummaryLine(f"… and {hidden} more {plural(hidden, 'form')}, all ok")


def _most_telling(forms: Sequence[FormVerdict]) -> tuple[list[FormVerdict], int]:
    ordered = sorted(forms, key=lambda form: (_WORST_FIRST.index(form.state), form.slug))
    troubled = sum(form.state is not FormState.OK for form in ordered)
    shown = ordered[: troubled + _MOST_OK_FORMS]
    return shown, len(ordered) - len(shown)


def _rows(form: FormVerdict) -> Iterator[tuple[str, ...]]:
    """Yield one row for a form, or one for each of its pools: what may not be pooled is not added up."""
    fault = f"{form.fault}{' (waived)' if form.waived else ''}" if form.fault else NOTHING
    if len(form.pools) > 1:
        for pool in form.pools:
            name = f"{form.slug} ({made_by(pool.provider, pool.key_mode)})"
            yield (name, *_figures(pool, pool.ok, pool.attempts - pool.not_submitted), fault)
        return
    only = form.pools[0] if form.pools else None
    yield (form.slug, *_figures(only, form.outcomes[Result.OK], form.attempts - form.not_submitted), fault)


def _figures(pool: Pool | None, ok: int, submitted: int) -> tuple[str, ...]:
    met = f"{ok}/{submitted}" if submitted else NOTHING
    if pool is None:
        return (NOTHING, met, NOTHING, NOTHING, NOTHING, NOTHING)
    waits = (seconds(pool.wait_median), seconds(pool.wait_max))
    return (pool.type, met, percent(pool.pass_rate), *waits, f"{pool.submits}")


def _fit(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        widest = max(_SHRINKABLE, key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _joined(row: Iterable[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(map(_shortened, row, widths), widths, strict=True))
    ]
    return _GAP.join(cells).rstrip()


def _shortened(cell: str, width: int) -> str:
    """Return the cell with its middle left out where it is too wide: names differ at their ends."""
    if len(cell) <= width:
        return cell
    tail = (width - 1) // 2
    return cell[: width - 1 - tail] + "…" + cell[len(cell) - tail :]


def _why(forms: Iterable[FormVerdict]) -> Iterator[SummaryLine]:
    alike: dict[tuple[FormState, str, bool], list[FormVerdict]] = {}
    for form in forms:
        if form.state is not FormState.OK:
            alike.setdefault((form.state, form.reason, form.waived), []).append(form)
    for (state, reason, _), same in alike.items():
        yield SummaryLine(f"{some_of([form.slug for form in same])}: {state}: {reason}", _markup(same[0]))


def _markup(form: FormVerdict) -> dict[str, bool]:
    return _WARN if form.waived and form.state is not FormState.OK else _MARKUP[form.state]


def _waivers(forms: Iterable[FormVerdict]) -> Iterator[SummaryLine]:
    for form in forms:
        if form.waiver is None:
            continue
        if not form.waived:
            expired = f"waiver expired, its last day was {form.waiver.until}: {form.waiver}; its failures count again"
            yield SummaryLine(expired, _BAD)
            continue
        unneeded = "; it went well, so the waiver can go" if form.state is FormState.OK else ""
        yield SummaryLine(f"waived until {form.waiver.until}: {form.waiver}{unneeded}", _WARN)


def _context(verdict: Verdict) -> Iterator[SummaryLine]:
    known = {
        "environment": verdict.environment,
        "release": ", then ".join(verdict.releases) or ("unknown" if verdict.run_id else None),
        "run": verdict.run_id,
    }
    said = " · ".join(f"{name} {value}" for name, value in known.items() if value)
    if said:
        yield SummaryLine(said)
    if verdict.environment:
        yield SummaryLine(" · ".join([_coverage(verdict), *_cost(verdict)]))
    measured = {pool.key_mode for form in verdict.forms for pool in form.pools if pool.measured}
    for mode in verdict.key_modes:
        said = WHAT_KEYS_CAN_PROVE[KeyMode(mode)] if mode in measured else "nothing was measured"
        yield SummaryLine(f"keys {mode}: {said}")


def _coverage(verdict: Verdict) -> str:
    waivers = {form.slug: form.waiver for form in verdict.forms if form.waived and form.waiver is not None}
    missing = [
        f"{slug}, waived until {waivers[slug].until}" if slug in waivers else slug
        for slug in verdict.not_measured_forms
    ]
    without = f" (not measured: {some_of(missing)})" if missing else ""
    unselected = f" · no test selected for {some_of([*verdict.unselected_forms])}" if verdict.unselected_forms else ""
    return f"measured {verdict.measured}/{verdict.selected}{without}{unselected}"


def _cost(verdict: Verdict) -> Iterator[str]:
    yield counted(verdict.submits, "submit")
    if verdict.submits and verdict.price is not None:
        yield f"price {verdict.price:g}"
    if verdict.budget is not None and (verdict.budget_given or verdict.submits > _BUDGET_SHOWN * verdict.budget):
        yield f"budget {verdict.budget}, used {verdict.submits}"


def _reservations(verdict: Verdict, skipped: int) -> Iterator[SummaryLine]:
    for text in _reserved(verdict, skipped):
        yield SummaryLine(text, _WARN)


def _reserved(verdict: Verdict, skipped: int) -> Iterator[str]:
    if verdict.time_scale != 1:
        yield f"solve times {scaled(verdict.time_scale)}: waits are not comparable with real ones"
    yield from _weakly_proven(verdict.weak_evidence)
    if verdict.flaky:
        slugs = [form.slug for form in verdict.forms if form.flaky]
        where = f" ({some_of(slugs)})" if slugs else ""
        yield f"{verdict.flaky} flaky{where}: failed, and passed when run again"
    for name, meaning in TOLD_EVENTS.items():
        if times := verdict.events.get(name):
            yield f"{meaning} ({how_often(times)})"
    if verdict.extension_faults:
        faults = [f"{what} ({how_often(times)})" for what, times in verdict.extension_faults.items()]
        yield f"extensions failed, records and verdicts stand without them: {some_of(faults)}"
    if verdict.lost:
        were = "was" if verdict.lost == 1 else "were"
        yield f"lost attempts: {verdict.lost} {were} started and never recorded; each may have cost a submit"
    if verdict.complete is False:
        damaged = f"; {counted(verdict.damaged, 'damaged line')}" if verdict.damaged else ""
        yield f"the records are incomplete{damaged}"
    if skipped:
        yield f"captcha tests skipped: {skipped}"
    yield from verdict.notes


def _weakly_proven(evidence: Mapping[str, int | None]) -> Iterator[str]:
    alike: dict[int | None, list[str]] = {}
    for origin, limit in evidence.items():
        alike.setdefault(limit, []).append(origin)
    for limit, origins in alike.items():
        solves = "a limited number of solves" if limit is None else f"at most {counted(limit, 'solve')}"
        yield (
            f"weak evidence for {some_of(origins)}: the proof came over plain http or under a private CA;"
            f" a real account gets {solves} a day there"
        )


def _where(verdict: Verdict, root: Path, verdict_path: Path | None) -> Iterator[SummaryLine]:
    if verdict.records:
        more = f" and {len(verdict.records) - 1} more" if len(verdict.records) > 1 else ""
        yield SummaryLine(f"records: {relative(verdict.records[0], root)}{more}")
    if verdict_path is not None:
        yield SummaryLine(f"verdict: {relative(verdict_path, root)}")


def _end(verdict: Verdict) -> Iterator[SummaryLine]:
    yield SummaryLine(verdict.sentence, {**(_GOOD if verdict.exit == 0 else _BAD), "bold": True})
    for reasons in verdict.codes[1:]:
        yield SummaryLine(f"also {reasons.code}: {reasons}", _BAD)
