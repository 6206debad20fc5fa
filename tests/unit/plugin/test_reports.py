from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    CaptchaQAError,
    ConfigError,
    PageError,
    ProviderUnavailable,
    ScopeDenied,
    SessionUnclear,
)
from pytest_captcha_qa.model.attempt import Fault, Outcome, Result, Verdict, VerifyStatus
from pytest_captcha_qa.plugin import reports
from pytest_captcha_qa.reporting.causes import Cause


def item(*outcomes: Outcome, used: tuple[str, ...] = (), forms: tuple[str, ...] = ()) -> Any:
    made: Any = SimpleNamespace(nodeid="test_it.py::test_it", stash=pytest.Stash(), path=Path(__file__))
    made.stash[reports.FORMS] = forms
    made.stash[reports.CASE] = SimpleNamespace(outcomes=list(outcomes), used_forms=used)
    return made


def outcome(fault: Fault | None, reason: str = "it did not work") -> Outcome:
    result = Result.OK if fault is None else Result.FAILED
    return Outcome(result, Verdict(VerifyStatus.FAIL, reason), fault=fault)


def report(outcome: Any = "failed", longrepr: Any = "boom", sections: Any = ()) -> pytest.TestReport:
    return pytest.TestReport(
        "test_it.py::test_it", ("test_it.py", 6, "test_it"), {}, outcome, longrepr, "call", sections=sections
    )


def call(error: BaseException | None = None) -> Any:
    if error is None:
        return SimpleNamespace(excinfo=None)
    return SimpleNamespace(excinfo=SimpleNamespace(value=error))


def failed_of(outcomes: list[Outcome]) -> AssertionError:
    """Return the failure of a line that asserts the outcomes."""
    with pytest.raises(AssertionError) as told:
        assert all(outcomes) and outcomes  # noqa: PT018 - one line fails
    return told.value


def cause(item: Any, error: BaseException | None, outcome: str = "failed") -> Cause | None:
    made = report(outcome)
    reports.annotate(item, call(error), made)
    return reports.cause_of(made)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("write it so"), 4),
        (ScopeDenied("not yours"), 15),
        (ProviderUnavailable("down"), 12),
        (BudgetExhausted("used up"), 13),
    ],
)
def test_an_error_of_ours_gives_its_code_and_sentence(error: CaptchaQAError, code: int) -> None:
    assert cause(item(), error) == Cause(code, error.message, "test_it.py::test_it")


def test_a_failed_assertion_is_explained_by_the_worst_outcome() -> None:
    outcomes = [outcome(Fault.PROVIDER, "no token"), outcome(Fault.PRODUCT, "refused"), outcome(None)]
    assert cause(item(*outcomes), failed_of(outcomes)) == Cause(1, "refused", "test_it.py::test_it")


def test_a_failure_whose_place_is_not_known_is_explained_and_not_waived() -> None:
    expected = Cause(12, "no token", "test_it.py::test_it", waivable=False)
    assert cause(item(outcome(Fault.PROVIDER, "no token")), AssertionError()) == expected


def test_a_failure_beside_a_bad_outcome_is_its_consequence_and_not_waived() -> None:
    told = cause(item(outcome(Fault.PROVIDER, "no token")), failed_of([]))
    said = "test_it.py::test_it failed of something else, after an attempt: no token"
    assert told == Cause(12, said, "test_it.py::test_it", waivable=False)


def test_a_failed_assertion_without_a_bad_outcome_is_the_tests_own() -> None:
    told = cause(item(outcome(None)), AssertionError())
    assert told == Cause(1, "test_it.py::test_it failed", "test_it.py::test_it", waivable=False)


@pytest.mark.parametrize("word", ["passed", "skipped", "rerun"])
def test_what_did_not_fail_counts_for_nothing(word: str) -> None:
    assert cause(item(outcome(Fault.PRODUCT)), None, word) is None


def test_a_failure_that_is_run_again_counts_for_nothing() -> None:
    made = report()
    reports.annotate(item(), call(AssertionError()), made)
    made.outcome = "rerun"  # type: ignore[assignment] # as pytest-rerunfailures does after our hook
    assert reports.cause_of(made) is None


def test_a_failure_of_an_ordinary_test_counts_as_one() -> None:
    assert reports.cause_of(report()) == Cause(1, "test_it.py::test_it failed", "test_it.py::test_it", waivable=False)
    assert not reports.is_captcha_report(report())


def test_a_report_names_each_form_once_marked_ones_first() -> None:
    made = report("passed")
    reports.annotate(item(used=("login", "signup"), forms=("signup",)), call(), made)
    assert reports.forms_in(made) == ["signup", "login"]
    assert reports.is_captcha_report(made)


def test_what_a_report_carries_survives_the_way_from_an_xdist_worker() -> None:
    made = report()
    reports.annotate(item(forms=("login",)), call(ProviderUnavailable("down")), made)
    arrived = pytest.TestReport._from_json(made._to_json())
    assert reports.cause_of(arrived) == reports.cause_of(made)
    assert reports.forms_in(arrived) == ["login"]


def test_an_outage_can_be_shown_as_a_skip_and_keeps_its_code() -> None:
    made = report()
    reports.annotate(item(), call(ProviderUnavailable("down")), made)
    reports.show_outage_as_skip(made)
    assert (made.outcome, made.longrepr) == ("skipped", ("test_it.py", 6, "Skipped: down"))
    assert reports.cause_of(made) == Cause(12, "down", "test_it.py::test_it", failed=False)


@pytest.mark.parametrize(
    ("faults", "shown"),
    [
        ((Fault.INFRASTRUCTURE,), "skipped"),
        ((Fault.PROVIDER, Fault.INFRASTRUCTURE), "skipped"),
        ((Fault.UNDETERMINED,), "failed"),
        ((Fault.PROVIDER, Fault.UNDETERMINED), "failed"),
    ],
)
def test_what_is_undetermined_is_no_outage(faults: tuple[Fault, ...], shown: str) -> None:
    made = report()
    reports.annotate(item(*map(outcome, faults)), call(AssertionError()), made)
    reports.show_outage_as_skip(made)
    told = reports.cause_of(made)
    assert made.outcome == shown
    assert told is not None
    assert (told.code, told.failed) == (12, shown == "failed")


def test_what_fails_in_a_teardown_is_not_waived_with_the_form() -> None:
    made = report()
    made.when = "teardown"
    reports.annotate(item(outcome(Fault.PRODUCT)), call(AssertionError()), made)
    told = reports.cause_of(made)
    assert told is not None
    assert not told.waivable


@pytest.mark.parametrize("fault", [None, Fault.PRODUCT])
@pytest.mark.parametrize(
    "error", [ConfigError("write it so"), BalanceExhausted("no money"), SessionUnclear("what now"), AssertionError()]
)
def test_nothing_but_an_outage_is_shown_as_a_skip(error: BaseException, fault: Fault | None) -> None:
    made = report()
    reports.annotate(item(outcome(fault)), call(error), made)
    reports.show_outage_as_skip(made)
    assert made.failed


def test_an_earlier_execution_is_forgotten() -> None:
    known = item(outcome(Fault.PRODUCT))
    assert reports.has_case(known)
    reports.forget(known)
    reports.forget(known)
    assert not reports.has_case(known)


@pytest.mark.parametrize(
    ("error", "outcomes", "hopeless"),
    [
        (None, [], False),
        (None, [Fault.PROVIDER], False),
        (ProviderUnavailable("down"), [], True),
        (BudgetExhausted("used up"), [], True),
        (ConfigError("write it so"), [], True),
        (ScopeDenied("not yours"), [], True),
        (PageError("no widget"), [], False),
        (AssertionError(), [], False),
        (AssertionError(), [None], False),
        (AssertionError(), [None, Fault.PROVIDER], True),
        (AssertionError(), [Fault.INFRASTRUCTURE], True),
        (AssertionError(), [Fault.PROVIDER, Fault.PRODUCT], False),
        (AssertionError(), [Fault.UNDETERMINED], False),
    ],
)
def test_another_try_changes_nothing_about_an_outage_or_a_setting(
    error: BaseException | None, outcomes: list[Fault | None], hopeless: bool
) -> None:
    assert reports.is_hopeless(item(*map(outcome, outcomes)), call(error)) is hopeless


def collected(outcome: Any, error: BaseException | None = None) -> Cause | None:
    made = pytest.CollectReport("test_it.py", outcome, "boom", [])
    reports.annotate_collection(call(error), made)
    return reports.cause_of_collection(pytest.CollectReport._from_json(made._to_json()))


def test_a_module_that_cannot_be_collected_counts_with_the_code_of_our_error() -> None:
    assert collected("passed") is collected("skipped") is None
    assert collected("failed", ImportError()) == Cause(1, "test_it.py could not be collected", "test_it.py")
    told = "test_it.py could not be collected: write it so"
    assert collected("failed", ConfigError("write it so")) == Cause(4, told, "test_it.py")
