"""Random histories of several owners over one key: the invariants of state.md, and every store in step with memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from pytest_captcha_qa.engine.store import AlreadyMine, Granted, Lease, Ready, Resume, Won
from pytest_captcha_qa.errors import OwnerLost
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.memory import MemoryStore
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.state.sqlite import SqliteStore
from pytest_captcha_qa.state.transitional import TransitionalStore

T = TypeVar("T")
Store = TransitionalStore | RedisStore

KEY = "5e" * 32
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=120, redelivery=60, keep=110)
OWNERS = st.sampled_from(["a", "b", "c"])
PAGES = st.sampled_from(["page 1", "page 1", "page 1", "page 2"])
REFUSED = "refused"
# Thousands of commits wait for a real disk longer than for anything that is tested here.
MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def plain(answer: Any) -> Any:
    """Return an answer without its nonce, which two stores draw apart."""
    if isinstance(answer, (Granted, Resume, Won, AlreadyMine)):
        return replace(answer, lease=replace(answer.lease, nonce=""))
    return answer


def leases_of(answers: tuple[Any, ...]) -> tuple[Lease, ...]:
    return tuple(answer.lease for answer in answers)


class Histories(RuleBasedStateMachine):
    """Each owner holds at most one pair of leases and one offer, as a worker would."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        other, self.discard = self.opened()
        self.stores: tuple[Store, ...] = (MemoryStore(clock=lambda: self.now), other)
        for store in self.stores:
            store.epoch = "epoch 0"
        self.leases: dict[str, tuple[Lease, ...]] = {}
        self.offers: dict[str, Ready] = {}
        self.tasks: dict[str, str] = {}
        self.submits = self.generations = self.windows = self.retries = 0
        self.spent: dict[str, str] = {}
        self.winners: Counter[int] = Counter()
        self.granted: set[str] = set()

    def opened(self) -> tuple[Store, Callable[[], None]]:
        """Return the store to compare with memory, and what removes it."""
        raise NotImplementedError

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.discard()

    def both(self, call: Callable[[Store, int], T]) -> tuple[T | str, ...]:
        """Call both stores and return their answers, which must agree."""
        answers = tuple(self.called(call, store, number) for number, store in enumerate(self.stores))
        assert plain(answers[0]) == plain(answers[1])
        return answers

    def called(self, call: Callable[[Store, int], T], store: Store, number: int) -> T | str:
        try:
            return call(store, number)
        except OwnerLost:
            return REFUSED

    def written(self, owner: str, call: Callable[[Store, Lease], Any], *, twice: bool) -> Any:
        """Write under the owner's leases; a repeated write gets the same answer."""
        leases = self.leases[owner]
        before = self.stores[0].peek(KEY)
        answers = self.both(lambda store, number: call(store, leases[number]))
        if answers[0] != REFUSED:
            assert before is not None
            stored_under = before.token.nonce if before.token else ""
            assert leases[0].nonce in (before.holder.nonce, stored_under), "a write without the lease"
        if twice:
            assert self.both(lambda store, number: call(store, leases[number])) == answers
        return answers[0]

    @rule(owner=OWNERS, page=PAGES, fresh=st.booleans(), twice=st.booleans())
    def claim(self, owner: str, page: str, fresh: bool, twice: bool) -> None:
        form = Fingerprint("form", page)
        call: Callable[[Store, int], Any] = lambda store, _: store.claim(  # noqa: E731
            KEY, form, owner, times=TIMES, fresh=fresh
        )
        before = self.stores[0].peek(KEY)
        answers = self.both(call)
        if twice:
            assert self.both(call) == answers
        first = answers[0]
        if isinstance(first, Ready):
            assert first.solution.text not in self.spent, "a spent token was handed out"
            assert 0 < first.expires_in <= TIMES.keep
            self.offers[owner] = first
        if isinstance(first, (Granted, Resume)):
            self.leases[owner] = leases_of(answers)
        if isinstance(first, Resume):
            self.tasks[owner] = first.task_id
        if isinstance(first, Granted) and first.lease.nonce not in self.granted:
            self.granted.add(first.lease.nonce)
            self.tasks.pop(owner, None)
            self.generations += before is None or first.lease.generation > before.generation
            if before is None:
                self.winners.clear()
            self.windows += first.event is not None
            self.retries += first.tries > 0

    def writer(self, data: st.DataObject) -> str:
        """Draw an owner, mostly the one whose writes the store accepts now."""
        state = self.stores[0].peek(KEY)
        holds = [
            owner
            for owner, leases in self.leases.items()
            if state is not None and leases[0].nonce == state.holder.nonce
        ]
        return data.draw(st.sampled_from(holds * 8 + sorted(self.leases)))

    @rule(owner=OWNERS, fresh=st.booleans(), solved=st.booleans())
    def obtain(self, owner: str, fresh: bool, solved: bool) -> None:
        """Go all the way to a task or a token, so that histories get to what happens to it."""
        self.claim(owner, "page 1", fresh, twice=False)
        if owner in self.leases:
            self.announce(owner, twice=False)
        if owner in self.tasks:
            self.keep_task(owner, twice=False)
            if solved:
                self.store_token(owner, twice=False, age=0)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), twice=st.booleans())
    def submit(self, data: st.DataObject, twice: bool) -> None:
        self.announce(self.writer(data), twice=twice)

    def announce(self, owner: str, *, twice: bool) -> None:
        if self.written(owner, lambda store, lease: store.intend(lease), twice=twice) == REFUSED:
            return
        if owner not in self.tasks:
            self.submits += 1
            self.tasks[owner] = f"task {self.submits}"

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), twice=st.booleans(), age=st.sampled_from([0, 5, 40]))
    def solve(self, data: st.DataObject, twice: bool, age: float) -> None:
        self.store_token(self.writer(data), twice=twice, age=age)

    def store_token(self, owner: str, *, twice: bool, age: float) -> None:
        if owner not in self.tasks:
            return
        self.keep_task(owner, twice=twice)
        task = self.tasks[owner]
        solution = Solution({"token": f"token of {task}"}, task_id=task)
        answer = self.written(owner, lambda store, lease: store.solved(lease, solution, age_bound=age), twice=twice)
        if isinstance(answer, Ready):
            self.offers[owner] = answer

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), twice=st.booleans())
    def remember_task(self, data: st.DataObject, twice: bool) -> None:
        owner = self.writer(data)
        if owner in self.tasks:
            self.keep_task(owner, twice=twice)

    def keep_task(self, owner: str, *, twice: bool) -> None:
        task = self.tasks[owner]
        self.written(owner, lambda store, lease: store.submitted(lease, task), twice=twice)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), ago=st.sampled_from([None, 0, 7]))
    def renew(self, data: st.DataObject, ago: float | None) -> None:
        owner = self.writer(data)
        self.written(owner, lambda store, lease: store.renew(lease, last_not_ready=ago), twice=True)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), pause=st.sampled_from([None, 0, 20]), twice=st.booleans())
    def fail(self, data: st.DataObject, pause: float | None, twice: bool) -> None:
        owner = self.writer(data)
        self.written(owner, lambda store, lease: store.failed(lease, "busy", not_before=pause), twice=twice)

    @precondition(lambda self: self.offers)
    @rule(data=st.data(), consumer=OWNERS, twice=st.booleans())
    def spend(self, data: st.DataObject, consumer: str, twice: bool) -> None:
        offer = self.offers[data.draw(st.sampled_from(sorted(self.offers)))]
        before = self.stores[0].peek(KEY)
        answers = self.both(lambda store, _: store.spend(offer, consumer))
        if isinstance(answers[0], Won):
            assert before is not None
            assert before.token is not None
            assert before.token.expires_at > self.now, "an expired token was won"
            assert before.token.epoch == self.stores[0].epoch, "a token of an older epoch was won"
            assert offer.solution.text not in self.spent, "a token was won twice"
            self.spent[offer.solution.text] = consumer
            self.winners[offer.generation] += 1
        if isinstance(answers[0], (Won, AlreadyMine)):
            assert self.spent[offer.solution.text] == consumer
            self.leases[consumer] = leases_of(answers)
            if twice:
                again = self.both(lambda store, _: store.spend(offer, consumer))
                assert again == tuple(AlreadyMine(lease) for lease in self.leases[consumer])

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), twice=st.booleans())
    def give_back(self, data: st.DataObject, twice: bool) -> None:
        owner = self.writer(data)
        before = self.stores[0].peek(KEY)
        answer = self.written(owner, lambda store, lease: store.unspend(lease), twice=twice)
        if answer != REFUSED and before is not None and before.token is not None and before.state == "spent":
            del self.spent[before.token.solution.text]
            self.winners[before.generation] -= 1

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), twice=st.booleans())
    def finish(self, data: st.DataObject, twice: bool) -> None:
        owner = self.writer(data)
        self.written(owner, lambda store, lease: store.done(lease, "ok"), twice=twice)

    @rule(owner=OWNERS)
    def crash(self, owner: str) -> None:
        self.leases.pop(owner, None)
        self.offers.pop(owner, None)
        self.tasks.pop(owner, None)

    @rule(seconds=st.sampled_from([1, 9, 31, 31, 51, 111]), restart=st.integers(0, 9))
    def pass_time(self, seconds: float, restart: int) -> None:
        self.now += seconds
        if restart == 9:
            epoch = f"{self.stores[0].epoch}'"
            for store in self.stores:
                store.epoch = epoch

    @invariant()
    def both_stores_agree(self) -> None:
        memory, sqlite = (store.peek(KEY) for store in self.stores)
        assert (memory is None) == (sqlite is None)
        if memory is not None and sqlite is not None:
            holder = replace(memory.holder, nonce=sqlite.holder.nonce)
            token = memory.token and replace(memory.token, nonce=sqlite.token.nonce if sqlite.token else "")
            assert replace(memory, holder=holder, token=token) == sqlite

    @invariant()
    def one_owner_can_write(self) -> None:
        state = self.stores[0].peek(KEY)
        if state is not None:
            nonces = [pair[0].nonce for pair in self.leases.values()]
            assert nonces.count(state.holder.nonce) <= 1

    @invariant()
    def a_generation_has_one_winner(self) -> None:
        assert max(self.winners.values(), default=0) <= 1

    @invariant()
    def submits_stay_within_generations_and_named_windows(self) -> None:
        assert self.submits <= self.generations + self.windows + self.retries


HISTORIES = settings(max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


class SqliteHistories(Histories):
    def opened(self) -> tuple[Store, Callable[[], None]]:
        folder = Path(tempfile.mkdtemp(dir=MEMORY_DISK))
        return SqliteStore(folder / "keys.sqlite3", clock=lambda: self.now), lambda: shutil.rmtree(folder)


def test_random_histories_keep_the_invariants_and_sqlite_in_step_with_memory() -> None:
    run_state_machine_as_test(SqliteHistories, settings=HISTORIES)


def test_random_histories_keep_redis_in_step_with_memory(redis_server: Any, redis_link: RedisLink) -> None:
    class RedisHistories(Histories):
        def opened(self) -> tuple[Store, Callable[[], None]]:
            return RedisStore(redis_link, clock=lambda: self.now), redis_server.empty

    run_state_machine_as_test(RedisHistories, settings=HISTORIES)
