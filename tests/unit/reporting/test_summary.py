from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.summary import TOLD_EVENTS, WHAT_KEYS_CAN_PROVE, summary
from pytest_captcha_qa.reporting.verdict import EXTENSION_FAILED, WEAK_EVIDENCE, decide
from pytest_captcha_qa.reporting.verdict_file import verdict_json

ROOT = Path.cwd()
SESSION = Session(pytest_exit=0, selected_forms=["signup", "login"], captcha_tests=2, environment="staging")
DOWN = {
    "slug": "login",
    "captcha": "recaptcha_v2",
    "outcome": "indeterminate",
    "verify_status": "skipped",
    "fault": "provider",
    "wait": None,
    "error": {"code": "provider_unavailable", "message": "the provider gave no usable answer"},
    "nodeid": "t.py::test_login",
}
OUTAGE = Cause(12, "the provider was down", "t.py::test_login")


def texts(verdict, **more):
    return [line.text for line in summary(verdict, root=ROOT, **more)]


def event(name, **data):
    return EventLine(ts="2026-11-29T11:18:03.120Z", name=name, run_id="r1", data=data)


def weak(origin, **data):
    return event("weak_evidence", origin=origin, **data)


def test_the_whole_summary_reads_like_this(attempt, run):
    session = replace(SESSION, pytest_exit=1, causes=[OUTAGE])
    made = run(attempt(), attempt(wait=12.5, submits=2), attempt(**DOWN, submits=0))
    verdict = decide(session, made)
    assert texts(verdict, verdict_path=ROOT / "reports" / "verdict.json", skipped=3) == [
        "form    type           ok   pass    wait     max  submits  fault",
        "login   recaptcha_v2  0/1      –       –       –        0  provider",
        "signup  turnstile     2/2  100 %  10.2 s  12.5 s        3  –",
        "login: not measured: the provider gave no usable answer (1 of 1 attempt)",
        "environment staging · release 1.3.0 · run r1",
        "measured 1/2 (not measured: login) · 3 submits",
        "keys live: real tokens can prove the whole path, the vendor's service included",
        "captcha tests skipped: 3",
        "records: reports/records/staging/r1.jsonl",
        "verdict: reports/verdict.json",
        "exit 12: no verdict on the product: the provider was down",
    ]


def test_a_green_run_ends_in_green_and_a_red_one_in_red(attempt, run):
    green = summary(decide(replace(SESSION, selected_forms=["signup"]), run(attempt())), root=ROOT)
    red = summary(decide(replace(SESSION, pytest_exit=1), run(attempt())), root=ROOT)
    assert green[-1].markup == {"green": True, "bold": True}
    assert red[-1].markup == {"red": True, "bold": True}


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_table_keeps_to_the_width(attempt, run, width):
    long = "a-form-with-a-name-that-nobody-would-type-twice/"
    made = run(
        *(attempt(slug=f"{long}{n}", captcha="recaptcha_v2_invisible", wait=123.45, submits=n) for n in range(3)),
        attempt(slug=long, outcome="failed", verify_status="error", fault="infrastructure", nodeid=None),
    )
    table = texts(decide(replace(SESSION, selected_forms=[]), made), width=width)[:5]
    assert max(map(len, table)) <= width
    assert len(set(table)) == 5
    assert table[2].split()[0].endswith("/0")


def test_a_very_narrow_terminal_still_gets_its_figures(attempt, run):
    table = texts(decide(SESSION, run(attempt(captcha="recaptcha_v2_invisible"))), width=10)
    assert "100 %" in table[2]


def test_what_may_not_be_pooled_gets_a_row_each(attempt, run):
    verdict = decide(SESSION, run(attempt(), attempt(key_mode="standin", provider="standin", wait=1.0)))
    rows = [line.split("  ")[0] for line in texts(verdict)[1:4]]
    assert rows == ["login", "signup (captchaai, live)", "signup (standin, standin)"]


def test_many_good_forms_are_not_all_listed_and_bad_ones_are(attempt, run):
    good = [attempt(slug=f"ok{n:02}") for n in range(30)]
    bad = [attempt(slug=f"bad{n:02}", outcome="failed", fault="product", nodeid=None) for n in range(5)]
    said = texts(decide(replace(SESSION, selected_forms=[]), run(*good, *bad)))
    assert said[1].startswith("bad00")
    assert said[26] == "… and 10 more forms, all ok"
    assert said[27].startswith("bad00, bad01, bad02 and 2 more: failed: ")


@pytest.mark.parametrize(
    ("header", "names", "sentence"),
    [
        ({"time_scale": 0.02}, [], "solve times scaled to 2 %: waits are not comparable"),
        (
            {},
            ["store_degraded", "store_degraded"],
            "out of reach; an extra submit may have been paid (2 times)",
        ),
        ({}, ["release_changed"], "the release under test changed during the run (once)"),
        ({"complete": False}, [], "the records are incomplete"),
    ],
)
def test_what_limits_the_result_is_said(attempt, run, header, names, sentence):
    said = texts(decide(SESSION, run(attempt(), *map(event, names), **header)))
    assert any(sentence in line for line in said)


def test_extensions_that_failed_are_said_on_one_line_with_how_often(attempt, run):
    data = {"module": "qa.captcha", "function": "record_fields", "error": "KeyError"}
    failed = replace(event(EXTENSION_FAILED), data=data)
    verdict = decide(SESSION, run(attempt(), failed, failed, replace(failed, data={})))
    assert (
        "extensions failed, records and verdicts stand without them: qa.captcha: record_fields raised KeyError "
        "(2 times), ?: ? raised ? (once)"
    ) in texts(verdict)


def test_lost_attempts_are_said_and_have_no_figures(attempt, run):
    lost = attempt(outcome="lost", verify_status="skipped", fault="infrastructure", wait=None, submits=0)
    said = texts(decide(replace(SESSION, selected_forms=["signup"]), run(lost)))
    assert said[1] == "signup  –     0/1     –     –    –        –  infrastructure"
    assert any(line.startswith("lost attempts: 1 was started") for line in said)


@pytest.mark.parametrize(
    ("events", "sentences"),
    [
        ([weak("http://a.example", most_solves_a_day=200)] * 2, ["http://a.example | at most 200 solves"]),
        (
            [weak(f"http://{n}.example", most_solves_a_day=200) for n in "abcde"],
            ["http://a.example, http://b.example, http://c.example and 2 more | at most 200 solves"],
        ),
        (
            [weak("http://a.example", most_solves_a_day=200), event("weak_evidence")],
            ["http://a.example | at most 200 solves", "an unnamed origin | a limited number of solves"],
        ),
    ],
)
def test_weak_evidence_is_told_once_with_origin_and_limit(attempt, run, events, sentences):
    told = [line for line in texts(decide(SESSION, run(attempt(), *events))) if line.startswith("weak evidence")]
    came = "the proof came over plain http or under a private CA"
    assert told == [
        f"weak evidence for {origins}: {came}; a real account gets {limit} a day there"
        for origins, limit in (sentence.split(" | ") for sentence in sentences)
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([{}], ["keys live: real tokens can prove the whole path, the vendor's service included"]),
        ([DOWN], ["keys live: nothing was measured"]),
        (
            [DOWN, {"key_mode": "standin"}],
            [
                "keys live: nothing was measured",
                "keys standin: stand-in tokens can prove form and backend, not the vendor's service",
            ],
        ),
        ([], []),
    ],
)
def test_what_keys_can_prove_is_said_of_those_that_measured_something(attempt, run, changes, said):
    lines = texts(decide(SESSION, run(*(attempt(**change) for change in changes))))
    assert [line for line in lines if line.startswith("keys ")] == said


@pytest.mark.parametrize(
    ("prices", "submits", "said"),
    [
        ({}, 0, "0 submits"),
        ({"main": 2.0}, 0, "0 submits"),
        ({}, 3, "3 submits"),
        ({"main": 2.0}, 1, "1 submit · price 0.002"),
        ({"main": 0.0}, 2, "2 submits · price 0"),
    ],
)
def test_a_price_is_shown_where_something_was_spent_and_its_price_is_known(attempt, run, prices, submits, said):
    session = replace(SESSION, selected_forms=["signup"], prices=prices)
    lines = texts(decide(session, run(attempt(submits=submits))))
    assert f"measured 1/1 · {said}" in lines


def test_every_code_that_applies_has_its_line_below_the_one_that_decides(attempt, run):
    broken, late = Cause(1, "t::a failed", "t::a"), Cause(13, "the budget is used up", "t::b")
    session = replace(SESSION, pytest_exit=1, causes=[OUTAGE, broken, late, replace(OUTAGE, nodeid="t::c")])
    assert texts(decide(session, run(attempt())))[-3:] == [
        "exit 1: a form is broken or a test failed: t::a failed",
        "also 13: budget or balance is exhausted: the budget is used up",
        "also 12: no verdict on the product: the provider was down (2 times)",
    ]


def test_a_form_of_the_environment_that_no_test_is_about_is_named(attempt, run):
    owners = {"signup": None, "login": None, "invisible": "team"}
    verdict = decide(replace(SESSION, selected_forms=["signup"], owners=owners), run(attempt()))
    assert "measured 1/1 · no test selected for invisible, login · 1 submit" in texts(verdict)
    assert verdict_json(verdict, ROOT)["coverage"]["unselected_forms"] == ["invisible", "login"]


def test_a_selected_form_without_any_attempt_is_not_measured(attempt, run):
    said = texts(decide(SESSION, run(attempt())))
    assert said[1] == "login   –            –      –     –    –        –  –"
    assert "login: not measured: no attempt was made" in said
    assert "measured 1/2 (not measured: login) · 1 submit" in said


def test_attempts_that_were_left_open_do_not_lower_the_share(attempt, run):
    open_ = {"outcome": "indeterminate", "verify_status": "skipped"}
    made = run(attempt(), attempt(**open_), attempt(**open_, slug="login", submits=0))
    said = texts(decide(SESSION, made))
    assert [row.split()[2] for row in said[1:3]] == ["–", "1/1"]
    assert "login: not measured: not submitted (1 attempt only opened the page or obtained a token)" in said


def test_a_form_that_saw_only_refusals_is_listed_with_its_own_state(attempt, run):
    refused = attempt(expect="refuse", verify_status="fail", submits=0)
    [row, why] = texts(decide(replace(SESSION, selected_forms=["signup"]), run(refused)))[1:3]
    assert row.split()[:4] == ["signup", "turnstile", "1/1", "–"]
    assert why.startswith("signup: refusals only: nothing shows yet that it accepts a good token; ")


def test_nothing_from_outside_breaks_a_line_or_commands_the_terminal(attempt, run):
    hostile = "a\n\x1b]0;title\x07b\r\x9b2J\u2028\u202ec\x00\udc80"
    error = {"code": "verdict", "message": hostile}
    bad = attempt(slug=hostile, provider=hostile, outcome="failed", fault="product", nodeid=hostile, error=error)
    made = run(bad, weak(hostile), run_id=hostile, release=hostile)
    causes = [Cause(1, hostile, hostile), Cause(12, hostile, "t::b")]
    session = replace(SESSION, environment=hostile, selected_forms=[hostile], causes=causes)
    verdict = decide(session, made)
    said = [*texts(verdict), verdict.sentence, *map(str, verdict.codes), *(form.reason for form in verdict.forms)]
    assert all(line.isprintable() for line in said)
    assert r"exit 1: a form is broken or a test failed: a \x1b]0;title\x07b \x9b2J \u202ec\x00\udc80" in said


def test_a_rate_is_never_rounded_up_to_100(attempt, run):
    made = [attempt() for _ in range(299)] + [attempt(verify_status="fail", outcome="failed")]
    assert " 99.67 %" in texts(decide(replace(SESSION, selected_forms=["signup"]), run(*made)))[1]


def test_without_records_there_is_one_sentence():
    assert texts(decide(Session(pytest_exit=0), None)) == ["exit 0: no failure was found; no captcha test was selected"]


def test_an_unknown_release_is_said(attempt, run):
    said = texts(decide(SESSION, run(attempt(release=None), release=None)))
    assert "environment staging · release unknown · run r1" in said


def test_every_key_mode_has_its_sentence_and_the_events_have_the_engines_names():
    assert set(WHAT_KEYS_CAN_PROVE) == set(KeyMode)
    names = {value for name, value in vars(events).items() if name.isupper()}
    assert {WEAK_EVIDENCE, EXTENSION_FAILED, *TOLD_EVENTS} <= names


def test_flaky_tests_are_counted_and_their_forms_named(attempt, run):
    tries = [attempt(outcome="failed", verify_status="fail", fault="product"), attempt(attempt=2)]
    session = replace(SESSION, flaky=["t.py::test_signup"])
    assert "1 flaky (signup): failed, and passed when run again" in texts(decide(session, run(*tries)))
    assert not any("flaky" in text for text in texts(decide(SESSION, run(*tries))))
