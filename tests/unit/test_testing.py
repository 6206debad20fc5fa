from __future__ import annotations

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.engine.attempt import Attempt, run_attempt
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ScopeDenied, Stopped, TargetUnavailable, Unsolvable
from pytest_captcha_qa.model.attempt import AttemptRequest, Expect, Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, VerifySpec, VerifyVia
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.scope import ensure
from pytest_captcha_qa.testing import BASE_URL, Bench, FakeGrants, ScriptedProvider

CHALLENGE = Challenge(CaptchaType.TURNSTILE, "sitekey", BASE_URL)
SOON = Deadline(1, what="the test")
ME = Identity.make("run")


def test_a_bench_runs_a_whole_attempt_and_shows_every_side_of_it() -> None:
    bench = Bench()

    outcome = run_attempt(AttemptRequest("signup", "subject"), bench.services())

    assert outcome.ok
    assert [line.type for line in bench.records.lines] == ["started", "attempt"]
    assert bench.provider.told[0].page == bench.driver.opened[0].page
    assert bench.provider.polled == ["task-1"]
    [(sent, _)] = bench.driver.opened[0].posted
    assert sent is not None
    assert "task-1" in sent.text


def test_a_bench_takes_no_time() -> None:
    bench = Bench(provider=ScriptedProvider(polls=[None] * 200))
    began = bench.clock.monotonic()

    run_attempt(AttemptRequest("signup", "subject"), bench.services())

    assert bench.clock.monotonic() - began == sum(bench.stop.waits) == 201


def test_real_adapters_refuse_the_grants_of_the_test_kit() -> None:
    grant = FakeGrants().grant(BASE_URL)

    assert grant.covers(BASE_URL)
    with pytest.raises(ScopeDenied, match="test kit"):
        ensure(grant, BASE_URL)


def test_fake_grants_keep_to_the_origins_of_the_test() -> None:
    with pytest.raises(ScopeDenied, match=r"https://elsewhere\.example is not among"):
        FakeGrants().grant(BASE_URL.join("https://elsewhere.example/"))


def test_a_scripted_provider_answers_in_order_and_then_solves() -> None:
    grant = FakeGrants().grant(BASE_URL)
    own = Solution({"token": "own"})
    provider = ScriptedProvider(submits=["a", Unsolvable("no")], polls=[None, own, Unsolvable("no")])

    assert provider.submit(CHALLENGE, grant, SOON) == "a"
    with pytest.raises(Unsolvable):
        provider.submit(CHALLENGE, grant, SOON)
    assert provider.submit(CHALLENGE, grant, SOON) == "task-1"
    assert [provider.poll(CHALLENGE, "a", SOON) for _ in range(2)] == [None, own]
    with pytest.raises(Unsolvable):
        provider.poll(CHALLENGE, "a", SOON)
    last = provider.poll(CHALLENGE, "a", SOON)
    assert last is not None
    assert last.text.startswith("fake-token-of-a-")
    assert (len(provider.told), provider.polled) == (3, ["a"] * 4)


def test_a_scripted_provider_says_what_it_was_given_about_the_account() -> None:
    provider = ScriptedProvider(money=0.5)

    assert provider.balance(SOON) == 0.5
    assert provider.threads(SOON) is None


def test_a_scripted_form_answers_in_order_and_then_accepts() -> None:
    bench = Bench(driver=testing.ScriptedDriver(answers=[testing.refused(), TargetUnavailable("away")]))
    grants = FakeGrants()
    spec = testing.form()
    opened = bench.driver.open(spec, BASE_URL, grants, SOON, ME)

    assert spec.refuses(opened.submit(None, {}, grants, SOON))
    with pytest.raises(TargetUnavailable):
        opened.submit(None, {"a": "b"}, grants, SOON)
    again = bench.driver.open(spec, BASE_URL, grants, SOON, ME)  # all forms of a driver read one script
    assert spec.accepts(again.submit(None, {}, grants, SOON))
    assert opened.posted == [(None, {}), (None, {"a": "b"})]


def test_a_driver_may_fail_in_place_of_opening() -> None:
    driver = testing.ScriptedDriver(fails=TargetUnavailable("away"))

    with pytest.raises(TargetUnavailable):
        driver.open(testing.form(), BASE_URL, FakeGrants(), SOON, ME)
    assert driver.opened == []


@pytest.mark.parametrize("kind", [CaptchaType.GEETEST_V3, CaptchaType.ALTCHA, CaptchaType.IMAGE])
def test_every_load_of_a_page_shows_a_page_bound_type_another_challenge(kind: CaptchaType) -> None:
    driver, spec = testing.ScriptedDriver(), testing.form(type=kind)

    loads = [driver.open(spec, BASE_URL, FakeGrants(), SOON, ME).challenge.data for _ in range(2)]

    assert loads[0] != loads[1]


def test_a_scripted_verifier_gives_its_verdicts_and_then_passes() -> None:
    bench = Bench(
        forms=[testing.form(verify=VerifySpec(VerifyVia.ENDPOINT))],
        verifier=testing.ScriptedVerifier([Verdict(VerifyStatus.FAIL, "no")] * 2),  # a refused token gets a second one
    )

    outcomes = [run_attempt(AttemptRequest("signup", f"{n}"), bench.services()) for n in range(2)]

    assert [outcome.verdict.status for outcome in outcomes] == [VerifyStatus.FAIL, VerifyStatus.PASS]


def test_a_stopped_bench_ends_at_its_next_wait() -> None:
    bench = Bench()
    bench.stop.set("enough")

    with pytest.raises(Stopped, match="enough"):
        run_attempt(AttemptRequest("signup", "subject"), bench.services())
    assert [line.type for line in bench.records.lines] == ["started", "attempt"]


def test_a_benchs_refusal_checks_are_told_apart() -> None:
    bench = Bench(driver=testing.ScriptedDriver(answers=[testing.refused()]))
    with Attempt(AttemptRequest("signup", "subject"), bench.services()) as attempt:
        attempt.start()
        attempt.open()
        outcome = attempt.submit_expecting_refusal(None)

    assert (outcome.ok, outcome.expect) == (True, Expect.REFUSE)


def test_all_public_names_exist_once() -> None:
    assert all(hasattr(testing, name) for name in testing.__all__)
    assert len(set(testing.__all__)) == len(testing.__all__)
