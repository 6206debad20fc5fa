from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.engine.events import Event
from pytest_captcha_qa.errors import RecordError, StoreUnavailable
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.wiring import engine as wiring
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.setup import RunSetup

NewEngine = Callable[..., Engine]
NewEnvironment = Callable[..., EnvironmentConfig]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions for a release that would have been sent."""
    questions: list[str] = []
    monkeypatch.setattr(wiring, "release_of", lambda environment, *_: questions.append(environment.name))
    return questions


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_writes_one_file_from_header_to_footer(engine: NewEngine, setup: RunSetup) -> None:
    made = engine(shard="2", worker="gw1")
    made.emit(Event("note", {"slug": "login"}))
    made.close(complete=True)
    assert made.record_path == setup.records / "staging" / "run-1-2-gw1.jsonl"
    header, event, footer = lines(made.record_path)
    assert (header["$type"], header["run_id"], header["env"], header["time_scale"]) == ("header", "run-1", "staging", 1)
    assert header["shard"] == "2"
    assert (event["name"], event["run_id"], event["data"]) == ("note", "run-1", {"slug": "login"})
    assert (footer["$type"], footer["complete"]) == ("footer", True)


def test_an_attempt_is_told_where_and_for_whom_it_runs(engine: NewEngine, environment: NewEnvironment) -> None:
    about = engine(environment(release="7.1"), worker="gw3").services().about
    assert (about.env, about.run_id, about.boundary, about.worker) == ("staging", "run-1", "boundary", "gw3")
    assert (about.account, about.provider, about.key_mode, about.release) == ("local", "sandbox", "standin", "7.1")


def test_events_before_the_records_are_open_are_kept(
    engine: NewEngine, environment: NewEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks(environment: object, client: object, grants: Any) -> None:
        grants._emit(Event("weak_evidence", {"origin": "http://127.0.0.1:9"}))

    monkeypatch.setattr(wiring, "release_of", asks)
    made = engine()
    assert [line.get("name") for line in lines(made.record_path)] == [None, "weak_evidence"]


def test_identities_live_on_the_environments_domain_or_a_reserved_one(
    engine: NewEngine, environment: NewEnvironment
) -> None:
    made = engine(environment('identity = { domain = "qa-mail.shop.example" }'))
    assert made.new_identity().email.endswith("@qa-mail.shop.example")
    assert engine().new_identity().email.endswith("@example.com")
    assert engine().new_identity().email != engine().new_identity().email


@pytest.mark.parametrize(
    ("answers", "attempted", "complete", "told"),
    [
        (["1.0", "1.1"], True, True, {"from": "1.0", "to": "1.1"}),
        (["1.0", "1.0"], True, True, None),
        (["1.0", None], True, True, None),
        ([None, "1.1"], True, True, None),
        (["1.0"], False, True, None),
        (["1.0"], True, False, None),
    ],
)
def test_a_release_that_changed_by_the_end_is_an_event(
    engine: NewEngine,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str | None],
    attempted: bool,
    complete: bool,
    told: dict[str, str] | None,
) -> None:
    left = iter(answers)
    monkeypatch.setattr(wiring, "release_of", lambda *_: next(left))
    made = engine()
    if attempted:
        attempt = Attempt(AttemptRequest("login", "subject"), made.services())
        attempt.start()
        attempt.record()
    made.close(complete=complete)
    made.close(complete=True)
    changes = [line["data"] for line in lines(made.record_path) if line.get("name") == "release_changed"]
    assert changes == ([told] if told else [])
    assert not list(left), "the site is asked once at the end, and only where an attempt was made"


@pytest.mark.parametrize("place", ["records", "store"])
def test_a_run_that_cannot_be_kept_ends_before_the_site_is_asked(
    environment: NewEnvironment, setup: RunSetup, tmp_path: Path, asked: list[str], place: str
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    changes: dict[str, Any] = {place: blocked / "below"}
    with pytest.raises((RecordError, StoreUnavailable), match="a file"):
        Engine(environment(), replace(setup, **changes))
    assert asked == []


def test_what_is_open_is_closed_though_the_footer_cannot_be_written(
    environment: NewEnvironment, setup: RunSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Engine(environment(), setup)
    closed: list[str] = []

    def full(complete: bool) -> None:
        raise RecordError("the disk is full")

    monkeypatch.setattr(made._sink, "close", full)
    for name in ("_stores", "_client"):
        monkeypatch.setattr(getattr(made, name), "close", lambda name=name: closed.append(name))
    with pytest.raises(RecordError, match="the disk is full"):
        made.close(complete=True)
    assert closed == ["_stores", "_client"]


def test_secrets_that_come_up_during_the_run_are_learned(environment: NewEnvironment, setup: RunSetup) -> None:
    learned: list[str] = []
    made = Engine(environment(), setup, learn=learned.extend)
    identity = made.new_identity()
    made.close(complete=True)
    assert learned == [identity.password]


def test_who_listens_is_told_each_line_after_it_is_written(environment: NewEnvironment, setup: RunSetup) -> None:
    told: list[tuple[object, int]] = []
    made = Engine(environment(), setup, listeners=[lambda line: told.append((line, len(lines(made.record_path))))])
    with Attempt(AttemptRequest("login", "subject"), made.services()) as attempt:
        attempt.start()
        made.emit(Event("note"))
    made.close(complete=True)
    assert [(type(line).__name__, written) for line, written in told] == [
        ("Started", 2), ("EventLine", 3), ("AttemptLine", 4),
    ]  # fmt: skip
