"""What conformance probes found, for the terminal: forms x families, then each finding that is not safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.reporting.probing import ProbeFinding, matrix
from pytest_captcha_qa.reporting.shown import BAD, PLAIN, WARN, SummaryLine
from pytest_captcha_qa.reporting.wording import counted, one_line

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
    for finding in told[:_MOST]:
        yield SummaryLine(one_line(finding.sentence), BAD if finding.code else WARN)
    if len(told) > _MOST:
        yield SummaryLine(f"… and {counted(len(told) - _MOST, 'more finding')}", WARN)


def _markup(row: Sequence[str]) -> Mapping[str, bool]:
    against = any(cell.startswith(("unsafe", "crash")) for cell in row[1:])
    return BAD if against else PLAIN
