"""What extensions may add to an attempt, and what they cannot take from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.errors import PageError
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.extra import Scalar
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import Bench

SIGNUP = AttemptRequest("signup", "subject")


@dataclass
class Listening:
    """Notes what it is told; `interrupt` comes out of it in place of an answer."""

    bench: Bench
    takes: float = 0.0
    interrupt: BaseException | None = None
    heard: list[object] = field(default_factory=list)

    def opened(self, form: FormSpec, page: Url) -> None:
        self.heard.append((form.slug, page.without_query))
        self.bench.clock.advance(self.takes)

    def extra(self, line: AttemptLine) -> Mapping[str, Scalar]:
        self.heard.append(line)
        if self.interrupt is not None:
            raise self.interrupt
        return {"squad": "checkout"}


def _recorded(bench: Bench) -> AttemptLine:
    [line] = [line for line in bench.records.lines if isinstance(line, AttemptLine)]
    return line


def test_an_opened_form_is_told_and_the_record_gets_the_fields(bench: Bench) -> None:
    listening = Listening(bench)
    assert run_attempt(SIGNUP, replace(bench.services(), extensions=listening))
    line = _recorded(bench)
    assert line.extra == {"squad": "checkout"}
    assert listening.heard == [("signup", "http://127.0.0.1:9/signup"), replace(line, extra={})]


def test_a_form_that_is_not_opened_is_not_told(bench: Bench) -> None:
    bench.driver.fails = PageError("no widget")
    listening = Listening(bench)
    with pytest.raises(PageError):
        run_attempt(SIGNUP, replace(bench.services(), extensions=listening))
    assert [type(heard) for heard in listening.heard] == [AttemptLine]
    assert _recorded(bench).extra == {"squad": "checkout"}


def test_what_a_listener_takes_is_no_time_of_the_site(bench: Bench) -> None:
    outcome = run_attempt(SIGNUP, replace(bench.services(), extensions=Listening(bench, takes=100.0)))
    assert outcome.seconds["page"] == 0.0


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_goes_on_and_the_record_is_written_without_the_fields(
    bench: Bench, interrupt: BaseException
) -> None:
    attempt = Attempt(SIGNUP, replace(bench.services(), extensions=Listening(bench, interrupt=interrupt)))
    attempt.start()
    attempt.open()
    with pytest.raises(type(interrupt)):
        attempt.record()
    attempt.record()
    assert _recorded(bench).extra == {}
