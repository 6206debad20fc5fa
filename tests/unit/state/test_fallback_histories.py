"""Random histories of two workers whose lines to one store fail at any moment: no token is ever won twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pytest_captcha_qa.engine.store import Granted, Lease, Ready, Resume, Won
from pytest_captcha_qa.errors import OwnerLost, StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes, OnStoreLoss
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.apart import OwnKeys
from pytest_captcha_qa.state.fallback import FallbackStore
from pytest_captcha_qa.state.memory import MemoryStore
from pytest_captcha_qa.state.outage import Outage
from pytest_captcha_qa.testing import ManualClock, ManualStop

KEY, FORM = "5e" * 32, Fingerprint("form")
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=120, redelivery=60, keep=110)
WORKERS = st.sampled_from([0, 1])
UP, DOWN, DEAF = "up", "down", "deaf"
LINES = st.sampled_from(
    [
        (UP,),
        (UP, UP),
        (UP, UP, UP),
        (UP,) * 5,
        (DOWN,),
        (DOWN, DOWN),
        (DOWN,) * 5,
        (DEAF,),
        (DEAF, DOWN),
        (UP, UP, DEAF, DOWN),
    ]
)


class Line:
    """The way of one worker to the shared store: `up`, `down` (nothing arrives) or `deaf` (answers are lost)."""

    def __init__(self, shared: MemoryStore) -> None:
        self.shared, self.state = shared, "up"

    def probe(self) -> None:
        if self.state != "up":
            raise StoreUnavailable("cut")

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.shared, name)

        def carried(*args: Any, **given: Any) -> Any:
            if self.state == "down":
                raise StoreUnavailable("cut")
            answer = call(*args, **given)
            if self.state == "deaf":
                raise StoreUnavailable("no answer", sent=True)
            return answer

        return carried


class Outages(RuleBasedStateMachine):
    """Each worker holds one lease with its task and one offer; the same task gives the same token to everybody."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.shared = MemoryStore(clock=self.clock.monotonic)
        self.lines = [Line(self.shared) for _ in range(2)]
        self.stores = [self.worker(line) for line in self.lines]
        self.leases: dict[int, tuple[Lease, str | None]] = {}
        self.offers: dict[int, Ready] = {}
        self.spent: dict[int, tuple[Lease, str]] = {}
        self.won: Counter[str] = Counter()
        self.tasks = 0

    def worker(self, line: Line) -> FallbackStore:
        stop = ManualStop(self.clock)
        outage = Outage("shared", line.probe, self.clock, stop)
        own = OwnKeys(clock=self.clock.monotonic)
        return FallbackStore(line, own, outage, OnStoreLoss.CONTINUE)

    @rule(who=WORKERS, lines=LINES)
    def work(self, who: int, lines: tuple[str, ...]) -> None:
        """Go on with what the worker has, or begin with a claim; its line changes before each step."""
        for line in lines:
            self.lines[who].state = line
            try:
                self.step(who)
            except OwnerLost:
                self.leases.pop(who, None)

    def claim(self, who: int, *, fresh: bool) -> None:
        answer = self.stores[who].claim(KEY, FORM, f"owner {who}", times=TIMES, fresh=fresh)
        if isinstance(answer, Ready):
            self.offers[who] = answer
        elif isinstance(answer, Resume):
            self.leases[who] = (answer.lease, answer.task_id)
        elif isinstance(answer, Granted):
            self.leases[who] = (answer.lease, None)

    def step(self, who: int) -> None:
        if who in self.offers:
            self.spend(who)
        elif who in self.leases and self.leases[who][1] is None:
            self.submit(who)
        elif who in self.leases:
            self.solve(who)
        else:
            self.claim(who, fresh=False)

    def submit(self, who: int) -> None:
        lease, _ = self.leases[who]
        self.stores[who].intend(lease)
        self.tasks += 1
        self.leases[who] = (lease, f"task {self.tasks}")
        self.stores[who].submitted(lease, f"task {self.tasks}")

    def solve(self, who: int) -> None:
        lease, task = self.leases.pop(who)
        self.offers[who] = self.stores[who].solved(lease, Solution({"token": f"token of {task}"}), age_bound=0)

    def spend(self, who: int) -> None:
        offer = self.offers.pop(who)
        answer = self.stores[who].spend(offer, f"consumer {who}")
        if isinstance(answer, Won):
            self.won[offer.solution.text] += 1
            self.spent[who] = (answer.lease, offer.solution.text)

    @precondition(lambda self: self.leases)
    @rule(who=WORKERS)
    def renew(self, who: int) -> None:
        if who in self.leases:
            try:
                self.stores[who].renew(self.leases[who][0], last_not_ready=0)
            except OwnerLost:
                self.leases.pop(who)

    @rule(who=WORKERS, closes=st.booleans())
    def finish(self, who: int, closes: bool) -> None:
        if who not in self.spent:
            return
        lease, token = self.spent.pop(who)
        try:
            if closes:
                self.stores[who].done(lease, "ok")
            else:
                self.stores[who].unspend(lease)
                self.won[token] -= 1
        except OwnerLost:
            return

    @rule(who=WORKERS)
    def rerun(self, who: int) -> None:
        self.offers.pop(who, None)
        self.leases.pop(who, None)
        self.claim(who, fresh=True)

    @rule(seconds=st.sampled_from([5, 31, 51]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def no_token_is_won_twice(self) -> None:
        assert max(self.won.values(), default=0) <= 1, self.won


Outages.TestCase.settings = settings(
    max_examples=400, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
test_no_token_is_won_twice_whatever_line_fails = Outages.TestCase
