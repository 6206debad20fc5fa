"""Attempt lines and events on the logger `captcha_qa`, for people as words and for machines as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Line, timestamp

LOGGER = "captcha_qa"

# The attribute of a LogRecord under which the whole line travels.
EXTRA = "captcha_qa_line"

_ATTEMPT_WORDS = (
    "slug", "type", "task_id", "wait", "verify_status", "env", "outcome", "fault", "worker", "worker_version",
)  # fmt: skip


class LineLog:
    """Logs each attempt and event that is recorded, at INFO, with the same allow-listed fields.

    `to_json` is the one of records: what may not leave into a file may not leave into a log either.
    """

    def __init__(self, to_json: Callable[[Line], Mapping[str, Any]], logger: logging.Logger | None = None) -> None:
        """Log to `logger`, by default the one called `captcha_qa`."""
        self._to_json = to_json
        self._logger = logger or logging.getLogger(LOGGER)

    def __call__(self, line: Line) -> None:
        """Log an attempt or an event; other lines say nothing to a reader of logs."""
        match line:
            case AttemptLine():
                shown = self._to_json(line)
                self._say("attempt", {word: shown[word] for word in _ATTEMPT_WORDS}, shown)
            case EventLine():
                shown = self._to_json(line)
                self._say("event", {"name": shown["name"], **shown["data"]}, shown)

    def _say(self, kind: str, words: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
        said = " ".join(f"{name}={_value(value)}" for name, value in words.items())
        self._logger.info("%s %s", kind, said, extra={EXTRA: dict(shown)})


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON; the fields of an attempt or event stand beside the message.

    Of an exception only its class is told: a traceback may quote what must not leave.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON in ASCII."""
        shown: dict[str, Any] = {
            "ts": timestamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            shown["exception"] = record.exc_info[0].__name__
        line = getattr(record, EXTRA, None)
        if isinstance(line, Mapping):
            shown["line"] = dict(line)
        return json.dumps(shown)


def _value(value: object) -> str:
    """Return the value as one word; in quotes, with everything odd escaped, where it is not one."""
    if value is None:
        return "-"
    text = str(value)
    plain = text.isascii() and text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else json.dumps(text)
