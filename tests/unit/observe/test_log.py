from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_captcha_qa.model.record import EventLine, Header
from pytest_captcha_qa.observe.log import EXTRA, LOGGER, JsonFormatter, LineLog
from pytest_captcha_qa.records.lines import to_json
from pytest_captcha_qa.records.reading import read

TS = "2026-11-29T11:18:03.120Z"
WHOLE = Path(__file__).parents[3] / "fixtures" / "records" / "v1.jsonl"


@pytest.fixture
def attempt():
    return read([WHOLE])[0].attempts[0]


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, LOGGER)
    return LineLog(to_json)


def test_an_attempt_is_one_line_of_words(log, caplog, attempt):
    log(attempt)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("captcha_qa", "INFO")
    assert record.getMessage() == (
        "attempt slug=signup type=recaptcha_v2 task_id=3397637370 wait=21.4 verify_status=pass env=staging"
        " outcome=ok fault=- worker=gw0 worker_version=0.3.0"
    )
    assert getattr(record, EXTRA) == to_json(attempt)


def test_an_event_is_told_with_its_data(log, caplog):
    log(EventLine(ts=TS, name="store_degraded", run_id="r1", data={"store": "redis", "seconds": 4.2}))
    assert caplog.messages == ["event name=store_degraded store=redis seconds=4.2"]


def test_other_lines_are_not_logged(log, caplog):
    log(Header(ts=TS, tool="t", run_id="r1", env="e", release=None))
    assert caplog.messages == []


@pytest.mark.parametrize("text", ["two words", "new\nline", 'quo"te', "a=b", "\x1b[31m", "ё", ""])
def test_a_value_cannot_break_out_of_its_word(log, caplog, attempt, text):
    log(replace(attempt, slug=text))
    assert caplog.messages[0].startswith(f"attempt slug={json.dumps(text)} type=")
    assert len(caplog.messages[0].splitlines()) == 1


def test_no_more_of_a_token_is_logged_than_is_recorded(log, caplog, attempt):
    log(replace(attempt, token_prefix="03AGdBq24PBCqLmOx"))
    assert getattr(caplog.records[0], EXTRA)["token_prefix"] == "03AGdB"


def test_the_json_formatter_gives_message_and_line(log, caplog, attempt):
    log(attempt)
    shown = json.loads(JsonFormatter().format(caplog.records[0]))
    assert (shown["level"], shown["logger"], shown["message"]) == ("INFO", "captcha_qa", caplog.messages[0])
    assert shown["line"] == to_json(attempt)
    assert shown["ts"].endswith("Z")


def test_the_json_formatter_tells_an_exceptions_class_and_not_its_text(caplog):
    try:
        raise ValueError("key=topsecret")
    except ValueError:
        logging.getLogger(LOGGER).exception("it failed")
    text = JsonFormatter().format(caplog.records[0])
    assert json.loads(text)["exception"] == "ValueError"
    assert "topsecret" not in text
    assert "line" not in json.loads(text)
