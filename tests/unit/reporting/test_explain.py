from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.runs import Run, RunFile
from pytest_captcha_qa.reporting.evidence import MOST_PER_FORM, evidence_by_form
from pytest_captcha_qa.reporting.explain import (
    MOST_LINES,
    MOST_RUNS,
    Failure,
    as_json,
    explained,
    failures_of,
    history,
    history_line,
    last_passes,
    phase_of,
    rerun_command,
)

ROOT = Path("/srv/shop")
MakeAttempt = Callable[..., AttemptLine]
REFUSED = {
    "outcome": "failed", "fault": "product", "verify_status": "fail", "http_status": 422,
    "error": {"code": "refused_twice", "message": "the site refused\n a fresh token"},
    "seconds": {"blocked": 1.0, "page": 0.1, "submit": 0.2}, "nodeid": "tests/test_it.py::test_signup[a b]",
}  # fmt: skip


def ts(day: int) -> str:
    return f"2026-11-{day:02d}T10:00:00.000Z"


@pytest.fixture
def run_of(attempt: MakeAttempt) -> Callable[..., Run]:
    """`run_of("r1", {...}, {...})` makes a run with these attempts, one of its own on each day."""

    def make(run_id: str, day: int, *changes: dict[str, Any], place: Path = ROOT) -> Run:
        file = RunFile(place / "reports" / "records" / "staging" / f"{run_id}.jsonl")
        file.attempts = [attempt(run_id=run_id, ts=ts(day), **change) for change in changes]
        return Run(run_id, (file,))

    return make


def test_a_failure_is_told_in_twelve_aligned_lines(attempt: MakeAttempt) -> None:
    failure = Failure(
        attempt(**REFUSED),
        owner="team-accounts",
        tokens_tried=2,
        control="form 'login' of the same type accepted one",
        evidence=ROOT / "reports" / "failures" / "a1",
        last_pass=attempt(run_id="nightly-6", ts=ts(28), release="1.2.0"),
    )
    assert explained(failure, ROOT) == [
        "form          signup (turnstile), environment staging",
        "when          release 1.3.0, 2026-11-29T11:18:03.120Z (run r1)",
        "owner         team-accounts",
        "phase         submit the form",
        "fault         product: the site refused a fresh token",
        "tokens tried  2",
        "HTTP status   422",
        "last pass     release 1.2.0, 2026-11-28T10:00:00.000Z (run nightly-6)",
        "control       form 'login' of the same type accepted one",
        "evidence      reports/failures/a1/",
        "next          compare the backend's secret and vendor address with the page's sitekey; "
        "its log has what the vendor answered",
        "run again     pytest --captcha-env=staging 'tests/test_it.py::test_signup[a b]'",
    ]


def test_what_is_not_known_is_said(attempt: MakeAttempt) -> None:
    failed = attempt(**REFUSED | {"nodeid": None, "http_status": None, "seconds": {}, "error": None})
    lines = explained(Failure(failed), ROOT)
    assert lines[2:] == [
        "owner         not configured",
        "phase         start",
        "fault         product: the form did not do what was expected",
        "tokens tried  –",
        "HTTP status   –",
        "last pass     none in the earlier records",
        "control       –",
        "evidence      none was kept",
        "next          open the page; if it was changed on purpose, change forms.signup too",
        "run again     no test made this attempt",
    ]


def test_a_refusal_that_was_expected_needs_no_fresh_token(attempt: MakeAttempt) -> None:
    lines = explained(Failure(attempt(**REFUSED | {"expect": "refuse"}), tokens_tried=0), ROOT)
    assert "tokens tried  no fresh one: a refusal was expected" in lines


@pytest.mark.parametrize("message", ["x" * 5000, "\x1b[2J\u202e evil", "a\nb\nc\nd\ne\nf\ng"])
def test_foreign_text_neither_grows_nor_controls_the_lines(attempt: MakeAttempt, message: str) -> None:
    lines = explained(Failure(attempt(**REFUSED | {"error": {"code": "x", "message": message}})), ROOT)
    assert len(lines) <= MOST_LINES
    assert all(len(line) < 420 and line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("steps", "phase"),
    [
        ([], "start"),
        (["page"], "open the form"),
        (["blocked", "queue", "solve", "page"], "obtain the token"),
        (["blocked", "page", "submit"], "submit the form"),
        (["submit"], "submit the form"),
        (["blocked", "page", "rate"], "submit the form"),
        (["blocked", "page", "submit", "verify"], "verify"),
        (["blocked", "page", "submit", "confirm"], "confirm the effect"),
    ],
)
def test_the_phase_is_the_last_step_that_took_time(attempt: MakeAttempt, steps: list[str], phase: str) -> None:
    assert phase_of(attempt(seconds=dict.fromkeys(steps, 0.1))) == phase


def test_the_command_can_be_pasted_into_a_shell(attempt: MakeAttempt) -> None:
    command = rerun_command(attempt(env="my env", nodeid="t.py::test[$(rm -rf)]"))
    assert command == "pytest --captcha-env='my env' 't.py::test[$(rm -rf)]'"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("pytest_captcha_qa/suites/test_v.py", "--pyargs 'pytest_captcha_qa.suites.test_v::test_it[login:ru]'"),
        (".venv/x/pytest_captcha_qa/suites/test_v.py", "--pyargs 'pytest_captcha_qa.suites.test_v::test_it[login:ru]'"),
        ("", "--captcha-suite -k 'test_it[login:ru]'"),
        ("suites/test_v.py", "'suites/test_v.py::test_it[login:ru]'"),
    ],
)
def test_the_command_finds_a_test_of_the_built_in_suite(attempt: MakeAttempt, module: str, arguments: str) -> None:
    command = rerun_command(attempt(nodeid=f"{module}::test_it[login:ru]"))
    assert command == f"pytest --captcha-env=staging {arguments}"


def test_a_script_gets_the_same(attempt: MakeAttempt) -> None:
    said = as_json(Failure(attempt(**REFUSED), last_pass=attempt(run_id="r0")), ROOT)
    json.dumps(said)
    assert (said["form"], said["fault"], said["phase"], said["evidence"]) == (
        "signup", "product", "submit the form", None,
    )  # fmt: skip
    assert said["last_pass"] == {"run_id": "r0", "release": "1.3.0", "ts": "2026-11-29T11:18:03.120Z"}


def test_the_last_pass_is_of_the_same_environment_and_another_run(run_of: Callable[..., Run]) -> None:
    runs = [
        run_of("old", 1, {}),
        run_of("newer", 2, {}),
        run_of("failed", 3, REFUSED),
        run_of("elsewhere", 4, {"env": "qa"}),
        run_of("open", 5, {"verify_status": "skipped", "outcome": "indeterminate"}),
        run_of("refusal", 6, {"expect": "refuse"}),
        run_of("this", 7, {}),
    ]
    assert last_passes(runs, "staging", but="this")["signup"].run_id == "newer"


def test_failures_are_those_of_the_form_with_what_was_good_before(run_of: Callable[..., Run]) -> None:
    runs = [run_of("r3", 3, REFUSED, {"slug": "login"} | REFUSED), run_of("r1", 1, {}), run_of("r4", 4, {}, REFUSED)]
    found = failures_of(runs, "signup", owners={("staging", "signup"): "team-accounts"})
    assert [(f.attempt.run_id, f.last_pass.run_id if f.last_pass else None, f.owner) for f in found] == [
        ("r3", "r1", "team-accounts"),
        ("r4", "r1", "team-accounts"),
    ]


def test_an_attempt_that_was_left_open_is_no_failure(run_of: Callable[..., Run]) -> None:
    left = {"outcome": "indeterminate", "verify_status": "skipped"}
    assert failures_of([run_of("r1", 1, left)], "signup") == []


def test_what_was_kept_is_read_beside_the_records(run_of: Callable[..., Run], tmp_path: Path) -> None:
    kept = tmp_path / "reports" / "failures" / "f1"
    kept.mkdir(parents=True)
    (kept / "exchange.json").write_text('{"tokens_tried": 2, "control": "tokens are good"}')
    [failure] = failures_of([run_of("r1", 1, REFUSED | {"id": "f1"}, place=tmp_path)], "signup")
    assert (failure.evidence, failure.tokens_tried, failure.control) == (kept, 2, "tokens are good")


def test_of_each_form_a_few_folders_are_named(run_of: Callable[..., Run], tmp_path: Path) -> None:
    for number in range(9):
        kept = tmp_path / "reports" / "failures" / f"f{number}"
        kept.mkdir(parents=True)
        (kept / "exchange.json").write_text("{}")
    run = run_of("r1", 1, {}, *(REFUSED | {"id": f"f{number}"} for number in range(10)), place=tmp_path)
    found = evidence_by_form(run, run.attempts)
    assert [path.name for path in found["signup"]] == [f"f{number}" for number in range(MOST_PER_FORM)]


def test_the_history_names_the_last_runs_newest_first(run_of: Callable[..., Run]) -> None:
    runs = [run_of(f"r{day}", day, {} if day % 2 else REFUSED) for day in range(1, 20)]
    past = history([*runs, run_of("other", 25, {"slug": "login"})], "signup")
    assert [run.run_id for run in past] == [f"r{day}" for day in range(19, 19 - MOST_RUNS, -1)]
    assert history_line(past[:2]) == "history, newest first: ok r19 (1.3.0), failed r18 (1.3.0)"


def test_a_run_with_good_and_bad_attempts_has_failed(run_of: Callable[..., Run]) -> None:
    [past] = history([run_of("r1", 1, {}, REFUSED, {})], "signup")
    assert (past.word, past.ok, past.failed) == ("failed", 2, 1)


def test_a_run_that_saw_only_refusals_says_nothing_of_the_form(run_of: Callable[..., Run]) -> None:
    assert history([run_of("r1", 1, {"expect": "refuse"})], "signup") == []


def test_a_variant_is_named(attempt: MakeAttempt) -> None:
    lines = explained(Failure(attempt(**REFUSED, variant="ru")), ROOT)
    assert lines[0] == "form          signup:ru (turnstile), environment staging"


def test_a_form_that_nobody_judged_has_no_history() -> None:
    assert history_line(history([], "signup")) == "history, newest first: no run has judged it"


def test_a_release_that_is_not_known_is_left_out(attempt: MakeAttempt) -> None:
    failure = Failure(attempt(**REFUSED), last_pass=replace(attempt(), release=None))
    assert any(line.startswith("last pass     release unknown, ") for line in explained(failure, ROOT))
