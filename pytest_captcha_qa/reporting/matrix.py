"""What conformance probes found, for the terminal: forms x families, then each finding that is not safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.reporting.probing import ProbeFinding, matrix
from pytest_captcha_qa.reporting.shown import BAD, PLAIN, WARN, SummaryLine
from pytest_captcha_qa.reporting.wording import counted, one_line, some_of

_GAP = "  "
_MOST = 30
_TOLD = (ProbeVerdict.UNSAFE, ProbeVerdict.CRASH, ProbeVerdict.INCONCLUSIVE)


def probe_lines(findings: Sequence[ProbeFinding]) -> Iterator[SummaryLine]:
    """Yield the lines of the summary about probes; none without any."""
    rows = [[one_line(cell) for cell in row] for row in matrix(findings)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        text = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield SummaryLine(text, {"bold": True} if number == 0 else _markup(row))
    told = [finding for verdict in _TOLD for finding in findings if finding.verdict is verdict]
    alike: dict[object, list[ProbeFinding]] = {}
    for finding in told:
        alike.setdefault(_kind(finding), []).append(finding)
    groups = list(alike.values())
    for group in groups[:_MOST]:
        yield SummaryLine(one_line(_sentence(group)), BAD if group[0].code else WARN)
    if left := sum(map(len, groups[_MOST:])):
        yield SummaryLine(f"… and {counted(left, 'more finding')}", WARN)
    yield from _left_out(findings)


def _left_out(findings: Sequence[ProbeFinding]) -> Iterator[SummaryLine]:
    """Yield one line for each thing that kept probes away which were asked for."""
    for why in dict.fromkeys(finding.left_out for finding in findings if finding.left_out):
        kept = [finding for finding in findings if finding.left_out == why]
        ids, forms = (sorted({*map(attrgetter(name), kept)}) for name in ("probe", "form"))
        text = f"left out: {counted(len(kept), 'probe')} ({', '.join(ids)} at {some_of(forms)}): {why}"
        yield SummaryLine(one_line(text), WARN)


def _kind(finding: ProbeFinding) -> object:
    """Return what findings have in common that are told in one line: what was not found out, for one reason."""
    alone = finding.verdict is not ProbeVerdict.INCONCLUSIVE
    return finding.form, finding.reason, finding.probe if alone else ""


def _sentence(group: Sequence[ProbeFinding]) -> str:
    first, *others = group
    if not others:
        return first.sentence
    return f"form {first.form!r}, {', '.join(one.probe for one in group)}: {first.verdict}: {first.reason}"


def _markup(row: Sequence[str]) -> Mapping[str, bool]:
    against = any(cell.startswith(("unsafe", "crash")) for cell in row[1:])
    return BAD if against else PLAIN
