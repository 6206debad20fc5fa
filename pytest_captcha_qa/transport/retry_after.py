"""The header that says when to come back."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 3600.0
_DECIMAL = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?\Z", re.ASCII)
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} (?:GMT|\+0000)\Z")


def seconds_to_wait(header: str) -> float | None:
    """Return the seconds a `Retry-After` header asks for, as a number or a date; None if it says neither."""
    text = header.strip()
    seconds = float(text) if _DECIMAL.match(text) else None
    if seconds is None:
        moment = _moment(text)
        if moment is None:
            return None
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), _LONGEST)


def _moment(text: str) -> datetime | None:
    """Return the moment of a date as RFC 9110 writes it; the shape keeps every part within what a date can hold."""
    if not _HTTP_DATE.match(text):
        return None
    try:
        return parsedate_to_datetime(text)
    except ValueError:  # such as the 31st of February
        return None
