"""What a run comes to: the exit code with all its reasons, the verdict per form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.blaming import settled
from pytest_captcha_qa.reporting.causes import Cause, Mode, Session, found, hides_what_is_waived, settled_causes
from pytest_captcha_qa.reporting.codes import (
    MEANINGS,
    meaning,
    plain,
    rank,
    strongest,
)
from pytest_captcha_qa.reporting.evidence import evidence_by_form
from pytest_captcha_qa.reporting.forms import (
    FormState,
    FormVerdict,
    judge_form,
)
from pytest_captcha_qa.reporting.gate.telling import GateAnswer
from pytest_captcha_qa.reporting.probing import ProbeFinding, all_waived, probe_findings, without_probes
from pytest_captcha_qa.reporting.waiving import Waiving
from pytest_captcha_qa.reporting.wording import counted, one_line, plural

WEAK_EVIDENCE = "weak_evidence"  # the events' names, as engine.events has them
EXTENSION_FAILED = "extension_failed"
ONLY_PROBED = "it met probes only, without a good token"


@dataclass(frozen=True, slots=True)
class CodeReasons:
    """One exit code and what led to it, each sentence with how often."""

    code: int
    reasons: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        """The meaning of the code and its most frequent reason."""
        first, times = self.reasons[0]
        often = f" ({times} times)" if times > 1 else ""
        more = _more_reasons(len(self.reasons) - 1)
        return f"{meaning(self.code)}: {first}{often}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of a run. `exit` is for the process, `codes` are all that apply, the strongest first.

    `measured_forms` and `not_measured_forms` are the selected ones, `unselected_forms` those of the environment that no
    selected test is about; `waived_failures` counts the causes that waivers
    took out of the codes; `budget` is the most submits the run was allowed. `weak_evidence` maps each origin whose
    proof is weak to the solves a day a real account gets there, None if unknown; `extension_faults` counts what code of
    the team has raised while it listened, by module, function and kind;
    `probes` are what conformance probes found, `gate` what the gate says.
    """

    exit: int
    codes: tuple[CodeReasons, ...]
    mode: Mode
    environment: str | None
    captcha_tests: int
    forms: tuple[FormVerdict, ...]
    measured_forms: tuple[str, ...]
    not_measured_forms: tuple[str, ...]
    submits: int
    price: float | None
    unselected_forms: tuple[str, ...] = ()
    waived_failures: int = 0
    budget: int | None = None
    budget_given: bool = False
    run_id: str | None = None
    releases: tuple[str, ...] = ()
    key_modes: tuple[str, ...] = ()
    time_scale: float = 1.0
    complete: bool | None = None
    flaky: int = 0
    lost: int = 0
    damaged: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    weak_evidence: Mapping[str, int | None] = field(default_factory=dict)
    extension_faults: Mapping[str, int] = field(default_factory=dict)
    records: tuple[Path, ...] = ()
    owners: Mapping[str, str | None] = field(default_factory=dict)
    evidence: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    probes: tuple[ProbeFinding, ...] = ()
    gate: GateAnswer | None = None

    @property
    def measured(self) -> int:
        """How many selected forms the backend gave a verdict on."""
        return len(self.measured_forms)

    @property
    def selected(self) -> int:
        """How many forms were selected."""
        return len(self.measured_forms) + len(self.not_measured_forms)

    @property
    def sentence(self) -> str:
        """The exit code in words."""
        if self.codes:
            extended = self.codes[0].code
            number = f"exit {self.exit}" if extended == self.exit else f"exit {self.exit} (extended {extended})"
            return f"{number}: {self.codes[0]}"
        return f"exit {self.exit}: {self._success()}"

    def _success(self) -> str:
        if self.captcha_tests == 0:
            return f"{MEANINGS[0]}; no captcha test was selected"
        if self.environment is None:
            return f"{MEANINGS[0]}; captcha tests were skipped, no environment was chosen"
        found = "every failure that was found is waived" if self.waived_failures else MEANINGS[0]
        return "; ".join([found, *self._counts()])

    def _counts(self) -> Iterator[str]:
        states = Counter(form.state for form in self.forms)
        refusing, probed = states[FormState.REFUSALS_ONLY], sum(form.reason == ONLY_PROBED for form in self.forms)
        if refusing + probed < len(self.forms) or not self.forms:
            yield f"{states[FormState.OK]} of {counted(len(self.forms) - probed, 'form')} ok"
        if probed:
            yield f"{counted(probed, 'form')} met probes only, without a good token"
        if refusing:
            accept = "it accepts" if refusing == 1 else "they accept"
            yield f"{counted(refusing, 'form')} saw only refusals, so nothing shows yet that {accept} a good token"


def decide(session: Session, run: Run | None) -> Verdict:
    """Return the verdict on a run from the causes that tests gave and the records they left.

    The records' footers must be written by then: a run without one is incomplete and never green.
    """
    recorded = run.attempts if run else ()
    attempts = settled(recorded)
    session = replace(session, causes=settled_causes(session.causes, recorded, attempts))
    waiving = Waiving(session.waivers, session.day, attempts)
    probed = probe_findings(run, waiving)
    forms = _judge_forms(session, without_probes(attempts), waiving, {finding.slug for finding in probed})
    counting = [cause for cause in session.causes if not _is_waived(cause, waiving, probed)]
    codes = _by_code(found(session, run, forms, counting, probed))
    decided = strongest(reasons.code for reasons in codes)
    selected = {*session.selected_forms, *(attempt.slug for attempt in attempts if attempt.nodeid is None)}
    return Verdict(
        exit=plain(decided) if session.mode == "pytest" else decided,
        codes=codes,
        mode=session.mode,
        environment=session.environment,
        captcha_tests=session.captcha_tests,
        forms=forms,
        measured_forms=tuple(form.slug for form in forms if form.measured and form.slug in selected),
        not_measured_forms=tuple(form.slug for form in forms if not form.measured and form.slug in selected),
        unselected_forms=tuple(sorted({*session.owners} - selected - {form.slug for form in forms})),
        waived_failures=len(session.causes) - len(counting) + sum(map(hides_what_is_waived, forms)),
        budget=session.budget,
        budget_given=session.budget_given,
        flaky=len(session.flaky),
        submits=sum(attempt.submits for attempt in attempts),
        price=_price(attempts, session.prices),
        owners=session.owners,
        probes=probed,
        gate=session.gate,
        evidence=evidence_by_form(run, attempts) if run is not None else {},
        **_about(run),
    )


def _is_waived(cause: Cause, waiving: Waiving, probed: Sequence[ProbeFinding]) -> bool:
    covered = waiving.covers_test(cause.nodeid, cause.code) or all_waived(probed, cause.nodeid)
    return cause.waivable and covered


def _more_reasons(count: int) -> str:
    return f" and {count} more {plural(count, 'reason')}" if count else ""


def _by_code(causes: Iterable[Cause]) -> tuple[CodeReasons, ...]:
    grouped: dict[int, Counter[str]] = {}
    for cause in causes:
        grouped.setdefault(cause.code, Counter())[one_line(cause.what)] += 1
    codes = sorted(grouped, key=rank)
    return tuple(CodeReasons(code, tuple(grouped[code].most_common())) for code in codes)


def _judge_forms(
    session: Session, attempts: Sequence[AttemptLine], waiving: Waiving, probed: Collection[str]
) -> tuple[FormVerdict, ...]:
    failed_tests = {cause.nodeid for cause in session.causes if cause.nodeid is not None and cause.code != 0}
    by_form: dict[str, list[AttemptLine]] = {slug: [] for slug in session.selected_forms}
    for attempt in attempts:
        by_form.setdefault(attempt.slug, []).append(attempt)
    judged = (
        judge_form(slug, group, failed_tests, session.excused, session.flaky) for slug, group in sorted(by_form.items())
    )
    return tuple(
        replace(
            form,
            waiver=waiving.of_form(form.slug),
            waived=waiving.in_force(form.slug),
            reason=ONLY_PROBED if _is_only_probed(form, probed) else form.reason,
        )
        for form in judged
    )


def _is_only_probed(form: FormVerdict, probed: Collection[str]) -> bool:
    return form.state is FormState.NOT_MEASURED and not form.attempts and form.slug in probed


def _about(run: Run | None) -> dict[str, Any]:
    if run is None:
        return {}
    return {
        "run_id": run.run_id,
        "releases": run.releases,
        "key_modes": run.key_modes,
        "time_scale": run.time_scale,
        "complete": run.complete,
        "lost": len(run.lost),
        "damaged": run.damaged,
        "events": Counter(event.name for event in run.events),
        "weak_evidence": _weak_evidence(run),
        "extension_faults": Counter(_extension_faults(run)),
        "records": tuple(dict.fromkeys(file.path for file in run.files)),
        "notes": run.notes,
    }


def _weak_evidence(run: Run) -> dict[str, int | None]:
    told = [event.data for event in run.events if event.name == WEAK_EVIDENCE]
    return {str(data.get("origin", "an unnamed origin")): data.get("most_solves_a_day") for data in told}


def _extension_faults(run: Run) -> Iterator[str]:
    for event in run.events:
        if event.name == EXTENSION_FAILED:
            module, function, error = (event.data.get(key, "?") for key in ("module", "function", "error"))
            yield f"{module}: {function} raised {error}"


def _price(attempts: Iterable[AttemptLine], prices: Mapping[str, float]) -> float | None:
    """Return what the submits have cost, None where that is not known of all of them.

    A provider that tells the price of each solve takes nothing for the others; else the account's price counts.
    """
    paid = [attempt for attempt in attempts if attempt.submits]
    telling = {attempt.account for attempt in paid if attempt.price is not None}
    if not (prices or telling) or not all(attempt.account in telling | prices.keys() for attempt in paid):
        return None
    told = sum(attempt.price or 0.0 for attempt in paid if attempt.account in telling)
    priced = sum(prices[each.account] * each.submits / 1000 for each in paid if each.account not in telling)
    return round(told + priced, 4)
