from __future__ import annotations

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import EventLine, Line
from pytest_captcha_qa.testing import MemoryRecords
from pytest_captcha_qa.wiring.observers import Records

LINE = EventLine(ts="2026-11-29T11:18:03.120Z", name="note", run_id="run-1", data={})


def test_a_line_is_written_before_anybody_hears_of_it() -> None:
    sink = MemoryRecords()
    heard: list[list[Line]] = []
    records = Records(sink, (lambda line: heard.append(list(sink.lines)), lambda line: heard.append([line])))
    records.write(LINE)
    assert heard == [[LINE], [LINE]]


def test_of_a_line_that_cannot_be_written_nobody_hears() -> None:
    class Full:
        def write(self, line: Line) -> None:
            raise RecordError("the disk is full")

    heard: list[Line] = []
    with pytest.raises(RecordError):
        Records(Full(), (heard.append,)).write(LINE)
    assert heard == []
