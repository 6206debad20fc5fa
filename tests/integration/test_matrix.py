"""Captcha tests among ordinary ones, under the options and plugins that teams use: exit code, records and output."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

FORMS = """\
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_accepted(captcha_attempt, number):
    assert captcha_attempt("login")

@pytest.mark.xdist_group("refusals")
def test_refused(captcha_form):
    assert captcha_form("login").submit(token="made-up", expect="refuse")
"""
SHOP = """\
import pytest, shop

@pytest.mark.parametrize("number", range(3))
def test_price(number):
    assert shop.price(number) == number
"""
PRICE = """\
def price(number):
    if number > 99:
        return 99
    return number
"""
SOUND = {"test_forms.py": FORMS, "test_shop.py": SHOP, "shop.py": PRICE}
CAPTCHA_TESTS = [f"test_forms.py::test_{name}" for name in ("accepted[1]", "accepted[2]", "refused")]
BROKEN = """
[forms.broken]
path = "/broken"
type = "turnstile"
fields = { email = "{identity.email}", name = "{identity.name}" }
success = { status = 303, location = "/welcome*" }
refused = { status = 422 }
"""
TWO = ("-n", "2")


def attempted(ran: Any) -> Counter[str]:
    """Return how many attempts each test has on record."""
    return Counter(attempt["nodeid"] for attempt in ran.attempts)


def footers(ran: Any) -> set[bool]:
    return {footer["complete"] for footer in ran.of_type("footer")}


def codes(ran: Any) -> list[int]:
    return [code["code"] for code in ran.verdict["codes"]]


# A project in which nothing is wrong.


@pytest.mark.parametrize(
    ("arguments", "files", "times"),
    [
        ((), 1, 1),
        (TWO, 2, 1),
        ((*TWO, "-x"), 2, 1),
        ((*TWO, "--dist=loadgroup"), 2, 1),
        (("--tx=2*popen", "--dist=each"), 2, 2),
        (("--reruns=2",), 1, 1),
        ((*TWO, "--timeout=100", "--reruns=2", "--maxfail=3"), 2, 1),
        (("-vv", "--showlocals", "-rA", "--durations=3"), 1, 1),
    ],
    ids=lambda value: " ".join(value) or "plain" if isinstance(value, tuple) else None,
)
def test_a_sound_project_ends_0_with_all_its_attempts_on_record(
    staging: Callable[..., Any], arguments: tuple[str, ...], files: int, times: int
) -> None:
    ran = staging(SOUND).run("--captcha-env=staging", *arguments, all_plugins=not arguments)

    assert (ran.code, ran.counts) == (0, f"{6 * times} passed"), ran.output
    assert ran.output.count("= captcha =") == 1
    assert "exit 0: no failure was found; 1 of 1 form ok" in ran.output
    check_sound(ran, files=files, times=times)


def check_sound(ran: Any, *, files: int = 1, times: int = 1) -> None:
    """Check the records and the verdict of a run of the sound project."""
    assert (ran.verdict["exit"], ran.verdict["codes"], ran.verdict["captcha_tests"]) == (0, [], 3), ran.output
    assert (ran.verdict["complete"], ran.verdict["lost"], ran.verdict["flaky"]) == (True, 0, 0)
    assert ran.verdict["forms"]["login"]["verdict"] == "ok"
    assert attempted(ran) == dict.fromkeys(CAPTCHA_TESTS, times)
    assert {attempt["attempt"] for attempt in ran.attempts} == {1}
    assert footers(ran) == {True}
    assert 1 <= len(ran.record_files) == len(ran.of_type("footer")) <= files


def test_html_reports_are_written_as_ever(staging: Callable[..., Any]) -> None:
    ran = staging(SOUND).run(
        "--captcha-env=staging", "--html=out/report.html", "--self-contained-html", all_plugins=True
    )
    assert (ran.code, ran.counts) == (0, "6 passed"), ran.output
    assert "test_forms.py::test_accepted[1]" in (ran.folder / "out/report.html").read_text()
    check_sound(ran)


def test_a_report_log_tells_the_forms_of_each_captcha_test(staging: Callable[..., Any]) -> None:
    ran = staging(SOUND).run(
        "--captcha-env=staging", "--report-log=log.jsonl", *TWO, plugins=("pytest_reportlog.plugin",)
    )
    assert (ran.code, ran.counts) == (0, "6 passed"), ran.output
    log = [json.loads(line) for line in (ran.folder / "log.jsonl").read_text().splitlines()]
    told = {line["nodeid"]: line.get("captcha_qa") for line in log if line.get("when") == "call"}
    assert {nodeid for nodeid, forms in told.items() if forms == {"forms": ["login"]}} == set(CAPTCHA_TESTS)
    assert list(told.values()).count(None) == 3
    check_sound(ran, files=2)


def test_randomly_shuffles_captcha_tests_too(staging: Callable[..., Any]) -> None:
    ran = staging(SOUND).run("--captcha-env=staging", "--randomly-seed=3", plugins=("pytest_randomly",))
    assert (ran.code, ran.counts) == (0, "6 passed"), ran.output
    assert "Using --randomly-seed=3" in ran.output
    check_sound(ran)


@pytest.mark.parametrize("workers", [(), TWO], ids=["plain", "xdist"])
def test_without_a_terminal_nothing_is_printed(staging: Callable[..., Any], workers: tuple[str, ...]) -> None:
    ran = staging(SOUND).run("--captcha-env=staging", "-pno:terminal", *workers)
    assert (ran.code, ran.output) == (0, "")
    check_sound(ran, files=2)


def test_what_failed_last_is_run_alone_and_judged_alone(staging: Callable[..., Any]) -> None:
    tests = 'def test_broken(captcha_attempt): assert captcha_attempt("broken")\n'
    project = staging(SOUND | {"test_more.py": tests}, settings=BROKEN)
    first = project.run("--captcha-env=staging", "--captcha-run-id=first", cache=True)
    assert (first.code, first.counts) == (1, "1 failed, 6 passed"), first.output

    second = project.run("--captcha-env=staging", "--captcha-run-id=second", "--lf", cache=True)
    assert (second.code, second.counts) == (1, "1 failed"), second.output
    assert "run-last-failure: rerun previous 1 failure" in second.output
    assert (second.verdict["captcha_tests"], list(second.verdict["forms"])) == (1, ["broken"])
    assert [a["nodeid"] for a in second.attempts if a["run_id"] == "second"] == ["test_more.py::test_broken"]


@pytest.mark.parametrize("workers", [(), TWO], ids=["plain", "xdist"])
def test_collecting_opens_nothing_and_judges_nothing(
    staging: Callable[..., Any], requests_at_site: Callable[[], Any], workers: tuple[str, ...]
) -> None:
    before = requests_at_site()
    ran = staging(SOUND).run("--captcha-env=staging", "--co", "-q", *workers)
    assert (ran.code, ran.counts) == (0, "6 tests collected"), ran.output
    assert all(test in ran.output for test in CAPTCHA_TESTS)
    assert_untouched(ran, requests_at_site() == before)


@pytest.mark.parametrize(
    ("arguments", "code", "counts"),
    [
        (("-k", "price"), 0, "3 passed, 3 deselected"),
        (("-k", "price", *TWO), 0, "3 passed"),
        (("-k", "nothing"), 5, "6 deselected"),
        (("--deselect=test_forms.py", "--reruns=1"), 0, "3 passed, 3 deselected"),
    ],
    ids=["-k", "-k with xdist", "-k of nothing", "--deselect"],
)
def test_a_run_of_ordinary_tests_is_left_alone(
    staging: Callable[..., Any],
    requests_at_site: Callable[[], Any],
    arguments: tuple[str, ...],
    code: int,
    counts: str,
) -> None:
    before = requests_at_site()
    ran = staging(SOUND).run("--captcha-env=staging", *arguments)
    assert (ran.code, ran.counts) == (code, counts), ran.output
    assert_untouched(ran, requests_at_site() == before)


def assert_untouched(ran: Any, nothing_sent: bool) -> None:
    assert nothing_sent
    assert "= captcha =" not in ran.output
    assert not (ran.folder / "reports").exists()


# A project in which something is wrong.

MIXED = """\
import pytest

@pytest.fixture(scope="session")
def shop(): raise RuntimeError("the shop does not start")

@pytest.fixture
def account(captcha_attempt):
    yield
    raise RuntimeError("the account cannot be removed")

def test_refused(captcha_attempt): assert captcha_attempt("broken")

def test_sound(captcha_attempt): assert captcha_attempt("login")

@pytest.mark.xfail(strict=True)
def test_better_than_expected(captcha_attempt): assert captcha_attempt("login")

def test_without_the_shop(shop, captcha_attempt): assert captcha_attempt("login")

def test_not_removed(account, captcha_attempt): assert captcha_attempt("login")

def test_dear(): assert 1 + 1 == 3
"""
MIXED_FAILURES = {
    *(
        f"test_it.py::test_{name} failed"
        for name in ("better_than_expected", "without_the_shop", "not_removed", "dear")
    ),
    "the site refused a fresh token",
}
MIXED_ATTEMPTS = [f"test_it.py::test_{name}" for name in ("refused", "sound", "better_than_expected", "not_removed")]


@pytest.mark.parametrize("arguments", [(), (*TWO, "--dist=loadfile")], ids=["plain", "xdist"])
def test_each_failure_counts_once_whatever_phase_it_is_in(
    staging: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    ran = staging({"test_it.py": MIXED}, settings=BROKEN).run("--captcha-env=staging", *arguments)

    assert (ran.code, codes(ran), ran.counts) == (1, [1], "3 failed, 2 passed, 2 errors"), ran.output
    reasons = ran.verdict["codes"][0]["reasons"]
    assert {reason["what"].partition(" (")[0] for reason in reasons} == MIXED_FAILURES
    assert {reason["times"] for reason in reasons} == {1}
    assert attempted(ran) == dict.fromkeys(MIXED_ATTEMPTS, 1)
    assert (ran.verdict["complete"], ran.verdict["lost"], footers(ran)) == (True, 0, {True})
    assert {slug: form["verdict"] for slug, form in ran.verdict["forms"].items()} == {"login": "ok", "broken": "failed"}
    assert "exit 1: a form is broken or a test failed: " in ran.output


REFUSED = """\
def test_refused(captcha_attempt): assert captcha_attempt("broken")
def test_sound(captcha_attempt): assert captcha_attempt("login")
"""


@pytest.mark.parametrize(
    ("arguments", "counts", "attempts"),
    [
        (("-x",), "1 failed", 1),
        ((*TWO, "-x"), None, None),
        (("--dist=each", "--tx=2*popen"), "2 failed, 2 passed", 4),
        (("--reruns=2",), "1 failed, 1 passed, 2 rerun", 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_broken_form_ends_1(
    staging: Callable[..., Any], arguments: tuple[str, ...], counts: str | None, attempts: int | None
) -> None:
    ran = staging({"test_it.py": REFUSED}, settings=BROKEN).run("--captcha-env=staging", *arguments)

    assert (ran.code, codes(ran)) == (1, [1]), ran.output
    assert counts in (None, ran.counts), ran.output
    assert attempts in (None, len(ran.attempts))
    assert (ran.verdict["lost"], ran.verdict["forms"]["broken"]["fault"]) == (0, "product")
    assert footers(ran) == {True}


def test_a_test_that_outlives_its_timeout_is_recorded(staging: Callable[..., Any]) -> None:
    slow = """\
import pytest, threading
@pytest.mark.timeout(3)
def test_slow(captcha_form):
    captcha_form("login")
    threading.Event().wait(100)
def test_sound(captcha_attempt): assert captcha_attempt("login")
"""
    ran = staging({"test_it.py": slow}).run("--captcha-env=staging")
    assert (ran.code, codes(ran), ran.counts) == (1, [1], "1 failed, 1 passed"), ran.output
    assert attempted(ran) == {"test_it.py::test_slow": 1, "test_it.py::test_sound": 1}
    assert (ran.verdict["complete"], ran.verdict["lost"], footers(ran)) == (True, 0, {True})


DOWN = """\
def test_down(captcha_attempt): assert captcha_attempt("login")
def test_price(): assert 1 + 1 == 2
"""
DOWN_AT_SETUP = """\
import pytest
@pytest.fixture(scope="session")
def account(captcha_solver): return captcha_solver.solve("login")
@pytest.mark.captcha
def test_one(account): pass
@pytest.mark.captcha
def test_two(account): pass
"""
COVERED = ("-ppytest_cov", "--cov=shop", "--cov-fail-under=100")


@pytest.fixture(scope="module")
def nobody() -> dict[str, str]:
    """The variable that names a provider which is down."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"PROVIDER_URL": f"http://127.0.0.1:{probe.getsockname()[1]}"}


@pytest.mark.parametrize(
    ("tests", "arguments", "decided", "counts"),
    [
        (DOWN, ("-x",), [12, 11], "1 failed"),
        (DOWN, (*TWO, "-x", "--dist=loadgroup"), [12, 11], None),
        (DOWN, ("--reruns=2",), [12, 11], "1 failed, 1 passed"),
        (DOWN, ("--reruns=2", "--captcha-outage=skip"), [12, 11], "1 passed, 1 skipped"),
        (DOWN, COVERED, [1, 12, 11], "1 failed, 1 passed"),
        (DOWN, (*COVERED, "--captcha-outage=skip"), [1, 12, 11], "1 passed, 1 skipped"),
        (DOWN.replace("== 2", "== 3"), ("--maxfail=2", *TWO), [1, 12, 11], "2 failed"),
        (DOWN_AT_SETUP, ("--reruns=1",), [12, 11], "2 errors"),
    ],
    ids=["-x", "xdist -x", "reruns", "reruns skip", "cov", "cov skip", "maxfail", "session fixture"],
)
def test_an_outage_ends_12_is_tried_once_and_hides_no_other_failure(
    staging: Callable[..., Any],
    nobody: dict[str, str],
    tests: str,
    arguments: tuple[str, ...],
    decided: list[int],
    counts: str | None,
) -> None:
    ran = staging({"test_it.py": tests, "shop.py": PRICE}).run("--captcha-env=staging", *arguments, env=nobody)

    assert (ran.code, codes(ran)) == (decided[0], decided), ran.output
    assert counts in (None, ran.counts), ran.output
    assert ran.verdict["forms"]["login"]["fault"] == "provider"
    assert len(ran.attempts) == 1
    assert (ran.verdict["complete"], ran.verdict["lost"], ran.verdict["flaky"]) == (True, 0, 0)


@pytest.mark.parametrize("workers", [(), TWO], ids=["plain", "xdist"])
def test_a_coverage_that_fails_is_not_hidden_by_sound_forms(
    staging: Callable[..., Any], workers: tuple[str, ...]
) -> None:
    ran = staging(SOUND).run("--captcha-env=staging", *COVERED, *workers)
    assert (ran.code, codes(ran), ran.counts) == (1, [1], "6 passed"), ran.output
    assert "FAIL Required test coverage of 100% not reached" in ran.output
    assert ran.verdict["forms"]["login"]["verdict"] == "ok"
    assert attempted(ran) == dict.fromkeys(CAPTCHA_TESTS, 1)


# Runs that are broken off. Ctrl-C and SIGTERM: tests/acceptance/test_xdist.py.

IMPATIENT = """\
import pytest
@pytest.fixture
def user():
    yield
    raise KeyboardInterrupt
def test_down(user, captcha_attempt): assert captcha_attempt("login")
"""


def test_a_user_who_ends_a_run_that_a_failure_has_stopped_has_ended_it(
    staging: Callable[..., Any], nobody: dict[str, str]
) -> None:
    ran = staging({"test_it.py": IMPATIENT}).run("--captcha-env=staging", "-x", env=nobody)
    assert (ran.code, codes(ran), ran.verdict["complete"]) == (2, [2, 12, 11], False), ran.output
    assert attempted(ran) == {"test_it.py::test_down": 1}


CANCELLED = """\
import os, signal
import pytest
def cancel(*_): os.kill(os.getpid(), signal.SIGTERM)
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish():
    cancel()
    yield
    cancel()
pytest_terminal_summary = cancel
"""


def test_a_run_that_is_cancelled_after_its_tests_leaves_its_verdict(staging: Callable[..., Any]) -> None:
    test = 'def test_it(captcha_attempt): assert captcha_attempt("login")\n'
    ran = staging({"conftest.py": CANCELLED, "test_it.py": test}).run("--captcha-env=staging", *TWO)
    assert (ran.code, codes(ran), ran.verdict["complete"]) == (0, [], True), ran.output
    assert "1 passed" in ran.output


LEAVES = """\
import pytest
def test_one(captcha_attempt): assert captcha_attempt("login")
def test_two(captcha_form):
    captcha_form("login")
    pytest.exit("enough"{more})
def test_three(captcha_attempt): assert captcha_attempt("login")
"""


@pytest.mark.parametrize(
    ("more", "arguments", "code"),
    [("", (), 2), (", returncode=9", (), 9), (", returncode=0", (), 12), ("", TWO, 2), (", returncode=9", TWO, 2)],
    ids=["plain", "code 9", "code 0", "xdist", "xdist, code 9"],
)
def test_a_run_that_a_test_ends_is_incomplete(
    staging: Callable[..., Any], more: str, arguments: tuple[str, ...], code: int
) -> None:
    ran = staging({"test_it.py": LEAVES.format(more=more)}).run("--captcha-env=staging", *arguments)
    assert (ran.code, codes(ran)[0]) == (code, code), ran.output
    assert 12 in codes(ran)
    assert 1 not in codes(ran), "nothing has failed"
    assert (ran.verdict["complete"], ran.verdict["lost"]) == (False, 0)
    assert attempted(ran)["test_it.py::test_two"] == 1
    assert False in footers(ran)


LEAVES_LATE = """\
import pytest
def pytest_sessionfinish(): pytest.exit("enough"{more})
"""


@pytest.mark.parametrize(
    ("more", "code"),
    [("", 12), (", returncode=0", 12), (", returncode=9", 9)],
)
def test_leaving_at_the_end_of_a_session_is_no_internal_error_and_hides_no_failure(
    staging: Callable[..., Any], nobody: dict[str, str], more: str, code: int
) -> None:
    test = 'def test_it(captcha_attempt): assert captcha_attempt("login")\n'
    project = staging({"conftest.py": LEAVES_LATE.format(more=more), "test_it.py": test})
    ran = project.run("--captcha-env=staging", env=nobody)
    assert (ran.code, codes(ran)[0]) == (code, code), ran.output


def test_an_internal_error_of_a_worker_is_one(staging: Callable[..., Any]) -> None:
    conftest = 'def pytest_runtest_protocol(): raise RuntimeError("broken")\n'
    test = 'def test_it(captcha_attempt): assert captcha_attempt("login")\n'
    ran = staging({"conftest.py": conftest, "test_it.py": test}).run("--captcha-env=staging", *TWO)
    assert (ran.code, codes(ran)[0]) == (3, 3), ran.output


def test_a_crash_that_is_run_again_leaves_each_try_as_lost(staging: Callable[..., Any]) -> None:
    crash = """\
import os, signal
def test_sound(captcha_attempt): assert captcha_attempt("login")
def test_dies(captcha_form):
    captcha_form("login")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = staging({"test_it.py": crash}).run("--captcha-env=staging", "--reruns=1", *TWO)
    assert (ran.code, codes(ran), ran.counts) == (1, [1, 12], "1 failed, 1 passed, 1 rerun"), ran.output
    assert (ran.verdict["complete"], ran.verdict["lost"], ran.verdict["flaky"]) == (False, 2, 0)
    assert attempted(ran) == {"test_it.py::test_sound": 1}
    started = Counter(line["nodeid"] for line in ran.of_type("started"))
    assert started == {"test_it.py::test_sound": 1, "test_it.py::test_dies": 2}


REFUSES_COLLECTION = """\
from pytest_captcha_qa.errors import ConfigError
raise ConfigError("no shop is configured")
"""


@pytest.mark.parametrize(
    ("module", "arguments", "code"),
    [
        ("import no_such_module", (), 2),
        ("import no_such_module", TWO, 1),
        ("import no_such_module", ("--continue-on-collection-errors",), 1),
        (REFUSES_COLLECTION, (), 4),
        (REFUSES_COLLECTION, TWO, 4),
    ],
    ids=["plain", "xdist", "goes on", "ours", "ours with xdist"],
)
def test_a_module_that_cannot_be_collected_is_told(
    staging: Callable[..., Any], module: str, arguments: tuple[str, ...], code: int
) -> None:
    ran = staging(SOUND | {"test_more.py": module}).run("--captcha-env=staging", *arguments)
    assert ran.code == code, ran.output
    assert ran.verdict["exit"] == code
    told = [reason["what"] for found in ran.verdict["codes"] for reason in found["reasons"]]
    assert ("test_more.py could not be collected" in told) == (code != 4)
    assert ("test_more.py could not be collected: no shop is configured" in told) == (code == 4)
    assert len(ran.attempts) == (0 if "0 items" in ran.output or "Interrupted" in ran.output else 3)


# Tests that are run again.

FLAKY = """\
SEEN = []

def test_flaky(captcha_token, captcha_attempt):
    text = captcha_token("login").reveal()
    assert text not in SEEN, "a rerun was given a spent token"
    SEEN.append(text)
    assert captcha_attempt("login")
    assert len(SEEN) == 3, "not yet"

def test_sound(captcha_attempt): assert captcha_attempt("login")
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--reruns=3",), 0), (("--reruns=3", *TWO), 0), (("--reruns=3", "--fail-on-flaky"), 7)],
    ids=["plain", "xdist", "fail on flaky"],
)
def test_a_test_that_passes_at_last_is_flaky_and_no_token_of_it_is_posted_twice(
    staging: Callable[..., Any], requests_at_site: Callable[[], Any], arguments: tuple[str, ...], code: int
) -> None:
    before = requests_at_site()["site"]["posts_by_token"]
    ran = staging({"test_it.py": FLAKY}).run("--captcha-env=staging", *arguments)

    assert (ran.code, ran.counts) == (code, "2 passed, 2 rerun"), ran.output
    assert ran.verdict["codes"] == [] or code
    assert (ran.verdict["flaky"], ran.verdict["forms"]["login"]["flaky"]) == (1, 1)
    assert ran.verdict["forms"]["login"]["verdict"] == "ok"
    assert "1 flaky (login): failed, and passed when run again" in ran.output
    tries = [a["attempt"] for a in ran.attempts if a["nodeid"] == "test_it.py::test_flaky"]
    assert sorted(tries) == [1, 1, 2, 2, 3, 3]
    posted = requests_at_site()["site"]["posts_by_token"]
    assert [posted[token] for token in posted.keys() - before.keys()] == [1] * 4
