from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.keys import key_of, times_of
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.store import Busy, Indeterminate, Lease
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied, SpentElsewhere, TargetUnavailable
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import (
    AttemptRequest,
    Fault,
    Fingerprint,
    KeyMode,
    Outcome,
    Phase,
    Purpose,
    Result,
    Verdict,
    VerifyStatus,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Effect, FormSpec, VerifySpec, VerifyVia
from pytest_captcha_qa.model.policy import Timeouts
from pytest_captcha_qa.model.record import AttemptLine, Line, Started
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.testing import (
    BASE_URL,
    Bench,
    FakeGrants,
    ScriptedDriver,
    ScriptedForm,
    ScriptedProvider,
    ScriptedVerifier,
    accepted,
    form,
    refused,
    solution,
)

SIGNUP = AttemptRequest("signup", "subject")


def _run(bench: Bench, request: AttemptRequest = SIGNUP, services: Services | None = None) -> Outcome:
    return run_attempt(request, services or bench.services())


def _line(bench: Bench) -> AttemptLine:
    """Return the attempt line of the only attempt, after checking that it is paired."""
    started, attempt = bench.records.lines
    assert isinstance(started, Started)
    assert isinstance(attempt, AttemptLine)
    assert (started.id, started.slug, started.run_id) == (attempt.id, attempt.slug, attempt.run_id)
    return attempt


def _state(bench: Bench) -> State:
    """Return the state of the only key."""
    [state] = bench.store._keys.values()
    return state.state


def _states(bench: Bench) -> set[State]:
    """Return the states of all keys."""
    return {state.state for state in bench.store._keys.values()}


def _told(bench: Bench) -> list[str]:
    return [event.name for event in bench.events]


def _opened(bench: Bench) -> Attempt:
    attempt = Attempt(SIGNUP, bench.services())
    attempt.start()
    attempt.open()
    return attempt


def _obtain_and_submit(attempt: Attempt) -> None:
    attempt.obtain()
    attempt.submit()


# The whole sequence.


def test_the_whole_sequence_is_recorded_with_what_it_took(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[None] * 4)
    bench.provider.before_answer = lambda: bench.clock.advance(0.1)

    outcome = _run(bench)

    line = _line(bench)
    assert outcome
    assert (line.verify_status, line.outcome, line.expect, line.http_status) == ("pass", "ok", "accept", 303)
    assert (line.fault, line.error, line.source, line.generation) == (None, None, "solved", 1)
    assert (line.task_id, line.submits, line.polls) == ("task-1", 1, 5)
    assert (line.captcha, line.purpose, line.key_mode) == ("recaptcha_v2", "check", "standin")
    assert line.wait == pytest.approx(5.5)
    assert line.seconds["solve"] + line.seconds["detect"] == pytest.approx(line.wait)
    assert line.seconds["blocked"] == pytest.approx(5.6)  # the wait and 0.1 s until the task was accepted
    assert set(line.seconds) == {"blocked", "queue", "solve", "detect", "page", "submit"}
    assert outcome.seconds == line.seconds


def test_the_token_is_spent_before_it_is_sent_and_its_key_closed_after(bench: Bench) -> None:
    states: list[State] = []

    class Watching(ScriptedForm):
        def submit(self, *args: object) -> Answer:
            states.append(_state(bench))
            return super().submit(*args)  # type: ignore[arg-type]

    _watch(bench, Watching)

    _run(bench)

    assert (states, _state(bench)) == ([State.SPENT], State.DONE)


def _watch(bench: Bench, cls: type[ScriptedForm]) -> None:
    """Let the driver open its forms as a class of the test's own."""

    class Driver(ScriptedDriver):
        def open(
            self, form: FormSpec, url: object, grants: GrantSource, deadline: Deadline, *who: object
        ) -> ScriptedForm:
            opened = super().open(form, url, grants, deadline, *who)  # type: ignore[arg-type]
            self.opened[-1] = cls(opened.challenge, opened.page, self._answers)
            return self.opened[-1]

    bench.driver = Driver(bench.driver.answers)


def test_a_field_that_the_form_does_not_have_costs_no_token(bench: Bench) -> None:
    bench.driver.names = ["email", "name"]

    with pytest.raises(errors.UnknownName, match=r"unknown form field 'emial'.*did you mean 'email'"):
        run_attempt(SIGNUP, bench.services(), fields={"name": "x", "emial": "x"})

    assert bench.provider.told == []
    line = _line(bench)
    assert line.error is not None
    assert (line.error["code"], line.fault, line.submits) == ("unknown_name", Fault.CONFIG, 0)
    assert run_attempt(SIGNUP, bench.services(), fields={"email": "x"})


def test_fields_of_a_form_that_is_not_submitted_are_not_asked_for(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.ENDPOINT, url="/verify"))]
    bench.driver.names = []

    assert run_attempt(SIGNUP, bench.services(), fields={"email": "x"})


def test_a_second_attempt_of_a_test_gets_the_next_token(bench: Bench) -> None:
    for _ in range(2):
        assert _run(bench)

    lines = [line for line in bench.records.lines if isinstance(line, AttemptLine)]
    assert [(line.generation, line.submits, line.task_id) for line in lines] == [(1, 1, "task-1"), (2, 1, "task-2")]


def test_a_redelivered_message_never_posts_the_form_again(bench: Bench) -> None:
    message = replace(SIGNUP, fresh=False)
    assert _run(bench, message)

    with pytest.raises(SpentElsewhere):
        _run(bench, message)

    assert sum(len(opened.posted) for opened in bench.driver.opened) == 1
    assert len(bench.provider.told) == 1


def test_what_is_asked_for_stands_in_the_record(bench: Bench) -> None:
    _run(bench, replace(SIGNUP, purpose=Purpose.CANARY, nodeid="test_a.py::test_b", attempt=3))

    line = _line(bench)
    assert (line.purpose, line.nodeid, line.attempt) == ("canary", "test_a.py::test_b", 3)


def test_an_unknown_form_is_refused_with_the_nearest_name_and_no_record(bench: Bench) -> None:
    with pytest.raises(errors.UnknownName, match="did you mean 'signup'"):
        _run(bench, AttemptRequest("sing-up", "subject"))

    assert bench.records.lines == []


# Verdicts are values, and every one is recorded.


@pytest.mark.parametrize(
    ("answer", "status", "result", "fault"),
    [
        (refused(), VerifyStatus.FAIL, Result.FAILED, Fault.PRODUCT),
        (Answer(500, BASE_URL), VerifyStatus.ERROR, Result.FAILED, Fault.PRODUCT),
        (Answer(502, BASE_URL), VerifyStatus.ERROR, Result.INDETERMINATE, Fault.INFRASTRUCTURE),
        (Answer(200, BASE_URL), VerifyStatus.ERROR, Result.INDETERMINATE, Fault.UNDETERMINED),
    ],
    ids=["refused", "crash", "gateway", "neither"],
)
def test_a_bad_verdict_is_a_value_and_closes_the_key(
    bench: Bench, answer: Answer, status: VerifyStatus, result: Result, fault: Fault
) -> None:
    bench.driver = ScriptedDriver(answers=[answer, answer])

    outcome = _run(bench)

    line = _line(bench)
    assert (outcome.verdict.status, outcome.result, outcome.fault) == (status, result, fault)
    assert (line.verify_status, line.outcome, line.fault, line.http_status) == (status, result, fault, answer.status)
    assert line.error == {"code": outcome.error or "verdict", "message": outcome.verdict.reason}
    assert _states(bench) == {State.DONE}


@pytest.mark.parametrize("via", [VerifyVia.ENDPOINT, VerifyVia.SITEVERIFY])
@pytest.mark.parametrize("status", [VerifyStatus.PASS, VerifyStatus.FAIL, VerifyStatus.ERROR])
def test_an_endpoint_consumes_the_token_and_the_form_is_not_posted(
    bench: Bench, via: VerifyVia, status: VerifyStatus
) -> None:
    bench.forms = [form(verify=VerifySpec(via))]
    bench.verifier = ScriptedVerifier([Verdict(status, "said so")] * 2)

    outcome = _run(bench)

    line = _line(bench)
    assert outcome.verdict.status is status
    assert [opened.posted for opened in bench.driver.opened if opened.posted] == []
    assert (line.verify_status, "verify" in line.seconds, "submit" in line.seconds) == (status, True, False)
    assert _states(bench) == {State.DONE}


def test_a_lookup_reads_what_the_backend_recorded_of_the_submit(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP))]
    bench.verifier = ScriptedVerifier([Verdict(VerifyStatus.FAIL, "recorded as unverified")] * 2)

    outcome = _run(bench)

    line = _line(bench)
    assert (outcome.result, outcome.fault) == (Result.FAILED, Fault.PRODUCT)
    assert {"submit", "verify"} <= set(line.seconds)
    assert [len(opened.posted) for opened in bench.driver.opened] == [1, 1]


def test_a_submit_that_the_site_refused_is_not_looked_up(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP))]
    bench.driver = ScriptedDriver(answers=[refused()] * 2)

    assert _run(bench).verdict.status is VerifyStatus.FAIL
    assert "verify" not in _line(bench).seconds


# Refusals that were asked for.


def test_a_refusal_that_was_asked_for_leaves_the_store_alone(bench: Bench) -> None:
    bench.driver = ScriptedDriver(answers=[refused()])
    with _opened(bench) as attempt:
        outcome = attempt.submit_expecting_refusal(Solution.of_text("made up"))

    line = _line(bench)
    assert outcome
    assert (line.expect, line.verify_status, line.outcome) == ("refuse", "fail", "ok")
    assert (line.source, line.wait, line.submits, line.token_prefix) == (None, None, 0, None)
    assert bench.store._keys == {}


def test_a_site_that_accepts_what_it_must_refuse_is_broken(bench: Bench) -> None:
    with _opened(bench) as attempt:
        outcome = attempt.submit_expecting_refusal(None)

    assert (outcome.result, outcome.fault) == (Result.FAILED, Fault.PRODUCT)
    assert _line(bench).expect == "refuse"
    assert bench.driver.opened[0].posted == [(None, {})]


@pytest.mark.parametrize(
    ("recorded", "result", "fault"),
    [
        (VerifyStatus.FAIL, Result.OK, None),
        (VerifyStatus.PASS, Result.FAILED, Fault.PRODUCT),
        (VerifyStatus.ERROR, Result.INDETERMINATE, Fault.UNDETERMINED),
    ],
)
def test_of_a_form_that_answers_the_same_either_way_the_lookup_tells_whether_it_refused(
    bench: Bench, recorded: VerifyStatus, result: Result, fault: Fault | None
) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP))]
    bench.verifier = ScriptedVerifier([Verdict(recorded, "said so")])

    with _opened(bench) as attempt:
        outcome = attempt.submit_expecting_refusal(Solution.of_text("made up"))

    assert (outcome.result, outcome.fault, outcome.verdict.status) == (result, fault, recorded)
    assert ("a made-up token was sent" in outcome.verdict.reason) is (result is Result.FAILED)


def test_a_form_that_refuses_by_itself_is_not_looked_up(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP))]
    bench.driver = ScriptedDriver(answers=[refused()])

    with _opened(bench) as attempt:
        assert attempt.submit_expecting_refusal(None)

    assert "verify" not in _line(bench).seconds


@pytest.mark.parametrize("refuses", [True, False])
def test_what_a_site_created_that_should_have_refused_is_listed_for_cleanup(bench: Bench, refuses: bool) -> None:
    bench.forms = [form(effects=(Effect.ACCOUNT,))]
    bench.driver = ScriptedDriver(answers=[refused()] if refuses else [])

    with _opened(bench) as attempt:
        attempt.submit_expecting_refusal(None)

    assert [event.name for event in bench.events].count(events.CREATED) == (0 if refuses else 1)


def test_a_refusal_check_that_met_an_error_is_recorded_as_one(bench: Bench) -> None:
    bench.driver = ScriptedDriver(answers=[TargetUnavailable("no answer")])
    with pytest.raises(TargetUnavailable), _opened(bench) as attempt:
        attempt.submit_expecting_refusal(None)

    line = _line(bench)
    assert (line.expect, line.outcome, line.fault) == ("refuse", "indeterminate", "infrastructure")


@pytest.mark.parametrize("error", [errors.PageError("500 for a page", status=500), TargetUnavailable("", status=502)])
def test_what_was_answered_in_place_of_the_page_is_recorded(
    bench: Bench, error: errors.PageError | TargetUnavailable
) -> None:
    bench.driver = ScriptedDriver(fails=error)
    with pytest.raises(type(error)):
        _run(bench)

    assert _line(bench).http_status == error.status


# Every way to end early leaves one pair of lines.


class Ending(NamedTuple):
    """How a part is made to fail, and what the record says of it."""

    error: BaseException
    outcome: str = "indeterminate"
    fault: str = "undetermined"
    status: str = "skipped"


def _ours(error: CaptchaQAError, outcome: str = "indeterminate", status: str = "skipped") -> Ending:
    return Ending(error, outcome, error.fault, status)


ENDINGS: Mapping[str, Ending] = {
    "scope": _ours(ScopeDenied("not listed", reason="origin_not_listed")),
    "login": _ours(errors.AccessNotConfigured("a login page")),
    "page": _ours(errors.PageError("no widget"), outcome="failed"),
    "site": _ours(TargetUnavailable("no answer")),
    "verifier": _ours(errors.VerifierError("no documented answer"), status="error"),
    "rejected": _ours(errors.RequestRejected("malformed")),
    "key": _ours(errors.KeyRejected("wrong")),
    "balance": _ours(errors.BalanceExhausted("empty")),
    "budget": _ours(errors.BudgetExhausted("used up")),
    "store": _ours(errors.StoreUnavailable("away")),
    "deadline": _ours(errors.DeadlineExceeded("late")),
    "stopped": _ours(errors.Stopped("drain")),
    "Ctrl-C": Ending(KeyboardInterrupt()),
    "exit": Ending(SystemExit(1)),
    "bug": Ending(ZeroDivisionError()),
}
STEPS: Mapping[str, Callable[[Services], tuple[object, str]]] = {
    "grant": lambda services: (services.grants, "grant"),
    "open": lambda services: (services.driver, "open"),
    "supports": lambda services: (services.provider, "supports"),
    "claim": lambda services: (services.obtainer.store, "claim"),
    "submit to the provider": lambda services: (services.provider, "submit"),
    "spend": lambda services: (services.obtainer.store, "spend"),
    "submit": lambda services: (ScriptedForm, "submit"),
    "verify": lambda services: (ScriptedVerifier, "verify"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("step", STEPS)
def test_every_way_to_end_is_recorded_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, ending: str
) -> None:
    how = ENDINGS[ending]

    def fails(*args: object, **kwargs: object) -> None:
        raise how.error

    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP))]
    services = bench.services()
    monkeypatch.setattr(*STEPS[step](services), fails)

    with pytest.raises(type(how.error)):
        _run(bench, services=services)

    line = _line(bench)
    assert (line.outcome, line.fault, line.verify_status) == (how.outcome, how.fault, how.status)
    assert line.error is not None
    ours = how.error.code if isinstance(how.error, CaptchaQAError) else None
    assert line.error["code"] == (ours or type(how.error).__name__)


@pytest.mark.parametrize(("sent", "tokens"), [(True, 1), (False, 0)])
def test_a_token_that_the_site_may_have_seen_counts_as_tried(bench: Bench, sent: bool, tokens: int) -> None:
    bench.driver = ScriptedDriver(answers=[TargetUnavailable("no answer came", sent=sent)])
    attempt = _opened(bench)
    attempt.obtain()
    with pytest.raises(TargetUnavailable), attempt:
        attempt.submit()

    assert attempt.outcome.tokens_tried == tokens


def test_an_attempt_that_its_caller_leaves_is_recorded_as_not_measured(bench: Bench) -> None:
    with _opened(bench) as attempt:
        attempt.obtain()

    line = _line(bench)
    assert (line.outcome, line.verify_status, line.fault, line.error) == ("indeterminate", "skipped", None, None)
    assert (line.task_id, line.submits, line.source) == ("task-1", 1, "solved")


def test_an_attempt_that_never_started_leaves_no_line(bench: Bench) -> None:
    with Attempt(SIGNUP, bench.services()):
        pass

    assert bench.records.lines == []


def test_nothing_is_done_before_the_started_line_or_after_the_attempt_line(bench: Bench) -> None:
    early = Attempt(SIGNUP, bench.services())
    with pytest.raises(AssertionError, match="between start"):
        early.open()
    late = _opened(bench)
    late.record()
    with pytest.raises(AssertionError, match="between start"):
        late.obtain()

    assert (len(bench.driver.opened), bench.provider.told) == (1, [])


def test_an_attempt_is_recorded_once_however_often_it_is_left(bench: Bench) -> None:
    with _opened(bench) as attempt:
        attempt.record()
        attempt.record(KeyError())

    assert attempt.phase is Phase.RECORDED
    assert _line(bench).fault is None


def test_a_verdict_stands_whatever_happens_after_it(bench: Bench) -> None:
    def interrupted_after_submit(attempt: Attempt) -> None:
        _obtain_and_submit(attempt)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), _opened(bench) as attempt:
        interrupted_after_submit(attempt)

    line = _line(bench)
    assert (line.outcome, line.verify_status, line.http_status, line.error) == ("ok", "pass", 303, None)


def test_nothing_is_sent_if_the_started_line_cannot_be_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(line: Line) -> None:
        raise errors.RecordError("the disk is full")

    monkeypatch.setattr(bench.records, "write", full)

    with pytest.raises(errors.RecordError):
        _run(bench)

    assert bench.driver.opened == []


def test_an_attempt_whose_line_cannot_be_written_fails(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    write = bench.records.write

    def half(line: Line) -> None:
        if isinstance(line, AttemptLine):
            raise errors.RecordError("the disk is full")
        write(line)

    monkeypatch.setattr(bench.records, "write", half)

    with pytest.raises(errors.RecordError):
        _run(bench)


def test_nothing_of_a_token_but_its_first_characters_is_recorded(bench: Bench) -> None:
    _run(bench)

    line = _line(bench)
    text = solution("task-1").text
    assert line.token_prefix == text[:6]
    assert text[:7] not in repr(bench.records.lines)


def test_a_short_answer_has_no_prefix_at_all(bench: Bench) -> None:
    bench.forms = [form(type=CaptchaType.IMAGE)]
    bench.provider = ScriptedProvider(polls=[Solution({TOKEN: "w7hq2"})])

    _run(bench)

    assert _line(bench).token_prefix is None


# While a spent token is on its way, nobody takes its owner for gone.

MESSAGE = replace(SIGNUP, fresh=False)


def _slow(bench: Bench, *, page: float = 0, verify: float = 0) -> tuple[Services, list[object]]:
    """Services of a site that takes so many seconds, and what another claim of the key is told each second."""
    services, told = bench.services(), list[object]()
    [spec] = bench.forms

    def passes(seconds: float) -> None:
        key = key_of(services, spec, BASE_URL.origin, subject=SIGNUP.subject)
        for _ in range(int(seconds)):
            bench.clock.advance(1)
            told.append(
                services.obtainer.store.claim(
                    key.digest,
                    Fingerprint.of(bench.driver.opened[-1].challenge, page_bound=False),
                    "other",
                    times=times_of(services, spec),
                )
            )

    class SlowVerifier(ScriptedVerifier):
        def verify(self, *args: object) -> Verdict:
            passes(verify)
            return super().verify(*args)  # type: ignore[arg-type]

    def judge(draft: object) -> Answer:
        passes(page)
        return accepted()

    bench.driver.judge, bench.verifier = judge, SlowVerifier()
    return replace(services, timeouts=Timeouts(submit=120, verify=120)), told


def test_a_submit_that_takes_longer_than_the_lease_is_not_taken_for_one_whose_owner_is_gone(bench: Bench) -> None:
    services, told = _slow(bench, page=100)

    assert run_attempt(SIGNUP, services)

    assert len(told) == 100
    assert {type(claim) for claim in told} == {Busy}
    assert _told(bench) == []
    assert _state(bench) is State.DONE


def test_a_slow_lookup_after_a_slow_submit_keeps_the_key_too(bench: Bench) -> None:
    bench.forms = [form(verify=VerifySpec(VerifyVia.LOOKUP, url="/lookup"))]
    services, told = _slow(bench, page=25, verify=100)
    services = replace(services, verifier_of=lambda spec: bench.verifier)

    assert run_attempt(SIGNUP, services)

    assert len(told) == 125
    assert {type(claim) for claim in told} == {Busy}


def test_a_submit_that_outlasts_its_deadline_is_not_waited_for_longer_than_one_lease_more(bench: Bench) -> None:
    services, told = _slow(bench, page=200)

    run_attempt(SIGNUP, services)

    kinds = [type(claim) for claim in told]
    assert kinds.index(Indeterminate) in range(120, 151)
    assert set(kinds[150:]) == {Indeterminate}


def test_the_key_of_a_submit_without_an_answer_is_free_one_lease_after_it(bench: Bench) -> None:
    services, _ = _slow(bench, page=25)
    accepts = bench.driver.judge

    def breaks(draft: Draft) -> Answer:
        assert accepts is not None
        accepts(draft)
        raise TargetUnavailable("reset", sent=True)

    bench.driver.judge = breaks
    with pytest.raises(TargetUnavailable):
        run_attempt(SIGNUP, services)

    bench.clock.advance(times_of(services, form()).lease)
    with pytest.raises(SpentElsewhere, match="perhaps posted"):
        run_attempt(MESSAGE, services)


@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), errors.OwnerLost("late")])
def test_a_store_that_does_not_renew_the_lease_does_not_end_the_submit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: errors.StoreError
) -> None:
    services, _ = _slow(bench, page=100)
    renew, failed = bench.store.renew, list[float]()

    def fails(lease: Lease, **given: float) -> None:
        if _state(bench) is not State.SPENT:
            return renew(lease, **given)
        failed.append(bench.clock.monotonic())
        raise error

    monkeypatch.setattr(bench.store, "renew", fails)

    assert run_attempt(SIGNUP, services)
    assert len(failed) == (10 if isinstance(error, errors.StoreUnavailable) else 1)


# A token is given back only if not a byte of it was sent.


@pytest.mark.parametrize(
    ("error", "back"),
    [
        (ScopeDenied("not authorised", reason="origin_not_listed"), True),
        (errors.UnknownName("no such field"), True),
        (errors.DeadlineExceeded("too late to begin"), True),
        (TargetUnavailable("refused", sent=False), True),
        (TargetUnavailable("reset", sent=True), False),
        (errors.PageError("its answer leads elsewhere"), False),
    ],
    ids=lambda value: getattr(value, "code", str(value)),
)
def test_a_token_is_given_back_if_it_was_not_sent(bench: Bench, error: CaptchaQAError, back: bool) -> None:
    bench.driver = ScriptedDriver(answers=[error])
    with pytest.raises(type(error)), _opened(bench) as attempt:
        _obtain_and_submit(attempt)

    assert _state(bench) is (State.READY if back else State.SPENT)
    assert attempt.token is not None
    assert attempt.token.spent is not back


def test_a_token_that_was_given_back_is_spent_again_by_the_next_submit(bench: Bench) -> None:
    bench.driver = ScriptedDriver(answers=[TargetUnavailable("refused", sent=False)])
    with _opened(bench) as attempt:
        attempt.obtain()
        with pytest.raises(TargetUnavailable):
            attempt.submit()

        assert attempt.submit()

    assert (_state(bench), len(bench.provider.told)) == (State.DONE, 1)


def test_a_key_posted_without_an_answer_is_never_posted_again_for_a_message(bench: Bench) -> None:
    bench.driver = ScriptedDriver(answers=[TargetUnavailable("reset", sent=True)])
    message = replace(SIGNUP, fresh=False)
    with pytest.raises(TargetUnavailable):
        _run(bench, message)

    with pytest.raises(SpentElsewhere, match="perhaps posted"):
        _run(bench, message)

    assert sum(len(opened.posted) for opened in bench.driver.opened) == 1
    assert _told(bench) == [events.SUBMIT_MAYBE_POSTED]


@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), errors.OwnerLost("late")])
def test_a_store_that_does_not_take_a_token_back_does_not_hide_the_refusal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: errors.StoreError
) -> None:
    def fails(*args: object) -> None:
        raise error

    bench.driver = ScriptedDriver(answers=[ScopeDenied("no", reason="origin_not_listed")])
    monkeypatch.setattr(bench.store, "unspend", fails)

    with pytest.raises(ScopeDenied), _opened(bench) as attempt:
        _obtain_and_submit(attempt)

    assert _line(bench).fault == "scope"
    assert attempt.token is not None
    assert attempt.token.spent
    assert _told(bench) == [events.KEY_NOT_CLOSED]


# A store that fails after the verdict.


@pytest.mark.parametrize("call", ["done", "verified"])
@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), errors.OwnerLost("late")])
def test_a_key_that_cannot_be_closed_changes_nothing_of_the_verdict(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str, error: errors.StoreError
) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(bench.store, call, fails)

    assert _run(bench)

    assert _line(bench).outcome == "ok"
    [told] = bench.events
    assert (told.name, told.data) == (events.KEY_NOT_CLOSED, {"slug": "signup", "code": error.code})


def test_an_interrupt_while_the_key_is_closed_keeps_the_verdict(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.store, "done", interrupted)

    with pytest.raises(KeyboardInterrupt):
        _run(bench)

    assert _line(bench).verify_status == "pass"


# Probation.


def _flagged(bench: Bench) -> bool:
    """Return whether the sitekey of the form counts as verified."""
    return any(name.endswith(":verified") for name in bench.limits._cells)


@pytest.mark.parametrize(
    ("mode", "answers", "ended"),
    [
        (KeyMode.LIVE, [], True),
        (KeyMode.LIVE, [refused()] * 2, False),
        (KeyMode.STANDIN, [], False),
        (KeyMode.TESTKEYS, [], False),
    ],
)
def test_only_a_verified_token_of_a_live_account_ends_a_sitekeys_probation(
    bench: Bench, mode: KeyMode, answers: list[Answer], ended: bool
) -> None:
    bench.driver = ScriptedDriver(answers=answers)
    services = bench.services()
    services = replace(services, about=replace(services.about, key_mode=mode))

    _run(bench, services=services)

    assert _flagged(bench) is ended


# Time.


def test_the_time_of_an_attempt_is_handed_down_to_its_steps(bench: Bench) -> None:
    given: dict[str, float] = {}

    class Driver(ScriptedDriver):
        def open(
            self, form: FormSpec, url: object, grants: GrantSource, deadline: Deadline, *who: object
        ) -> ScriptedForm:
            given["page"] = deadline.remaining()
            bench.clock.advance(4)
            return super().open(form, url, grants, deadline, *who)  # type: ignore[arg-type]

    class Provider(ScriptedProvider):
        def submit(self, challenge: object, grant: object, deadline: Deadline) -> str:
            given["provider"] = deadline.remaining()
            return "task"

    bench.driver, bench.provider = Driver(), Provider(polls=[None] * 999)
    services = replace(bench.services(), timeouts=Timeouts(page=30, provider_call=100))
    began = bench.clock.monotonic()

    with pytest.raises(errors.DeadlineExceeded, match="the attempt on form 'signup' was not over"):
        _run(bench, replace(SIGNUP, timeout=20), services)

    assert given == {"page": 20, "provider": 16}
    assert bench.clock.monotonic() - began == pytest.approx(20)
    assert _line(bench).seconds["blocked"] == pytest.approx(16)


def test_a_token_that_expired_before_its_submit_is_renewed_within_what_is_left(bench: Bench) -> None:
    request = replace(SIGNUP, timeout=60)
    bench.provider = ScriptedProvider(polls=[solution("task-1")] + [None] * 999)
    attempt = Attempt(request, bench.services())
    attempt.start()
    attempt.open()
    attempt.obtain()
    bench.clock.advance(500)  # the test's own time: none of the attempt's

    with pytest.raises(errors.DeadlineExceeded, match="renewal"), attempt:
        attempt.submit()

    line = _line(bench)
    assert line.seconds["blocked"] == pytest.approx(60)
    assert line.submits == 2
    assert bench.driver.opened[0].posted == []


def test_a_renewed_token_is_recorded_with_its_own_wait(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[solution("task-1"), None, None])
    with _opened(bench) as attempt:
        attempt.obtain()
        bench.clock.advance(500)
        attempt.submit()

    line = _line(bench)
    assert (line.task_id, line.submits, line.generation) == ("task-2", 2, 2)
    assert line.wait == pytest.approx(3)
    assert line.seconds["solve"] + line.seconds["detect"] == pytest.approx(3)
    assert line.seconds["blocked"] == pytest.approx(4)
    assert _told(bench) == [events.TOKEN_RENEWED]


# Several attempts of one test.


def test_a_token_may_be_submitted_by_another_attempt_which_then_records_its_cost(bench: Bench) -> None:
    with _opened(bench) as first:
        token = first.obtain()
        with _opened(bench) as second:
            second.adopt(first)
            assert second.submit()

    lines = [line for line in bench.records.lines if isinstance(line, AttemptLine)]
    costs = [(line.submits, line.wait, line.source, line.task_id) for line in lines]
    assert costs == [(1, pytest.approx(1), "solved", "task-1"), (0, None, None, None)]
    assert [line.outcome for line in lines] == ["ok", "indeterminate"]
    assert token.spent


@pytest.mark.parametrize(
    ("answers", "posts"),
    [([refused()] * 2, 2), ([TargetUnavailable("reset", sent=True)], 1)],
    ids=["refused", "reset"],
)
def test_a_token_that_was_sent_is_not_sent_again_as_if_it_were_fresh(
    bench: Bench, answers: list[Answer | CaptchaQAError], posts: int
) -> None:
    bench.driver = ScriptedDriver(answers=answers)
    with suppress(TargetUnavailable), _opened(bench) as first:
        _obtain_and_submit(first)

    second = _opened(bench)
    second.adopt(first)
    with pytest.raises(errors.ConfigError, match="it was submitted or revealed before"), second:
        second.submit()

    texts = [sent.text for opened in bench.driver.opened for sent, _ in opened.posted if sent is not None]
    assert len(set(texts)) == len(texts) == posts


def test_a_token_whose_text_was_given_out_is_not_submitted(bench: Bench) -> None:
    """The test may have sent it itself."""
    with _opened(bench) as attempt:
        assert attempt.obtain().reveal()
        with pytest.raises(errors.ConfigError, match="revealed before"):
            attempt.submit()

    assert all(opened.posted == [] for opened in bench.driver.opened)


def test_a_second_submit_of_the_same_page_is_an_attempt_of_its_own(bench: Bench) -> None:
    bench.driver = ScriptedDriver(answers=[refused()])
    with _opened(bench) as first:
        first.submit_expecting_refusal(None)
        with Attempt(SIGNUP, bench.services()) as second:
            second.start()
            second.share_page(first)
            assert second.awaits_submit
            second.obtain()
            assert second.submit()

    assert len(bench.driver.opened) == 1
    assert sum(isinstance(line, AttemptLine) for line in bench.records.lines) == 2


def test_another_ordinal_is_another_token(bench: Bench) -> None:
    first = _opened(bench)
    first.obtain()
    second = _opened(bench)
    second.renumber(2)
    second.obtain()

    assert (first.token, second.token) != (None, None)
    assert len(bench.provider.told) == 2


def test_a_page_outside_the_scope_is_refused_before_it_is_opened(bench: Bench) -> None:
    bench.grants = FakeGrants(("https://elsewhere.example",))

    with pytest.raises(ScopeDenied):
        _run(bench)

    assert bench.driver.opened == []
    assert (_line(bench).fault, _line(bench).error) == (
        "scope",
        {"code": "scope_denied", "message": f"{BASE_URL.origin} is not among the test's origins"},
    )
