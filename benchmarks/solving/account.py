"""One account of a sandbox in one process: client, engine and store, put together as a run does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.obtaining import Obtainer, Order
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.model.attempt import AttemptKey
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.policy import AccountLimits, KeyTimes, Timeouts
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.ownership import ProofFetcher
from pytest_captcha_qa.provider.dialects import SANDBOX
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.sandbox import keys
from pytest_captcha_qa.scope import OriginPattern, ScopeRules, TokenSource
from pytest_captcha_qa.state.sqlite import SqliteLimits, SqliteStore
from pytest_captcha_qa.transport import HttpClient

_TYPE = CaptchaType.TURNSTILE


@dataclass
class Account:
    """A key of the sandbox whose addresses are given; `told` are the events of its solves.

    `scale`: factor on all waiting, as the sandbox was started with; `in_flight`: most tasks at once; `lease`: seconds.
    """

    provider: str
    site: str
    key: str
    folder: Path
    scale: float
    in_flight: int
    lease: float = 30.0
    told: list[events.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        path, clock, stop = self.folder / "state" / "state.sqlite3", SystemClock(), Stop()
        self._client = HttpClient()
        self._store, self._limits = SqliteStore(path), SqliteLimits(path)
        provider = HttpProvider(
            SANDBOX, key=self.key, client=self._client, base_url=Url.parse(self.provider), time_scale=self.scale
        )
        rules = AccountLimits(max_in_flight=self.in_flight)
        admission = Admission(self.key, "sandbox", "run", self._limits, rules, clock, stop, self.scale)
        solver = Solver(provider, self._store, admission, clock, stop, self.told.append)
        self._obtainer = Obtainer(self._store, solver, clock, stop, self.told.append)
        self._page = Url.parse(f"{self.site}/turnstile")
        scope = ScopeRules("demo", EnvKind.DEMO, (OriginPattern(self._page.origin),), TokenSource.SANDBOX)
        self._grants = Grants(scope, ProofFetcher(self._client, None, scope), clock)

    def obtain(self, subject: str, tally: Tally | None = None) -> str:
        """Return the id of the task that made the token of this subject."""
        order = Order(
            key=AttemptKey("default", self.key, "demo", str(self._page.origin), "login", "", subject),
            challenge=Challenge(_TYPE, keys.TURNSTILE.sitekey, self._page, action="login"),
            grants=self._grants,
            times=KeyTimes.of(facts(_TYPE), timeouts=Timeouts(), lease=self.lease),
            deadline=Deadline(facts(_TYPE).solve_deadline, what="the solve"),
        )
        return str(self._obtainer.obtain(order, tally or Tally()).ready.solution.task_id)

    def close(self) -> None:
        """Give back connections and files."""
        self._store.close()
        self._limits.close()
        self._client.close()
