"""What conformance probes found in a run, from its events: which count, which are waived, the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_captcha_qa.model.attempt import Expect, Purpose
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.model.record import AttemptLine, EventLine
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.numbers import NOTHING
from pytest_captcha_qa.reporting.waiving import Waiving

PROBE = "probe"  # the events' name, as conformance.runner has it

CONCLUSIVE = frozenset({ProbeVerdict.SAFE, ProbeVerdict.UNSAFE, ProbeVerdict.CRASH})
_BYPASSED = 14
_BROKEN = 1
_NO_DATA = 11


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What one probe says of one form. `fails`: its test fails of it; `counts`: it is a bypass; `waived` till when.

    `left_out`: what kept it from being run, where that is for the team to change.
    """

    probe: str
    form: str
    slug: str
    family: str
    title: str
    severity: Severity
    verdict: ProbeVerdict
    reason: str
    exchange: str
    standards: tuple[str, ...]
    safe_behaviour: str
    fails: bool
    counts: bool
    key_mode: str
    nodeid: str | None = None
    waived: str | None = None
    left_out: str = ""

    @property
    def code(self) -> int:
        """The exit code it stands for, 0 for none."""
        if self.waived or not self.fails:
            return 0
        return _BYPASSED if self.counts else _BROKEN

    @property
    def sentence(self) -> str:
        """Form, probe, verdict and reason in a line."""
        said = f"form {self.form!r}, {self.probe} {self.title} ({self.severity}): {self.verdict}: {self.reason}"
        return f"{said} (waived until {self.waived})" if self.waived else said


def probe_findings(run: Run | None, waiving: Waiving) -> tuple[ProbeFinding, ...]:
    """Return the findings of a run; of a probe that ran again, as in a rerun, the last one that found anything out."""
    return findings_of(run.events if run is not None else (), waiving)


def findings_of(events: Iterable[EventLine], waiving: Waiving) -> tuple[ProbeFinding, ...]:
    """Return the findings among the events of a run, in their order; of a probe that ran again, as `probe_findings`."""
    found: dict[tuple[str, str], ProbeFinding] = {}
    for event in events:
        if event.name != PROBE or (finding := _read(event, waiving)) is None:
            continue
        before = found.get((finding.form, finding.probe))
        if before is None or finding.verdict in CONCLUSIVE or before.verdict not in CONCLUSIVE:
            found[finding.form, finding.probe] = finding
    return tuple(found.values())


def _read(event: EventLine, waiving: Waiving) -> ProbeFinding | None:
    data = event.data
    try:
        severity, verdict = Severity(_text(data, "severity")), ProbeVerdict(_text(data, "verdict"))
    except ValueError:
        return None  # of a version that has others
    probe, slug = _text(data, "probe"), _text(data, "slug")
    waiver = waiving.of_probe(slug, probe) if severity is not Severity.CRITICAL else None
    return ProbeFinding(
        probe=probe,
        form=_text(data, "form"),
        slug=slug,
        family=_text(data, "family"),
        title=_text(data, "title"),
        severity=severity,
        verdict=verdict,
        reason=_text(data, "reason"),
        exchange=_text(data, "exchange"),
        standards=tuple(_text(data, "standards").split(";")) if data.get("standards") else (),
        safe_behaviour=_text(data, "safe_behaviour"),
        fails=data.get("fails") is True,
        counts=data.get("counts") is True,
        key_mode=_text(data, "key_mode"),
        nodeid=_text(data, "nodeid") or None,
        left_out=_text(data, "left_out"),
        waived=str(waiver.until) if waiver is not None else None,
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    return str(data.get(key) or "")


def without_probes(attempts: Iterable[AttemptLine]) -> list[AttemptLine]:
    """Return the attempts that say whether forms work: all but the submits of probes; their controls are among them."""
    return [one for one in attempts if one.purpose != Purpose.PROBE or one.expect != Expect.REFUSE]


def all_waived(findings: Iterable[ProbeFinding], nodeid: str | None) -> bool:
    """Return whether a test fails of findings only that are waived."""
    failing = [finding for finding in findings if finding.fails and finding.nodeid == nodeid]
    return bool(failing) and all(finding.waived for finding in failing)


def found_by_probes(
    findings: Sequence[ProbeFinding], told: Iterable[tuple[str | None, int]]
) -> Iterator[tuple[int, str, str | None]]:
    """Yield (exit code, sentence, node id) of what no failed test has told, and of forms that nothing was found out of.

    `told` are node id and code of the tests that failed.
    """
    known = set(told)
    for finding in findings:
        if finding.code and (finding.nodeid, finding.code) not in known:
            yield finding.code, finding.sentence, finding.nodeid
    # By family: what the page alone shows, or an early answer, does not stand for what could not be asked.
    for form, family in dict.fromkeys((finding.form, finding.family) for finding in findings):
        own = [f for f in findings if (f.form, f.family) == (form, family)]
        asked = [finding for finding in own if finding.verdict is not ProbeVerdict.NOT_APPLICABLE]
        if asked and not any(finding.verdict in CONCLUSIVE for finding in asked):
            yield (
                _NO_DATA,
                f"no probe of family {family!r} at form {form!r} found anything out: {asked[0].reason}",
                None,
            )


def matrix(findings: Sequence[ProbeFinding]) -> list[list[str]]:
    """Return the rows of forms x families, the heading first; empty without findings."""
    if not findings:
        return []
    families = list(dict.fromkeys(finding.family for finding in findings))
    forms = list(dict.fromkeys(finding.form for finding in findings))
    cells = [[form, *(_cell(findings, form, family) for family in families)] for form in forms]
    return [["probes", *families], *cells]


def _cell(findings: Sequence[ProbeFinding], form: str, family: str) -> str:
    own = [finding for finding in findings if finding.form == form and finding.family == family]
    for verdict in (ProbeVerdict.UNSAFE, ProbeVerdict.CRASH):
        ids = [f"{one.probe}{' (waived)' if one.waived else ''}" for one in own if one.verdict is verdict]
        if ids:
            return f"{verdict} {', '.join(ids)}"
    safe = sum(finding.verdict is ProbeVerdict.SAFE for finding in own)
    asked = sum(finding.verdict is not ProbeVerdict.NOT_APPLICABLE for finding in own)
    return f"{'safe' if safe else 'unclear'} {safe}/{asked}" if asked else NOTHING
