"""Where the lines of a run go: the record file first, then those who only listen."""

from __future__ import annotations

from collections.abc import Callable

from pytest_captcha_qa.engine.ports import RecordSink
from pytest_captcha_qa.model.record import Line


class Records:
    """A RecordSink that writes to the file and then tells the listeners.

    The file comes first and its error ends the attempt: what is not recorded did not happen.
    """

    def __init__(self, sink: RecordSink, listeners: tuple[Callable[[Line], None], ...]) -> None:
        self._sink = sink
        self._listeners = listeners

    def write(self, line: Line) -> None:
        """Append one line, then tell the listeners."""
        self._sink.write(line)
        for listen in self._listeners:
            listen(line)
