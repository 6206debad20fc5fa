"""The tasks of the solving service: how long each takes, how many of a key are in work, and what becomes of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from random import Random
from urllib.parse import urlsplit

from pytest_captcha_qa.sandbox.accounts import Account
from pytest_captcha_qa.sandbox.answers import Solved, solve
from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.effects import Duplicate, Ending, Fate, NotReadyForever, OtherTask, Slow, Unsolvable
from pytest_captcha_qa.sandbox.switches import Busy
from pytest_captcha_qa.sandbox.tasks import Refused
from pytest_captcha_qa.sandbox.tokens import Clock, TokenRegistry
from pytest_captcha_qa.sandbox.types import TYPES

_ELSEWHERE = "http://127.0.0.1/somebody-elses-page"
_BUSY_CODES = {Busy.ZERO_BALANCE: "ERROR_ZERO_BALANCE", Busy.NO_SLOT: "ERROR_NO_SLOT_AVAILABLE"}

REPORT_WINDOW = 15 * 60.0
"""Seconds after the submit in which a report counts (2captcha)."""
_REPORTS_JUDGED = 10
_BAD_SHARE = 0.4


@dataclass(slots=True)
class Task:
    """One task of one key, from its acceptance on."""

    id: str
    key: str = field(repr=False)
    binding: Binding
    accepted_at: float
    ready_at: float
    fate: Fate | None
    solved: Solved | None = None
    polls: int = 0
    reads: int = 0
    reported: bool = False

    @property
    def form(self) -> str:
        """The path of the page, as faults name forms."""
        return urlsplit(self.binding.page).path.strip("/")


@dataclass(slots=True)
class Work:
    """All tasks of all keys."""

    registry: TokenRegistry
    audit: Audit
    rng: Random
    clock: Clock = time.monotonic
    time_scale: float = 1.0
    next_id: int = field(default_factory=lambda: int(time.time() * 1000))
    """Above 2**32, as production ids are; from the clock, so that no later sandbox repeats an id."""
    tasks: dict[str, Task] = field(default_factory=dict)
    _busy_until: dict[str, list[float]] = field(default_factory=dict)
    _last_solved: dict[str, Solved] = field(default_factory=dict)
    _reports: dict[str, list[bool]] = field(default_factory=dict)

    def find(self, task_id: str, key: str) -> Task | None:
        """Return the task, if it is this key's."""
        task = self.tasks.get(task_id)
        return task if task is not None and task.key == key else None

    def unfinished(self, key: str) -> int:
        """Return how many tasks of a key are solved now or wait for a thread."""
        now = self.clock()
        busy = [moment for moment in self._busy_until.get(key, ()) if moment > now]
        self._busy_until[key] = busy
        return len(busy)

    def working(self, account: Account) -> int:
        """Return how many threads of an account are in use."""
        return min(self.unfinished(account.key), account.state.threads)

    def admit(self, account: Account) -> None:
        """Refuse a key without money, or without a free thread in one of the ways of services. Raises Refused."""
        if account.dialect.has_balance and account.state.balance <= 0:
            raise Refused("ERROR_ZERO_BALANCE")
        code = _BUSY_CODES.get(account.switches().when_busy)
        if code is not None and self.unfinished(account.key) >= account.state.threads:
            raise Refused(code)

    def lost_id(self) -> str:
        """Return an id that belongs to no task."""
        self.next_id += self.rng.randint(1, 9)
        return str(self.next_id)

    def accept(self, account: Account, binding: Binding, fate: Fate | None) -> Task:
        """Take a task; it begins at once, or when a thread is free."""
        seconds = TYPES[binding.type].solve_seconds(self.rng) * self.time_scale
        seconds *= fate.factor if isinstance(fate, Slow) else 1
        now = self.clock()
        ready_at = self._start(account, now) + seconds
        task = Task(self.lost_id(), account.key, binding, now, ready_at, fate)
        self.tasks[task.id] = task
        self._busy_until.setdefault(account.key, []).append(ready_at)
        in_flight = max(1, self.unfinished(account.key))  # one that is solved at once counts as well
        self.audit.provider.submitted(account.key, task.id, binding.type, in_flight=in_flight)
        return task

    def _start(self, account: Account, now: float) -> float:
        """Return when a thread takes the next task on."""
        # A queue that nobody works on would never end: without threads one takes its tasks.
        waiting = self.unfinished(account.key) - max(1, account.state.threads)
        return now if waiting < 0 else sorted(self._busy_until[account.key])[waiting]

    def is_waiting(self, task: Task) -> bool:
        """Tell whether a task has no result yet."""
        return isinstance(task.fate, NotReadyForever) or self.clock() < task.ready_at

    def result(self, task: Task) -> Solved:
        """Return the task's solution, the same each time. Raises Refused when it was given up."""
        if task.solved is None:
            task.solved = self._solve(task)
            self._last_solved[task.key] = task.solved
        return task.solved

    def _solve(self, task: Task) -> Solved:
        if isinstance(task.fate, Unsolvable):
            raise self._given_up(task, "ERROR_CAPTCHA_UNSOLVABLE")
        if isinstance(task.fate, Duplicate) and task.key in self._last_solved:
            return self._last_solved[task.key]
        if self.registry.challenge_is_spent(task.binding.challenge):
            raise self._given_up(task, "ERROR_TOKEN_EXPIRED")
        binding = _of_another(task.binding) if isinstance(task.fate, OtherTask) else task.binding
        ending = task.fate.text if isinstance(task.fate, Ending) else ""
        return solve(self.registry.issue(binding, issued_at=task.ready_at, ending=ending).text, binding)

    def _given_up(self, task: Task, code: str) -> Refused:
        self.audit.provider.failed(task.id)
        return Refused(code)

    def report(self, task: Task, *, good: bool) -> None:
        """Take a report about a solution. Raises Refused: it came again, too late, or is one of too many bad ones."""
        if task.reported:
            raise Refused("ERROR_DUPLICATE_REPORT")
        reports = self._reports.setdefault(task.key, [])
        bad = reports.count(False) + (not good)
        too_many = len(reports) + 1 >= _REPORTS_JUDGED and bad > _BAD_SHARE * (len(reports) + 1)
        if self.clock() - task.accepted_at > REPORT_WINDOW or (too_many and not good):
            raise Refused("ERROR_REPORT_NOT_RECORDED")
        task.reported = True
        reports.append(good)
        self.audit.provider.reported(task.key, task.id, good=good)


def _of_another(binding: Binding) -> Binding:
    """Return what a token for another site's widget of the type is bound to."""
    return replace(binding, sitekey="somebody-elses-sitekey", page=_ELSEWHERE)
