from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.obtaining import Held, Order
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.store import Busy, Claim, Expired, Failed, Granted
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import CaptchaQAError, DeadlineExceeded, KeyConflict, OwnerLost, SpentElsewhere
from pytest_captcha_qa.model.attempt import AttemptKey, Fingerprint
from pytest_captcha_qa.model.captcha import Binding, CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import KeyTimes, Timeouts
from pytest_captcha_qa.model.token import Source, Token
from pytest_captcha_qa.state.memory import MemoryStore
from pytest_captcha_qa.testing import BASE_URL, Bench, FakeGrants, ManualStop, ScriptedProvider, solution

CHALLENGE = Challenge(CaptchaType.RECAPTCHA_V2, "sitekey", BASE_URL.join("/signup"))


def _order(bench: Bench, seconds: float = 300, fresh: bool = True, challenge: Challenge = CHALLENGE) -> Order:
    return Order(
        key=AttemptKey("default", "main", "test", str(BASE_URL.origin), "signup", "bench", "subject"),
        challenge=challenge,
        grants=FakeGrants(),
        times=KeyTimes.of(facts(challenge.type), timeouts=Timeouts()),
        deadline=Deadline(seconds, what="the test", now=bench.clock.monotonic),
        fresh=fresh,
    )


def _obtain(bench: Bench, **changes: object) -> tuple[Held, Token, Tally]:
    tally, obtainer = Tally(), bench.services().obtainer
    held = obtainer.obtain(_order(bench, **changes), tally)  # type: ignore[arg-type]
    return held, obtainer.token(held, tally), tally


def _claim(bench: Bench, owner: str = "elsewhere", **changes: object) -> Claim:
    order = _order(bench, **changes)  # type: ignore[arg-type]
    return bench.store.claim(order.key.digest, order.fingerprint, owner, times=order.times, fresh=order.fresh)


def _told(bench: Bench) -> list[tuple[str, object]]:
    return [(event.name, event.data.get("why")) for event in bench.events]


# Reuse, resume, wait.


def test_a_token_that_is_there_is_reused_and_costs_nothing(bench: Bench) -> None:
    first, _, _ = _obtain(bench)
    bench.clock.advance(30)

    second, token, tally = _obtain(bench)

    assert (first.source, second.source) == (Source.SOLVED, Source.REUSED)
    assert second.ready.solution == first.ready.solution
    assert tally == Tally()
    assert token.age == pytest.approx(31)
    assert token.wait == pytest.approx(1)


def test_a_token_is_not_kept_longer_than_its_validity_less_a_margin(bench: Bench) -> None:
    held, _, _ = _obtain(bench)
    bench.clock.advance(held.ready.expires_in)

    renewed, token, tally = _obtain(bench)

    assert (renewed.source, token.generation, tally.submits) == (Source.SOLVED, 2, 1)
    assert _told(bench) == [(events.TOKEN_RENEWED, "expired")]


def test_a_waiter_gets_what_the_other_caller_solves(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.intend(granted.lease)
    bench.store.submitted(granted.lease, "theirs")
    waited = bench.stop.wait

    def wait(seconds: float) -> None:
        waited(seconds)
        if len(bench.stop.waits) == 3:
            bench.store.solved(granted.lease, solved, age_bound=0)

    solved = solution("theirs")
    bench.stop.wait = wait  # type: ignore[method-assign]

    held, _, tally = _obtain(bench)

    assert (held.source, held.ready.solution.text) == (Source.REUSED, solved.text)
    assert (tally.submits, tally.polls, bench.provider.told) == (0, 0, [])


def test_the_task_of_a_worker_that_is_gone_is_resumed(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.intend(granted.lease)
    bench.store.submitted(granted.lease, "theirs")

    held, token, tally = _obtain(bench)

    assert (held.source, token.task_id, tally.submits) == (Source.RESUMED, "theirs", 0)
    assert bench.provider.polled == ["theirs"]


def test_a_submit_whose_fate_is_unknown_is_told_when_it_is_made_again(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.intend(granted.lease)

    held, _, _ = _obtain(bench)

    assert held.source is Source.SOLVED
    assert _told(bench) == [(events.SUBMIT_UNKNOWN, None)]


def test_waiting_for_another_caller_ends_at_the_deadline(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    began = bench.clock.monotonic()

    with pytest.raises(DeadlineExceeded, match="the test was not over after 10 s"):
        _obtain(bench, seconds=10)

    assert bench.clock.monotonic() - began == pytest.approx(10)


def test_waiting_for_another_caller_ends_with_a_stop(bench: Bench) -> None:
    _claim(bench)
    bench.stop.set("drain")

    with pytest.raises(errors.Stopped, match="drain"):
        _obtain(bench)


# Refusals of the store.


def test_another_page_under_the_same_key_is_a_conflict(bench: Bench) -> None:
    _obtain(bench)

    with pytest.raises(KeyConflict, match="different subject"):
        _obtain(bench, challenge=replace(CHALLENGE, sitekey="another"))


def test_without_fresh_a_token_that_was_used_up_stays_so(bench: Bench) -> None:
    held, token, _ = _obtain(bench, fresh=False)
    token.take()
    assert held.lease is not None
    bench.store.done(held.lease, "ok")

    with pytest.raises(SpentElsewhere, match="used already, with outcome ok"):
        _obtain(bench, fresh=False)


def test_without_fresh_a_consumer_that_vanished_is_told_and_nothing_is_posted_again(bench: Bench) -> None:
    _, token, _ = _obtain(bench, fresh=False)
    token.take()

    with pytest.raises(SpentElsewhere, match="perhaps posted"):
        _obtain(bench, fresh=False)

    assert _told(bench) == [(events.SUBMIT_MAYBE_POSTED, None)]


def test_with_fresh_a_used_token_is_followed_by_the_next(bench: Bench) -> None:
    _, first, _ = _obtain(bench)
    first.take()

    _, second, tally = _obtain(bench)

    assert (second.generation, tally.submits) == (2, 1)
    assert _told(bench) == [(events.TOKEN_RENEWED, "fresh")]


@pytest.mark.parametrize("cls", errors.all_errors().values(), ids=lambda cls: cls.__name__)
def test_those_who_wait_learn_the_error_of_the_caller_who_solved(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, cls: type[CaptchaQAError]
) -> None:
    _fail_while_others_wait(bench, monkeypatch, cls.code, not_before=50.0)

    expected = errors.ProviderError if cls is errors.TransportError else cls
    with pytest.raises(expected, match="another caller with the same subject") as raised:
        _obtain(bench)

    assert type(raised.value) is expected
    assert raised.value.retry_after == pytest.approx(50.0)


def test_who_comes_after_a_failure_waits_until_it_may_be_tried_again(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.failed(granted.lease, "provider_unavailable", not_before=5.0)

    held, _, tally = _obtain(bench)

    assert (held.source, tally.submits) == (Source.SOLVED, 1)
    assert bench.stop.waits[0] == pytest.approx(5.0)


def _fail_while_others_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch, code: str, *, not_before: float) -> None:
    """Let the key be owned by somebody who fails during the first wait of another caller."""
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    wait = bench.stop.wait

    def wait_and_fail(seconds: float) -> None:
        wait(seconds)
        bench.store.failed(granted.lease, code, not_before=not_before)

    monkeypatch.setattr(bench.stop, "wait", wait_and_fail)


def test_a_code_of_another_version_is_an_error_of_the_provider(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.failed(granted.lease, "of_the_future", not_before=None)

    with pytest.raises(errors.ProviderError) as raised:
        _obtain(bench)
    assert raised.value.retry_after is None


def test_trouble_of_the_account_is_over_for_the_key_after_a_while(bench: Bench) -> None:
    bench.provider = ScriptedProvider(submits=[errors.KeyRejected("wrong")])
    with pytest.raises(errors.KeyRejected, match="wrong"):
        _obtain(bench)
    assert isinstance(_claim(bench), Failed)
    bench.services().obtainer.solver.admission.resume()
    bench.clock.advance(5)

    held, _, _ = _obtain(bench)

    assert held.source is Source.SOLVED


# Second tasks.


def test_an_unsolvable_challenge_is_tried_once_more_and_told(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[errors.Unsolvable("no")])

    held, _, tally = _obtain(bench)

    assert (held.source, held.ready.solution.task_id, tally.submits) == (Source.SOLVED, "task-2", 2)
    assert _told(bench) == [(events.TOKEN_RENEWED, "unsolvable")]
    assert bench.events[0].data["task_id"] == "task-1"
    assert held.ready.solution.wait == pytest.approx(tally.solve + tally.detect) == pytest.approx(1)


def test_an_unsolvable_challenge_is_given_up_after_the_second_task(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[errors.Unsolvable("no")] * 9)

    with pytest.raises(errors.Unsolvable):
        _obtain(bench)

    assert len(bench.provider.told) == 2


def test_a_resumed_task_that_is_gone_may_be_a_token_that_was_read_and_lost(bench: Bench) -> None:
    granted = _claim(bench)
    assert isinstance(granted, Granted)
    bench.store.intend(granted.lease)
    bench.store.submitted(granted.lease, "theirs")
    bench.provider = ScriptedProvider(polls=[errors.TaskUnknown("which?")])

    held, _, tally = _obtain(bench)

    assert (held.source, tally.submits) == (Source.SOLVED, 1)
    assert _told(bench) == [(events.TOKEN_LOST, None)]
    assert bench.events[0].data["task_id"] == "theirs"
    assert bench.events[0].data["key"] == granted.lease.key[:8]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_lost_task_is_told_before_the_store_lets_another_be_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    if resumed:
        granted = _claim(bench)
        assert isinstance(granted, Granted)
        bench.store.intend(granted.lease)
        bench.store.submitted(granted.lease, "theirs")
    bench.provider = ScriptedProvider(polls=[errors.TaskUnknown("which?")])

    def crash(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.store, "failed", crash)

    with pytest.raises(KeyboardInterrupt):
        _obtain(bench)

    assert _told(bench) == [(events.TOKEN_LOST, None) if resumed else (events.TOKEN_RENEWED, "task_unknown")]


@pytest.mark.parametrize("call", ["renew", "intend", "submitted", "solved"])
def test_an_owner_that_was_replaced_asks_the_store_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real: Callable[..., object] = getattr(bench.store, call)
    failures = iter([OwnerLost("late")])

    def once(*args: object, **kwargs: object) -> object:
        for failure in failures:
            raise failure
        return real(*args, **kwargs)

    monkeypatch.setattr(bench.store, call, once)

    held, token, tally = _obtain(bench)

    assert token.task_id == held.ready.solution.task_id
    assert tally.submits <= 2
    assert bench.store.peek(_order(bench).key.digest) is not None


@pytest.mark.parametrize("call", ["claim", "renew", "intend", "submitted", "solved"])
def test_a_store_that_is_away_is_an_error_of_its_own(bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(bench.store, call, away)

    with pytest.raises(errors.StoreUnavailable):
        _obtain(bench)


# Spending.


def test_a_token_is_taken_once_and_its_holder_may_still_look_at_it(bench: Bench) -> None:
    held, token, _ = _obtain(bench)

    taken = token.take()

    assert token.spent
    assert token.reveal() == taken.text
    with pytest.raises(ValueError, match="submitted or revealed before"):
        token.take()
    assert held.lease is not None


def test_a_token_that_was_given_back_is_spent_in_the_store_anew(bench: Bench) -> None:
    held, token, tally = _obtain(bench)
    token.take()
    assert held.lease is not None
    bench.store.unspend(held.lease)
    token.unspend()

    again, _, _ = _obtain(bench)
    assert (again.source, again.ready.solution) == (Source.REUSED, held.ready.solution)
    token.take()

    assert (tally.submits, isinstance(_claim(bench, fresh=False), Busy)) == (1, True)


def test_a_token_that_expired_in_the_hand_is_made_anew_and_told(bench: Bench) -> None:
    held, token, tally = _obtain(bench)
    first = held.ready.solution
    bench.clock.advance(200)

    newer = token.take()

    assert newer.text != first.text
    assert (token.generation, token.source, token.task_id) == (2, Source.SOLVED, "task-2")
    assert tally.submits == 2
    assert token.age == pytest.approx(1)
    assert _told(bench) == [(events.TOKEN_RENEWED, "expired")]


def test_a_renewal_keeps_to_the_seconds_it_is_given(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[solution("task-1"), *[None] * 999])
    _, token, _ = _obtain(bench)
    bench.clock.advance(200)
    began = bench.clock.monotonic()

    with pytest.raises(DeadlineExceeded, match="renewal of a token for 'signup' was not over after 42 s"):
        token.take(within=42)

    assert bench.clock.monotonic() - began == pytest.approx(42)
    assert not token.spent


def test_a_renewal_never_takes_longer_than_a_solve_may(bench: Bench) -> None:
    bench.provider = ScriptedProvider(polls=[solution("task-1"), *[None] * 999])
    _, token, _ = _obtain(bench)
    bench.clock.advance(200)
    began = bench.clock.monotonic()

    with pytest.raises(DeadlineExceeded):
        token.take()

    assert bench.clock.monotonic() - began == pytest.approx(facts(CHALLENGE.type).solve_deadline)


def test_with_fresh_a_token_that_another_caller_took_is_followed_by_the_next(bench: Bench) -> None:
    _, mine, _ = _obtain(bench)
    _, theirs, _ = _obtain(bench)
    taken = theirs.take()

    own = mine.take()

    assert own.text != taken.text
    assert (mine.generation, _told(bench)) == (2, [(events.TOKEN_RENEWED, "fresh")])


def test_without_fresh_a_token_that_another_caller_took_is_news_and_no_second_submit(bench: Bench) -> None:
    _, mine, _ = _obtain(bench, fresh=False)
    held, theirs, _ = _obtain(bench, fresh=False)
    theirs.take()
    assert held.lease is not None
    bench.store.done(held.lease, "ok")

    with pytest.raises(SpentElsewhere):
        mine.take()

    assert len(bench.provider.told) == 1
    assert not mine.spent


def test_a_token_that_is_never_there_to_be_used_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token, _ = _obtain(bench)
    asked: list[object] = []

    def too_late(*args: object) -> Expired:
        asked.append(args)
        return Expired()

    monkeypatch.setattr(bench.store, "spend", too_late)

    with pytest.raises(SpentElsewhere, match="renewed 3 times"):
        token.take()

    assert len(asked) == 4  # the last renewal was offered too


# Types whose token is bound to one load of the page.


PAGE_BOUND = [kind for kind in CaptchaType if facts(kind).binding is Binding.PAGE]


@pytest.fixture(params=PAGE_BOUND)
def of_page(request: pytest.FixtureRequest) -> Callable[[str], Challenge]:
    """Return what one load of the page shows of a type that is bound to it."""
    page = BASE_URL.join("/signup")
    return lambda load: Challenge(request.param, "", page, data={"what each load shows anew": load})


def test_a_page_bound_token_is_not_reused_on_another_load(bench: Bench, of_page: Callable[[str], Challenge]) -> None:
    first, _, _ = _obtain(bench, challenge=of_page("one"))
    second, token, tally = _obtain(bench, challenge=of_page("two"))

    assert (first.source, second.source, token.generation) == (Source.SOLVED, Source.SOLVED, 2)
    assert tally.submits == 1
    assert _told(bench) == [(events.TOKEN_RENEWED, "page")]


def test_a_page_bound_token_is_reused_on_its_own_load(bench: Bench, of_page: Callable[[str], Challenge]) -> None:
    _obtain(bench, challenge=of_page("one"))
    second, _, _ = _obtain(bench, challenge=of_page("one"))

    assert second.source is Source.REUSED


def test_the_task_of_a_worker_that_is_gone_is_not_resumed_on_another_load(
    bench: Bench, of_page: Callable[[str], Challenge]
) -> None:
    granted = _claim(bench, challenge=of_page("one"))
    assert isinstance(granted, Granted)
    bench.store.intend(granted.lease)
    bench.store.submitted(granted.lease, "theirs")

    held, token, tally = _obtain(bench, challenge=of_page("two"))

    assert (held.source, token.generation, tally.submits) == (Source.SOLVED, 2, 1)
    assert "theirs" not in bench.provider.polled
    assert _told(bench) == [(events.TOKEN_RENEWED, "page")]


def test_a_page_bound_token_that_expired_needs_the_page_again(
    bench: Bench, of_page: Callable[[str], Challenge]
) -> None:
    _, token, _ = _obtain(bench, challenge=of_page("one"))
    bench.clock.advance(200)

    with pytest.raises(DeadlineExceeded, match="open the page again"):
        token.take()
    assert len(bench.provider.told) == 1


def test_a_page_bound_token_that_another_took_needs_the_page_again(
    bench: Bench, of_page: Callable[[str], Challenge]
) -> None:
    _, mine, _ = _obtain(bench, challenge=of_page("one"))
    _, theirs, _ = _obtain(bench, challenge=of_page("one"))
    theirs.take()

    with pytest.raises(SpentElsewhere, match="open the page again"):
        mine.take()
    assert len(bench.provider.told) == 1


# Many callers with one key.


class CountingStore(MemoryStore):
    """Counts the claims that were told to wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self.waiters: set[str] = set()
        self.all_wait = threading.Event()

    def claim(self, key: str, fingerprint: Fingerprint, owner: str, *, times: KeyTimes, fresh: bool = False) -> Claim:
        answer = super().claim(key, fingerprint, owner, times=times, fresh=fresh)
        if isinstance(answer, Busy):
            self.waiters.add(owner)
            if len(self.waiters) == 7:
                self.all_wait.set()
        return answer


class YieldingStop(ManualStop):
    """Lets other threads run in place of waiting; the clock stands still, so no lease lapses."""

    def wait(self, seconds: float) -> None:
        Stop.check(self)
        os.sched_yield()


def test_eight_threads_with_one_key_cause_one_submit_and_one_of_them_may_use_the_token(bench: Bench) -> None:
    bench.stop = YieldingStop(bench.clock)
    bench.store = store = CountingStore(bench.clock.monotonic)
    bench.provider.before_answer = lambda: None if store.all_wait.wait(30) else pytest.fail("nobody waited")
    together = threading.Barrier(8)
    obtained: list[tuple[str, Source]] = []

    def caller() -> str | None:
        together.wait(30)
        held, token, _ = _obtain(bench, fresh=False)
        obtained.append((held.ready.solution.text, held.source))
        together.wait(30)
        try:
            text = str(token.reveal())
        except SpentElsewhere:
            return None
        assert held.lease is not None
        bench.store.done(held.lease, "ok")
        return text

    with ThreadPoolExecutor(8) as pool:
        used = [future.result() for future in [pool.submit(caller) for _ in range(8)]]

    assert len(bench.provider.told) == 1
    assert len({text for text, _ in obtained}) == 1
    assert sorted(source for _, source in obtained) == sorted([Source.SOLVED] + [Source.REUSED] * 7)
    assert [text for text in used if text is not None] == [obtained[0][0]]


def test_a_token_that_threads_share_is_spent_once(bench: Bench) -> None:
    _, token, _ = _obtain(bench)
    together = threading.Barrier(8)

    def use() -> str:
        together.wait(30)
        return str(token.reveal())

    with ThreadPoolExecutor(8) as pool:
        texts = {future.result() for future in [pool.submit(use) for _ in range(8)]}

    assert len(texts) == 1
    assert len(bench.provider.told) == 1
