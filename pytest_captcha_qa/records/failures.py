"""What a failed attempt leaves: `failures/<attempt id>/` beside the folder of the records.

`exchange.json` tells what went to the site and what came back, by allow-list; `record.json` is the attempt's line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_captcha_qa.model.attempt import Outcome
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.excerpt import Clean, excerpt
from pytest_captcha_qa.records.jsonl import safe_name
from pytest_captcha_qa.records.lines import to_json

EXCHANGE, RECORD = "exchange.json", "record.json"
MOST_FAILURES = 100
_PAGE = "page"
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})

Inventory = Callable[[Exchange], Mapping[str, Any]]
_log = logging.getLogger("captcha_qa")


class FailureFolder:
    """Writes the evidence of the first hundred failed attempts of a process; an EvidenceSink.

    What cannot be written is told to the log and to nobody else: an attempt's result does not hang on it.
    """

    def __init__(self, folder: Path, *, clean: Clean, inventory: Inventory) -> None:
        """Write below `folder`; `clean` removes the run's secrets, `inventory` tells what a page has."""
        self._folder = folder
        self._clean = clean
        self._inventory = inventory
        self._left = MOST_FAILURES

    def keep(self, line: AttemptLine, outcome: Outcome, exchanges: Sequence[Exchange]) -> None:
        """Write both files."""
        if self._left <= 0:
            return
        self._left -= 1
        place = self._folder / safe_name(line.id)
        try:
            told = self._told(line, outcome, exchanges)
            place.mkdir(parents=True, exist_ok=True)
            _write(place / RECORD, to_json(line))
            _write(place / EXCHANGE, told)
        except (OSError, ValueError, RecursionError) as failure:
            _log.warning("the evidence of attempt %s is not kept in %s: %s", line.id, place, type(failure).__name__)

    def _told(self, line: AttemptLine, outcome: Outcome, exchanges: Sequence[Exchange]) -> dict[str, Any]:
        pages = list(filter(_is_page, exchanges))
        told = {
            "id": line.id,
            "form": line.slug,
            "tokens_tried": outcome.tokens_tried,
            "control": outcome.control,
            "seconds": to_json(line)["seconds"],
            "page": dict(self._inventory(pages[-1])) if pages else None,
            "exchanges": [self._exchange(exchange) for exchange in exchanges],
        }
        return {name: _cleaned(value, self._clean) for name, value in told.items()}

    def _exchange(self, exchange: Exchange) -> dict[str, Any]:
        return {
            "step": exchange.step,
            "method": exchange.method,
            "url": exchange.url.without_query,
            "headers": dict(exchange.headers),
            "fields": [{"name": name, "length": length} for name, length in exchange.fields],
            "status": exchange.status,
            "answer_headers": dict(exchange.answer_headers),
            "excerpt": excerpt(exchange, self._clean),
            "no_answer": exchange.why,
        }


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of a failed attempt, and what its record does not say."""

    folder: Path
    tokens_tried: int | None = None
    control: str | None = None


def failures_folder(records: Path) -> Path:
    """Return where evidence goes for a folder of records."""
    return records.parent / "failures"


def kept_of(record_file: Path, attempt_id: str) -> Path | None:
    """Return the folder with the evidence of an attempt in a record file, None if there is none."""
    if len(record_file.parents) < 2:
        return None
    place = failures_folder(record_file.parents[1]) / safe_name(attempt_id)
    return place if (place / EXCHANGE).is_file() else None


def read_kept(folder: Path) -> Kept:
    """Return what the evidence adds to a record; nothing where it cannot be read."""
    try:
        told = json.loads((folder / EXCHANGE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return Kept(folder)
    if not isinstance(told, dict):
        return Kept(folder)
    tokens, control = told.get("tokens_tried"), told.get("control")
    return Kept(folder, tokens if isinstance(tokens, int) else None, control if isinstance(control, str) else None)


def _is_page(exchange: Exchange) -> bool:
    kind = exchange.answer_headers.get("content-type", "")
    return exchange.step == _PAGE and exchange.status == 200 and kind in _HTML


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n", encoding="utf-8")


def _cleaned(value: Any, clean: Clean) -> Any:
    """Return a value with every text in it cleaned: a backstop behind the allow-list."""
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(inner, clean) for inner in value]
        case dict():
            return {name: _cleaned(inner, clean) for name, inner in value.items()}
    return value
