from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine.reactions import (
    PollTries,
    SubmitTries,
    ends_task,
    may_have_made_a_task,
    may_make_another_task,
    poll_pause,
)
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.policy import LONGEST_PAUSE


def test_a_provider_that_cannot_be_reached_is_tried_three_times_in_all() -> None:
    tries = SubmitTries()
    error = errors.ProviderUnavailable("no answer")

    pauses = [tries.pause_after(error) for _ in range(3)]

    assert pauses == [3.5, 7.0, None]


def test_the_three_tries_outlast_a_blip_of_ten_seconds_even_if_the_service_asks_for_less() -> None:
    for error in (errors.ProviderUnavailable("no answer"), errors.ProviderUnavailable("503", retry_after=0.1)):
        tries = SubmitTries()
        assert sum(filter(None, (tries.pause_after(error) for _ in range(3)))) > 10


@pytest.mark.parametrize("error", [errors.ProviderDown("it is down"), errors.ProviderNotRunning("no app")])
def test_what_is_known_not_to_answer_is_not_tried_again(error: errors.ProviderUnavailable) -> None:
    assert SubmitTries().pause_after(error) is None


def test_a_busy_provider_is_asked_as_long_as_the_deadline_lasts() -> None:
    tries = SubmitTries()
    error = errors.ProviderBusy("no slot")

    pauses = [tries.pause_after(error) for _ in range(6)]

    assert pauses == [5.0, 10.0, 20.0, 30.0, 30.0, 30.0]


def test_being_busy_does_not_use_up_the_tries_of_the_network() -> None:
    tries = SubmitTries()
    for _ in range(5):
        tries.pause_after(errors.ProviderBusy("no slot"))

    assert tries.pause_after(errors.ProviderUnavailable("no answer")) == 3.5


def test_the_service_may_say_how_long_to_wait() -> None:
    assert SubmitTries().pause_after(errors.ProviderBusy("429", retry_after=17.0)) == 17.0


@pytest.mark.parametrize("asked", [3600.0, 86400.0 * 365, float("inf")])
def test_no_word_of_a_service_holds_anybody_for_longer_than_ten_minutes(asked: float) -> None:
    assert SubmitTries().pause_after(errors.RateLimited("429", retry_after=asked)) == LONGEST_PAUSE == 600
    assert PollTries(5).pause_after(errors.ProviderUnavailable("503", retry_after=asked), 0.0) == LONGEST_PAUSE


@pytest.mark.parametrize("asked", [-1.0, -float("inf"), float("nan")])
def test_a_pause_that_is_none_changes_nothing(asked: float) -> None:
    assert SubmitTries().pause_after(errors.RateLimited("429", retry_after=asked)) == 5.0
    assert PollTries(5).pause_after(errors.ProviderUnavailable("503", retry_after=asked), 0.0) == 5.0


def test_a_service_that_asks_for_no_pause_at_all_is_not_hammered() -> None:
    assert SubmitTries().pause_after(errors.ProviderBusy("429", retry_after=0.0)) == 5.0


def test_a_service_that_stays_busy_is_left_alone_for_longer_than_its_code_says() -> None:
    tries = SubmitTries()

    pauses = [tries.pause_after(errors.ProviderBusy("no slot", retry_after=5.0)) for _ in range(4)]

    assert pauses == [5.0, 10.0, 20.0, 30.0]


def test_pauses_of_a_scaled_sandbox_are_scaled_unless_it_names_its_own() -> None:
    tries = SubmitTries(scale=0.1)

    assert tries.pause_after(errors.ProviderBusy("no slot")) == pytest.approx(0.5)
    assert tries.pause_after(errors.ProviderBusy("no slot", retry_after=3.0)) == 3.0


@pytest.mark.parametrize(
    "error",
    [
        errors.RequestRejected("bad"),
        errors.Unsolvable("gave up"),
        errors.TaskUnknown("which?"),
        errors.KeyRejected("wrong"),
        errors.BalanceExhausted("empty"),
        errors.BudgetExhausted("ours"),
        errors.ProviderError("else"),
    ],
    ids=lambda error: error.code,
)
def test_nothing_else_is_submitted_again(error: CaptchaQAError) -> None:
    assert SubmitTries().pause_after(error) is None


@pytest.mark.parametrize("error", [errors.Unsolvable("gave up"), errors.TaskUnknown("which?")])
def test_a_lost_task_is_made_once_more_and_not_twice(error: CaptchaQAError) -> None:
    assert [may_make_another_task(error, before) for before in (0, 1, 2)] == [True, False, False]


@pytest.mark.parametrize("error", [errors.RequestRejected("bad"), errors.ProviderUnavailable("no answer")])
def test_other_errors_make_no_second_task(error: CaptchaQAError) -> None:
    assert not may_make_another_task(error, 0)


@pytest.mark.parametrize("cls", errors.all_errors().values(), ids=lambda cls: cls.__name__)
def test_only_what_the_service_says_of_the_task_itself_ends_it(cls: type[CaptchaQAError]) -> None:
    error = cls("x", kind="reset") if cls is errors.TransportError else cls("x")

    over = {errors.ProviderError, errors.TaskUnknown, errors.Unsolvable, errors.RequestRejected}
    assert ends_task(error) is (cls in over)


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (errors.ProviderUnavailable("reset", sent=True), True),
        (errors.ProviderUnavailable("refused", sent=False), False),
        (errors.ProviderBusy("no slot"), False),
        (errors.RequestRejected("bad"), False),
        (errors.OwnerLost("late"), False),
    ],
)
def test_a_submit_counts_unless_it_certainly_made_no_task(error: CaptchaQAError, counts: bool) -> None:
    assert may_have_made_a_task(error) is counts


@given(interval=st.floats(0.01, 60), faults=st.integers(0, 5000))
def test_polls_slow_down_with_faults_but_never_to_more_than_eight_intervals(interval: float, faults: int) -> None:
    assert interval <= poll_pause(interval, faults) <= poll_pause(interval, faults + 1) <= 8 * interval


def test_silence_about_a_task_is_borne_for_a_minute_and_starts_anew_after_an_answer() -> None:
    tries, silent = PollTries(interval=2.0), errors.TaskSilent("nothing")

    assert [tries.pause_after(silent, now) for now in (100, 130, 159)] == [2.0, 2.0, 2.0]
    assert tries.heard() == 2.0
    assert [tries.pause_after(silent, now) for now in (170, 229, 230)] == [2.0, 2.0, None]
    assert tries.silence == 60


def test_faults_between_silences_do_not_end_the_silence() -> None:
    tries, silent = PollTries(interval=2.0), errors.TaskSilent("nothing")

    tries.pause_after(silent, 0)
    assert tries.pause_after(errors.ProviderUnavailable("reset"), 10) == 2.0
    assert tries.pause_after(silent, 60) is None
