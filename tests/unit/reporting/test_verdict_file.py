from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.verdict import decide
from pytest_captcha_qa.reporting.verdict_file import relative, verdict_json, write_verdict

GREEN = Session(pytest_exit=0, selected_forms=["signup"], captcha_tests=1, environment="staging")
OWNERS = {"signup": "team-accounts"}
OUTAGE = Cause(12, "the provider was down", "t.py::test_signup")


def test_the_file_says_everything_a_ci_branches_on(attempt, run, tmp_path):
    event = EventLine(ts="2026-11-29T11:18:03.120Z", name="store_degraded", run_id="r1")
    session = replace(GREEN, pytest_exit=1, causes=[OUTAGE], prices={"main": 1.0}, owners=OWNERS)
    data = {"origin": "http://a.example", "most_solves_a_day": 200}
    weak = replace(event, name="weak_evidence", data=data)
    verdict = decide(session, run(attempt(), event, event, weak, time_scale=0.02))
    path = tmp_path / "reports" / "verdict.json"
    write_verdict(verdict, path, Path.cwd())
    content = json.loads(path.read_text())
    assert content == {
        "schema": 1,
        "exit": 12,
        "sentence": "exit 12: no verdict on the product: the provider was down",
        "exit_codes": "extended",
        "codes": [
            {
                "code": 12,
                "meaning": "no verdict on the product",
                "reasons": [{"what": "the provider was down", "times": 1}],
            }
        ],
        "environment": "staging",
        "release": "1.3.0",
        "releases": ["1.3.0"],
        "run_id": "r1",
        "complete": True,
        "key_mode": "live",
        "key_modes": ["live"],
        "time_scale": 0.02,
        "captcha_tests": 1,
        "probes": [],
        "gate": None,
        "forms": {
            "signup": {
                "verdict": "ok",
                "fault": None,
                "reason": "1 of 1 attempt went as expected",
                "measured": True,
                "attempts": 1,
                "positive": 1,
                "negative": 0,
                "not_submitted": 0,
                "flaky": 0,
                "waived": None,
                "owner": "team-accounts",
                "evidence": [],
                "outcomes": {"ok": 1},
                "submits": 1,
                "pass_rate": 1.0,
                "wait_median": 8.0,
                "wait_max": 8.0,
                "pools": [
                    {
                        "type": "turnstile",
                        "provider": "captchaai",
                        "key_mode": "live",
                        "attempts": 1,
                        "ok": 1,
                        "not_submitted": 0,
                        "measured": 1,
                        "submits": 1,
                        "judged": 1,
                        "passed": 1,
                        "wait_median": 8.0,
                        "wait_max": 8.0,
                    }
                ],
            }
        },
        "coverage": {
            "measured": 1,
            "selected": 1,
            "measured_forms": ["signup"],
            "not_measured_forms": [],
            "unselected_forms": [],
        },
        "cost": {"submits": 1, "price": 0.001, "budget": None},
        "flaky": 0,
        "lost": 0,
        "damaged": 0,
        "events": {"store_degraded": 2, "weak_evidence": 1},
        "weak_evidence": {"http://a.example": 200},
        "extension_faults": {},
        "records": ["reports/records/staging/r1.jsonl"],
    }
    assert [file.name for file in path.parent.iterdir()] == ["verdict.json"]


def test_two_key_modes_and_two_releases_are_not_made_one(attempt, run):
    content = verdict_json(
        decide(GREEN, run(attempt(), attempt(key_mode="standin", release="1.4.0", wait=1.0))), Path.cwd()
    )
    assert (content["key_mode"], content["release"]) == (None, None)
    assert content["forms"]["signup"]["wait_median"] is None
    assert len(content["forms"]["signup"]["pools"]) == 2


def test_a_form_that_saw_only_refusals_has_a_verdict_of_its_own(attempt, run):
    content = verdict_json(decide(GREEN, run(attempt(expect="refuse", verify_status="fail"))), Path.cwd())
    signup = content["forms"]["signup"]
    assert (signup["verdict"], signup["fault"], signup["measured"]) == ("refusals only", None, True)


def test_a_verdict_that_cannot_take_its_place_leaves_no_draft(attempt, run, tmp_path):
    (tmp_path / "verdict.json").mkdir()
    with pytest.raises(RecordError, match="the verdict cannot be written"):
        write_verdict(decide(GREEN, run(attempt())), tmp_path / "verdict.json", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["verdict.json"]


def test_a_verdict_that_cannot_be_written_is_an_error(attempt, run, tmp_path):
    (tmp_path / "reports").write_text("")
    with pytest.raises(RecordError, match="the verdict cannot be written"):
        write_verdict(decide(GREEN, run(attempt())), tmp_path / "reports" / "verdict.json", tmp_path)


def test_an_old_verdict_is_replaced(attempt, run, tmp_path):
    path = tmp_path / "verdict.json"
    path.write_text("old")
    write_verdict(decide(GREEN, run(attempt())), path, tmp_path)
    assert json.loads(path.read_text())["exit"] == 0


def test_paths_are_told_from_the_root(tmp_path):
    assert relative(tmp_path / "a" / "b.jsonl", tmp_path) == "a/b.jsonl"
    assert relative(tmp_path / "b.jsonl", tmp_path / "a") == "../b.jsonl"
