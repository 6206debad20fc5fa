"""What attempts have recorded, remembered for the reports of the tests that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_captcha_qa.engine.ports import EvidenceSink, RecordSink
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.model.attempt import Outcome
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.record import AttemptLine, Line, Started


class Memory:
    """The attempts of one test, or those that the tests of a process share, when each began, and which have failed."""

    def __init__(self) -> None:
        self.started: dict[str, str] = {}
        self.recorded: list[AttemptLine] = []
        self.failed: list[tuple[AttemptLine, Outcome]] = []

    def of(self, services: Services) -> Services:
        """Return the same services, whose records and evidence are also remembered here."""
        records = _Records(services.records, self)
        return replace(services, records=records, evidence=_Evidence(services.evidence, self.failed))


class _Records:
    def __init__(self, sink: RecordSink, memory: Memory) -> None:
        self._sink = sink
        self._memory = memory

    def write(self, line: Line) -> None:
        self._sink.write(line)
        match line:
            case Started():
                self._memory.started[line.id] = line.ts
            case AttemptLine():
                self._memory.recorded.append(line)


class _Evidence:
    def __init__(self, sink: EvidenceSink, remembered: list[tuple[AttemptLine, Outcome]]) -> None:
        self._sink = sink
        self._remembered = remembered

    def keep(self, line: AttemptLine, outcome: Outcome, exchanges: Sequence[Exchange]) -> None:
        self._sink.keep(line, outcome, exchanges)
        self._remembered.append((line, outcome))
