from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.watching import MOST_PER_STEP, Exchanges, saw
from pytest_captcha_qa.errors import CaptchaQAError, PageError
from pytest_captcha_qa.model.attempt import AttemptRequest, Outcome
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import Bench, ScriptedDriver, ScriptedForm, refused

SIGNUP = AttemptRequest("signup", "subject")


def exchange(path: str) -> Exchange:
    return Exchange(method="GET", url=Url.parse(f"http://127.0.0.1:9{path}"), headers={}, answer_headers={})


class Kept:
    """An EvidenceSink in memory."""

    def __init__(self) -> None:
        self.calls: list[tuple[AttemptLine, Outcome, tuple[Exchange, ...]]] = []

    def keep(self, line: AttemptLine, outcome: Outcome, exchanges: object) -> None:
        self.calls.append((line, outcome, tuple(exchanges)))  # type: ignore[arg-type]


class TalkingDriver(ScriptedDriver):
    """Opens forms as the real one does: its requests are seen."""

    def open(self, *args: Any) -> ScriptedForm:
        saw(lambda: exchange("/page"))
        return super().open(*args)


def run(bench: Bench, kept: Kept) -> None:
    with contextlib.suppress(CaptchaQAError):
        run_attempt(SIGNUP, replace(bench.services(), evidence=kept))


def test_nothing_is_described_while_no_attempt_is_under_way() -> None:
    def never() -> Exchange:
        raise AssertionError("nobody asked")

    saw(never)


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"", 0, 1, "odd"), KeyError("odd"), RecursionError()])
def test_what_cannot_be_described_is_missing_and_stops_nothing(error: Exception) -> None:
    def odd() -> Exchange:
        raise error

    exchanges = Exchanges()
    with exchanges.during("page"):
        saw(odd)
        saw(lambda: exchange("/a"))
    assert [e.url.path for e in exchanges.kept] == ["/a"]


def test_requests_are_kept_by_step_the_last_ones_only() -> None:
    exchanges = Exchanges()
    with exchanges.during("page"):
        saw(lambda: exchange("/a"))
    with exchanges.during("submit"):
        for number in range(2 * MOST_PER_STEP):
            saw(lambda number=number: exchange(f"/{number}"))  # type: ignore[misc]
    saw(lambda: exchange("/outside"))
    kept = [(e.step, e.url.path) for e in exchanges.kept]
    assert kept == [("page", "/a"), *(("submit", f"/{n}") for n in range(MOST_PER_STEP, 2 * MOST_PER_STEP))]


def test_a_step_within_a_step_keeps_its_own() -> None:
    outer, inner = Exchanges(), Exchanges()
    with outer.during("page"):
        with inner.during("page"):
            saw(lambda: exchange("/in"))
        saw(lambda: exchange("/out"))
    assert ([e.url.path for e in inner.kept], [e.url.path for e in outer.kept]) == (["/in"], ["/out"])


def test_a_failed_attempt_hands_over_its_line_and_requests(bench: Bench) -> None:
    bench.driver = TalkingDriver([refused()] * 2)
    kept = Kept()
    run(bench, kept)
    [(line, outcome, exchanges)] = kept.calls
    assert line in bench.records.lines
    assert outcome.tokens_tried == 2
    assert [e.step for e in exchanges] == ["page", "page"]


def test_an_attempt_that_an_error_ends_hands_over_its_requests_too(bench: Bench) -> None:
    bench.driver = TalkingDriver(fails=PageError("no widget"))
    kept = Kept()
    run(bench, kept)
    [(line, outcome, exchanges)] = kept.calls
    assert (line.fault, outcome.verdict.reason, len(exchanges)) == ("product", "no widget", 1)


def test_an_attempt_that_met_its_expectation_leaves_nothing(bench: Bench) -> None:
    bench.driver = TalkingDriver()
    kept = Kept()
    run(bench, kept)
    assert kept.calls == []


def test_an_attempt_that_its_test_left_open_leaves_nothing(bench: Bench) -> None:
    kept = Kept()
    attempt = Attempt(SIGNUP, replace(bench.services(), evidence=kept))
    attempt.start()
    attempt.open()
    attempt.record()
    assert kept.calls == []


def test_a_second_submit_of_a_page_keeps_how_it_was_opened(bench: Bench) -> None:
    bench.driver = TalkingDriver([refused()])
    kept = Kept()
    services = replace(bench.services(), evidence=kept)
    first, second = Attempt(SIGNUP, services), Attempt(SIGNUP, services)
    first.start()
    first.open()
    second.start()
    second.share_page(first)
    second.record(PageError("it went wrong"))
    [(_, _, exchanges)] = kept.calls
    assert [e.url.path for e in exchanges] == ["/page"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_attempt_that_is_interrupted_leaves_what_it_had(bench: Bench, error: BaseException) -> None:
    bench.driver = TalkingDriver()
    kept = Kept()
    attempt = Attempt(SIGNUP, replace(bench.services(), evidence=kept))
    attempt.start()
    attempt.open()
    attempt.record(error)
    assert len(kept.calls) == 1
