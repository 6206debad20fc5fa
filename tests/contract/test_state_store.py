"""What every implementation of the port StateStore does (state.md)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pytest_captcha_qa.engine.events import SUBMIT_UNKNOWN
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.store import (
    AlreadyMine,
    Busy,
    Claim,
    Conflict,
    Done,
    Expired,
    Failed,
    Granted,
    Indeterminate,
    Lease,
    Lost,
    Ready,
    Resume,
    Won,
)
from pytest_captcha_qa.errors import OwnerLost
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.transitional import TransitionalStore

Advance = Callable[[float], None]

KEY = "5e" * 32
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
FORM = Fingerprint("signup")
OTHER = Fingerprint("another sitekey")
PAGE_1 = Fingerprint("geetest", "page 1")
PAGE_2 = Fingerprint("geetest", "page 2")
TOKEN = Solution({"token": "03AGdBq24" * 20}, task_id="t-1", wait=21.4, user_agent="UA/1", cookies={"a": "b"})


def claim(store: TransitionalStore, owner: str = "a", fingerprint: Fingerprint = FORM, *, fresh: bool = False) -> Claim:
    return store.claim(KEY, fingerprint, owner, times=TIMES, fresh=fresh)


def granted(store: TransitionalStore, owner: str = "a", fingerprint: Fingerprint = FORM) -> Lease:
    answer = claim(store, owner, fingerprint)
    assert isinstance(answer, Granted)
    return answer.lease


def submitted(store: TransitionalStore, owner: str = "a", fingerprint: Fingerprint = FORM) -> Lease:
    lease = granted(store, owner, fingerprint)
    store.intend(lease)
    store.submitted(lease, "t-1")
    return lease


def ready(store: TransitionalStore, fingerprint: Fingerprint = FORM, *, age_bound: float = 0) -> Ready:
    return store.solved(submitted(store, "a", fingerprint), TOKEN, age_bound=age_bound)


def spent(store: TransitionalStore, consumer: str = "c") -> Lease:
    answer = store.spend(ready(store), consumer)
    assert isinstance(answer, Won)
    return answer.lease


def closed(store: TransitionalStore) -> None:
    store.done(spent(store), "ok")


def failed(store: TransitionalStore, not_before: float | None = None) -> None:
    store.failed(granted(store), "unsolvable", not_before=not_before)


# Claims


def test_the_first_claim_is_granted_and_the_second_owner_waits(store: TransitionalStore) -> None:
    first = claim(store, "a")
    assert isinstance(first, Granted)
    assert (first.lease.generation, first.tries, first.event, first.replaced) == (1, 0, None, None)
    assert claim(store, "b") == Busy(1.0)


def test_a_waiter_never_sleeps_much_beyond_the_lease(store: TransitionalStore, advance: Advance) -> None:
    granted(store)
    advance(29.8)
    answer = claim(store, "b")
    assert isinstance(answer, Busy)
    assert 0.2 <= answer.retry_after <= 0.3


def test_an_owner_whose_grant_was_lost_on_the_way_gets_it_again(store: TransitionalStore, advance: Advance) -> None:
    first = claim(store, "a")
    advance(29)
    assert claim(store, "a") == first


def test_a_lapsed_lease_goes_to_the_next_claim_under_a_new_nonce(store: TransitionalStore, advance: Advance) -> None:
    old = granted(store, "a")
    advance(30)
    new = claim(store, "a")
    assert isinstance(new, Granted)
    assert new.lease.generation == 1
    assert new.lease.nonce != old.nonce
    with pytest.raises(OwnerLost):
        store.intend(old)


def test_what_a_grant_says_is_said_to_whoever_takes_it_over(store: TransitionalStore, advance: Advance) -> None:
    closed(store)
    first = claim(store, "a", fresh=True)
    advance(31)
    second = claim(store, "b")
    assert isinstance(first, Granted)
    assert isinstance(second, Granted)
    assert (first.replaced, second.replaced) == ("fresh", "fresh")
    store.intend(second.lease)
    advance(51)
    third = claim(store, "c")
    advance(31)
    fourth = claim(store, "d")
    assert isinstance(third, Granted)
    assert isinstance(fourth, Granted)
    assert (third.event, fourth.event) == (SUBMIT_UNKNOWN, SUBMIT_UNKNOWN)


def test_a_submit_that_went_silent_is_named_to_whoever_takes_over(store: TransitionalStore, advance: Advance) -> None:
    old = granted(store, "a")
    store.intend(old)
    advance(49)
    assert isinstance(claim(store, "b"), Busy)
    advance(1)
    new = claim(store, "b")
    assert isinstance(new, Granted)
    assert (new.event, new.lease.generation) == (SUBMIT_UNKNOWN, 1)
    assert claim(store, "b") == new
    with pytest.raises(OwnerLost) as refused:
        store.submitted(old, "t-orphan")
    assert refused.value.task_id == "t-orphan"


def test_a_task_is_resumed_by_its_id_once_its_owner_is_silent(store: TransitionalStore, advance: Advance) -> None:
    old = submitted(store, "a")
    advance(10)
    store.renew(old, last_not_ready=2)
    advance(29)
    assert isinstance(claim(store, "b"), Busy)
    advance(1)
    answer = claim(store, "b")
    assert isinstance(answer, Resume)
    assert (answer.task_id, answer.age, answer.not_ready_age, answer.suspect) == ("t-1", 40, 32, False)
    assert claim(store, "b") == answer
    with pytest.raises(OwnerLost):
        store.renew(old)


def test_an_owner_whose_reply_was_lost_after_the_submit_resumes_under_its_own_lease(
    store: TransitionalStore,
) -> None:
    lease = submitted(store, "a")
    answer = claim(store, "a")
    assert isinstance(answer, Resume)
    assert answer.lease == lease


def test_a_task_older_than_its_redelivery_is_not_resumed(store: TransitionalStore, advance: Advance) -> None:
    submitted(store)
    advance(TIMES.solve + TIMES.redelivery)
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "expired")


def test_a_task_of_an_older_epoch_resumes_as_suspect(store: TransitionalStore, advance: Advance) -> None:
    submitted(store)
    store.epoch = "restarted"
    advance(30)
    answer = claim(store, "b")
    assert isinstance(answer, Resume)
    assert answer.suspect


def test_a_token_is_offered_to_everybody_with_its_age(store: TransitionalStore, advance: Advance) -> None:
    mine = ready(store, age_bound=5)
    advance(10)
    for owner in "abc":
        answer = claim(store, owner, fresh=owner == "c")
        assert answer == replace(mine, age=15, expires_in=95)
        assert isinstance(answer, Ready)
        assert answer.solution == TOKEN


def test_a_token_is_kept_no_longer_than_its_validity_since_it_was_not_ready(
    store: TransitionalStore, advance: Advance
) -> None:
    offer = ready(store, age_bound=10)
    advance(99.9)
    assert isinstance(claim(store, "b"), Ready)
    advance(0.1)
    assert store.spend(offer, "c") == Expired()
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "expired")
    assert store.spend(offer, "c") == Lost()


def test_a_token_of_an_older_epoch_is_neither_offered_nor_spent(store: TransitionalStore) -> None:
    offer = ready(store)
    store.epoch = "restarted"
    assert store.spend(offer, "c") == Expired()
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "epoch")


def test_a_spent_token_is_waited_for_and_then_indeterminate(store: TransitionalStore, advance: Advance) -> None:
    spent(store)
    assert isinstance(claim(store, "b"), Busy)
    advance(30)
    assert claim(store, "b") == Indeterminate()


@pytest.mark.parametrize("lapsed", [0, 31])
def test_a_fresh_claim_does_not_wait_for_a_spent_token(
    store: TransitionalStore, advance: Advance, lapsed: float
) -> None:
    lease = spent(store)
    advance(lapsed)
    answer = claim(store, "b", fresh=True)
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "fresh")
    with pytest.raises(OwnerLost):
        store.done(lease, "ok")


def test_a_closed_key_tells_its_outcome_and_a_fresh_claim_begins_anew(store: TransitionalStore) -> None:
    store.done(spent(store), "ok", session="cookies")
    assert claim(store, "b") == Done("ok", "cookies")
    answer = claim(store, "b", fresh=True)
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "fresh")
    assert claim(store, "b", fresh=True) == answer


def test_a_closed_key_is_forgotten_after_its_tombstone(store: TransitionalStore, advance: Advance) -> None:
    closed(store)
    advance(TIMES.tombstone - 0.1)
    assert claim(store, "b") == Done("ok")
    advance(0.1)
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (1, None)


def test_a_failure_that_may_be_retried_counts_its_tries(store: TransitionalStore, advance: Advance) -> None:
    failed(store, not_before=20)
    advance(5)
    assert claim(store, "b") == Failed("unsolvable", 15)
    advance(15)
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.tries) == (1, 1)
    store.failed(answer.lease, "unsolvable", not_before=0)
    again = claim(store, "b")
    assert isinstance(again, Granted)
    assert again.tries == 2


def test_a_failure_for_good_stays_one_until_it_is_forgotten(store: TransitionalStore, advance: Advance) -> None:
    failed(store)
    advance(TIMES.redelivery - 0.1)
    assert claim(store, "b", fresh=True) == Failed("unsolvable", None)
    advance(0.1)
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert answer.lease.generation == 2


# Fingerprints


@pytest.mark.parametrize("reach", [granted, submitted, ready, spent, closed, failed])
def test_another_fingerprint_conflicts_with_a_plain_claim_in_every_state(
    store: TransitionalStore, reach: Callable[[TransitionalStore], object]
) -> None:
    reach(store)
    assert claim(store, "b", OTHER) == Conflict()
    assert claim(store, "a", OTHER) == Conflict()


@pytest.mark.parametrize("reach", [granted, submitted, ready])
def test_another_fingerprint_conflicts_with_a_fresh_claim_while_the_generation_lives(
    store: TransitionalStore, reach: Callable[[TransitionalStore], object]
) -> None:
    reach(store)
    assert claim(store, "b", OTHER, fresh=True) == Conflict()


@pytest.mark.parametrize("reach", [spent, closed, failed])
def test_a_next_generation_takes_the_new_fingerprint(
    store: TransitionalStore, reach: Callable[[TransitionalStore], object]
) -> None:
    reach(store)
    answer = claim(store, "b", OTHER, fresh=True)
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "fresh")
    assert claim(store, "c", FORM) == Conflict()
    assert isinstance(claim(store, "c", OTHER), Busy)


def test_an_expired_token_makes_room_for_another_fingerprint(store: TransitionalStore, advance: Advance) -> None:
    ready(store)
    advance(111)
    answer = claim(store, "b", OTHER)
    assert isinstance(answer, Granted)
    assert answer.replaced == "expired"


def test_a_lease_under_which_nothing_was_sent_makes_room_for_a_fresh_claim(
    store: TransitionalStore, advance: Advance
) -> None:
    granted(store)
    advance(30)
    assert claim(store, "b", OTHER) == Conflict()
    assert isinstance(claim(store, "b", OTHER, fresh=True), Granted)


def test_a_token_bound_to_another_page_is_replaced(store: TransitionalStore) -> None:
    offer = ready(store, PAGE_1)
    assert isinstance(claim(store, "b", PAGE_1), Ready)
    answer = claim(store, "b", PAGE_2)
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "page")
    assert store.spend(offer, "a") == Lost()


def test_a_task_bound_to_another_page_is_waited_for_and_then_replaced(
    store: TransitionalStore, advance: Advance
) -> None:
    submitted(store, "a", PAGE_1)
    assert isinstance(claim(store, "b", PAGE_2), Busy)
    assert isinstance(claim(store, "a", PAGE_2), Busy)
    advance(30)
    answer = claim(store, "b", PAGE_2)
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "page")


def test_a_lapsed_lease_is_taken_over_for_another_page(store: TransitionalStore, advance: Advance) -> None:
    granted(store, "a", PAGE_1)
    assert isinstance(claim(store, "a", PAGE_2), Busy)
    advance(30)
    submitted(store, "b", PAGE_2)
    advance(30)
    assert isinstance(claim(store, "c", PAGE_2), Resume)


# Spending


def test_one_consumer_wins_and_its_repeated_call_says_so(store: TransitionalStore) -> None:
    offer = ready(store)
    won = store.spend(offer, "c")
    assert isinstance(won, Won)
    assert store.spend(offer, "c") == AlreadyMine(won.lease)
    assert store.spend(offer, "d") == Lost()
    store.done(won.lease, "ok")
    assert store.spend(offer, "d") == Lost()


def test_threads_that_hold_one_token_get_one_winner(store: TransitionalStore) -> None:
    offer = ready(store)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: store.spend(offer, f"consumer {n}"), range(16)))
    assert sum(isinstance(answer, Won) for answer in answers) == 1
    assert sum(answer == Lost() for answer in answers) == 15


def test_threads_that_claim_one_key_get_one_grant(store: TransitionalStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: claim(store, f"owner {n}"), range(16)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 1
    assert sum(isinstance(answer, Busy) for answer in answers) == 15


def test_a_token_given_back_is_offered_again_but_not_beyond_its_time(
    store: TransitionalStore, advance: Advance
) -> None:
    lease = spent(store, "c")
    store.unspend(lease)
    store.unspend(lease)
    answer = claim(store, "b")
    assert isinstance(answer, Ready)
    won = store.spend(answer, "d")
    assert isinstance(won, Won)
    with pytest.raises(OwnerLost):
        store.unspend(lease)
    advance(120)
    store.unspend(won.lease)
    renewed = claim(store, "b")
    assert isinstance(renewed, Granted)
    assert renewed.replaced == "expired"


def test_a_closed_key_is_not_forgotten_before_its_last_offer_has_expired(
    store: TransitionalStore, advance: Advance
) -> None:
    times = replace(TIMES, solve=10, redelivery=1)
    lease = store.claim(KEY, FORM, "a", times=times)
    assert isinstance(lease, Granted)
    store.intend(lease.lease)
    store.submitted(lease.lease, "t-1")
    won = store.spend(store.solved(lease.lease, TOKEN, age_bound=0), "c")
    assert isinstance(won, Won)
    store.done(won.lease, "ok")
    advance(109)
    assert claim(store, "b") == Done("ok")
    advance(1)
    assert isinstance(claim(store, "b"), Granted)


def test_an_old_offer_never_wins_a_key_that_was_forgotten_and_begun_anew(
    store: TransitionalStore, advance: Advance
) -> None:
    old = ready(store)
    advance(10_000)
    assert store.spend(old, "c") == Lost()
    new = store.solved(submitted(store, "b"), Solution({"token": "another"}), age_bound=0)
    assert new.generation == old.generation
    assert store.spend(old, "c") == Lost()
    assert isinstance(store.spend(new, "d"), Won)


def test_an_offer_of_an_older_generation_never_wins_even_where_all_tokens_are_equal(
    store: TransitionalStore,
) -> None:
    old = ready(store)
    won = store.spend(old, "c")
    assert isinstance(won, Won)
    store.done(won.lease, "ok")
    lease = claim(store, "b", fresh=True)
    assert isinstance(lease, Granted)
    store.intend(lease.lease)
    store.submitted(lease.lease, "t-2")
    store.solved(lease.lease, TOKEN, age_bound=0)
    assert store.spend(old, "d") == Lost()


def test_a_generation_outlives_every_offer_of_it(store: TransitionalStore, advance: Advance) -> None:
    ready(store)
    advance(TIMES.keep + TIMES.tombstone - 0.1)
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert answer.lease.generation == 2


# Writes


def test_every_write_may_be_repeated_after_a_lost_reply(store: TransitionalStore) -> None:
    lease = granted(store)
    store.intend(lease)
    store.intend(lease)
    store.submitted(lease, "t-1")
    store.submitted(lease, "t-1")
    offer = store.solved(lease, TOKEN, age_bound=3)
    assert store.solved(lease, TOKEN, age_bound=3) == offer
    won = store.spend(offer, "c")
    assert isinstance(won, Won)
    assert store.solved(lease, TOKEN, age_bound=3) == offer
    store.done(won.lease, "ok", session="s")
    store.done(won.lease, "ok", session="s")


def test_a_failure_may_be_repeated_with_its_code_only(store: TransitionalStore) -> None:
    lease = granted(store)
    store.failed(lease, "busy", not_before=5)
    store.failed(lease, "busy", not_before=5)
    with pytest.raises(OwnerLost):
        store.failed(lease, "unsolvable")


def test_a_repeat_with_other_values_is_refused(store: TransitionalStore) -> None:
    lease = submitted(store)
    with pytest.raises(OwnerLost):
        store.submitted(lease, "t-2")
    offer = store.solved(lease, TOKEN, age_bound=0)
    with pytest.raises(OwnerLost):
        store.solved(lease, Solution({"token": "another"}), age_bound=0)
    won = store.spend(offer, "c")
    assert isinstance(won, Won)
    store.done(won.lease, "ok")
    with pytest.raises(OwnerLost):
        store.done(won.lease, "failed")


WRITES: dict[str, Callable[[TransitionalStore, Lease], object]] = {
    "intend": lambda store, lease: store.intend(lease),
    "submitted": lambda store, lease: store.submitted(lease, "t-9"),
    "renew": lambda store, lease: store.renew(lease),
    "solved": lambda store, lease: store.solved(lease, Solution({"token": "x"}), age_bound=0),
    "unspend": lambda store, lease: store.unspend(lease),
    "done": lambda store, lease: store.done(lease, "other"),
    "failed": lambda store, lease: store.failed(lease, "other"),
}
ALLOWED = {
    State.LEASED: {"intend", "renew", "failed"},
    State.INTENT: {"intend", "submitted", "renew", "failed"},
    State.SUBMITTED: {"renew", "solved", "failed"},
    State.READY: {"unspend"},  # the repeat of one that succeeded; it changes nothing
    State.SPENT: {"renew", "unspend", "done"},
    State.DONE: set(),
    State.FAILED: set(),
}


def lease_in(store: TransitionalStore, state: State) -> Lease:
    lease = granted(store)
    if state is State.FAILED:
        store.failed(lease, "busy")
    if state in (State.LEASED, State.FAILED):
        return lease
    store.intend(lease)
    if state is State.INTENT:
        return lease
    store.submitted(lease, "t-1")
    if state is State.SUBMITTED:
        return lease
    won = store.spend(store.solved(lease, TOKEN, age_bound=0), "c")
    assert isinstance(won, Won)
    if state is State.READY:
        store.unspend(won.lease)
    if state is State.DONE:
        store.done(won.lease, "ok")
    return won.lease


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("state", State)
def test_a_state_takes_only_the_writes_of_the_table(store: TransitionalStore, state: State, write: str) -> None:
    lease = lease_in(store, state)
    if write in ALLOWED[state]:
        WRITES[write](store, lease)
    else:
        with pytest.raises(OwnerLost):
            WRITES[write](store, lease)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("state", State)
def test_a_wrong_nonce_or_generation_writes_nothing(store: TransitionalStore, state: State, write: str) -> None:
    lease = lease_in(store, state)
    before = store.peek(KEY)
    for wrong in (replace(lease, nonce="0" * 32), replace(lease, generation=lease.generation + 1)):
        with pytest.raises(OwnerLost):
            WRITES[write](store, wrong)
    assert store.peek(KEY) == before


def test_a_write_to_a_key_the_store_does_not_know_is_refused_in_words(store: TransitionalStore) -> None:
    lease = Lease(KEY, 1, "secret-nonce", "gw0", TIMES)
    with pytest.raises(OwnerLost, match=r"gw0 no longer holds key 5e5e5e5e… .* the store has nothing") as refused:
        store.renew(lease)
    assert "secret-nonce" not in str(refused.value)


def test_a_submit_is_not_announced_under_a_lapsed_lease(store: TransitionalStore, advance: Advance) -> None:
    lease = granted(store)
    advance(30)
    with pytest.raises(OwnerLost):
        store.intend(lease)


def test_a_renewed_lease_lives_on(store: TransitionalStore, advance: Advance) -> None:
    lease = submitted(store)
    for _ in range(10):
        advance(10)
        store.renew(lease)
    advance(29)
    assert isinstance(claim(store, "b"), Busy)


def test_a_spent_token_whose_lease_is_renewed_stays_its_consumers(store: TransitionalStore, advance: Advance) -> None:
    lease = lease_in(store, State.SPENT)
    for _ in range(30):
        advance(10)
        assert isinstance(claim(store, "b"), Busy)
        store.renew(lease)
    advance(29.9)
    assert isinstance(claim(store, "b"), Busy)
    with pytest.raises(OwnerLost):
        store.renew(replace(lease, nonce="somebody else's"))
    with pytest.raises(OwnerLost):
        store.renew(replace(lease, generation=2))
    advance(0.1)
    assert claim(store, "b") == Indeterminate()
    store.done(lease, "ok")
    assert claim(store, "b") == Done("ok")


def test_renewing_never_shortens_a_submit_under_way(store: TransitionalStore, advance: Advance) -> None:
    lease = granted(store)
    store.intend(lease)
    store.renew(lease)
    advance(49)
    assert isinstance(claim(store, "b"), Busy)


def test_a_late_renewal_does_not_make_a_task_look_older(store: TransitionalStore, advance: Advance) -> None:
    lease = submitted(store)
    advance(20)
    store.renew(lease, last_not_ready=1)
    store.renew(lease, last_not_ready=15)
    answer = claim(store, "a")
    assert isinstance(answer, Resume)
    assert answer.not_ready_age == 1


def test_verdict_and_token_and_task_and_request_are_kept_apart(store: TransitionalStore) -> None:
    ready(store)
    store.verified(KEY, 1, "pass")
    state = store.peek(KEY)
    assert state is not None
    assert state.task is not None
    assert state.token is not None
    assert state.verification is not None
    assert (state.request, state.task.id, state.token.solution) == (FORM, "t-1", TOKEN)
    assert (state.verification.generation, state.verification.verdict) == (1, "pass")


def test_a_verdict_about_another_generation_is_dropped(store: TransitionalStore) -> None:
    closed(store)
    claim(store, "b", fresh=True)
    store.verified(KEY, 1, "pass")
    store.verified("00" * 32, 1, "pass")
    state = store.peek(KEY)
    assert state is not None
    assert state.verification is None
    assert store.peek("00" * 32) is None


def test_a_closed_key_holds_no_token_any_more(store: TransitionalStore) -> None:
    closed(store)
    state = store.peek(KEY)
    assert state is not None
    assert state.token is None


def test_keys_are_apart(store: TransitionalStore) -> None:
    granted(store)
    assert isinstance(store.claim("00" * 32, OTHER, "b", times=TIMES), Granted)
    assert isinstance(claim(store, "b"), Busy)


def test_what_is_kept_long_enough_is_purged(store: TransitionalStore, advance: Advance) -> None:
    closed(store)
    advance(TIMES.tombstone + 61)
    store.claim("00" * 32, FORM, "b", times=TIMES)
    assert store.peek(KEY) is None
    assert store.peek("00" * 32) is not None


def test_no_secret_shows_in_what_the_store_prints(store: TransitionalStore) -> None:
    lease = submitted(store)
    offer = store.solved(lease, TOKEN, age_bound=0)
    won = store.spend(offer, "c")
    state = store.peek(KEY)
    shown = f"{lease!r} {offer!r} {won!r} {state!r} {store!r}"
    assert isinstance(won, Won)
    for secret in (lease.nonce, won.lease.nonce, TOKEN.text):
        assert secret not in shown
