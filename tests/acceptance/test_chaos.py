"""Whole attempts under fire: workers are killed at random and Redis is started anew; the sandbox counts what arrived.

Eight processes bring the keys to their end as workers of a queue do: a killed one is replaced by another, and a
message is delivered again until somebody has said that it is done. What the processes recorded must explain what the
sandbox has counted. Windows of `state.md` are named by their numbers, W1 to W4.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.engine.attempt import run_attempt
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.keys import key_of
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import CaptchaQAError, SpentElsewhere
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.policy import Timeouts
from pytest_captcha_qa.provider.dialects import SANDBOX
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.wiring import providers
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.setup import RunSetup

SCALE = 0.005
# A killed process holds up its key no longer than this; a busy machine lets a lease lapse now and then.
LEASE, HTTP = 1.0, 1.0
# Servers take a moment, so that kills strike while something is under way; a token that was read is not given again.
SWITCHES = {
    "keys": {providers.SANDBOX_KEY: {"threads": 10_000, "read_once": True}},
    "faults": {
        "provider": [{"kind": "delay", "seconds": 0.04}],
        "site": [{"kind": "delay", "seconds": 0.04, "method": "POST"}],
    },
}
KEPT = ("--appendonly", "yes", "--appendfsync", "always")
PATIENCE = 3  # seconds without the store after which a worker goes on alone
# In these a key has been paid for, and in the last two perhaps posted.
PAID = {str(each) for each in (State.INTENT, State.SUBMITTED, State.READY, State.SPENT, State.DONE)}
POSTED = {str(each) for each in (State.SPENT, State.DONE)}


@dataclass(frozen=True)
class Job:
    """What every worker is told."""

    folder: Path
    subjects: tuple[str, ...]
    provider: str
    store: str

    @property
    def over(self) -> Path:
        """A folder with a file for each subject that need not be delivered again."""
        return self.folder / "over"

    def said(self) -> Iterator[dict[str, Any]]:
        """Yield what the workers said, and what they recorded; the last line of a killed one may be cut off."""
        for path in self.folder.rglob("*.jsonl"):
            yield from (json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))


class Worker:
    """Runs attempts for subjects until all of them are over."""

    def __init__(self, job: Job, number: int) -> None:
        environ = {"SANDBOX_PROVIDER_URL": job.provider, "STORE": job.store}
        settings = load(
            job.folder, job.folder, options={"captcha_env": "staging"}, ini={}, environ=environ, prefix="--captcha-"
        )
        environment = settings.environment()
        store = environment.store_address
        assert store is not None
        setup = RunSetup("run", "run", "boundary", job.folder / "records", store, worker=f"w{number}", lease=LEASE)
        self._job, self._subject, self._random = job, "", random.Random(number)
        self._said = os.open(job.folder / f"said-{number}.jsonl", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._engine = Engine(environment, setup, learn=self._learn)
        self._services = replace(self._engine.services(), timeouts=Timeouts(provider_call=HTTP))

    def run(self, *, redelivers: float) -> None:
        """Work; that share of what is over is delivered once more."""
        form = self._services.forms["login"]
        site = self._services.page_of(form).origin
        left = list(self._job.subjects)
        while left:
            self._random.shuffle(left)
            left = [subject for subject in left if not self._is_over(subject, redelivers)]
            # A key of which two tasks were lost is given up for as long as its message may come again.
            self._engine.stop.wait(0.5 if len(left) < 5 else 0.05)
        for subject in self._job.subjects:
            self._say(subject=subject, key=key_of(self._services, form, site, subject=subject).digest)
        self._engine.close(complete=True)

    def _is_over(self, subject: str, redelivers: float) -> bool:
        over = self._job.over / subject
        if over.exists() and self._random.random() >= redelivers:
            return True
        self._subject = subject
        try:
            outcome = run_attempt(AttemptRequest("login", subject, fresh=False), self._services)
            self._say(result=str(outcome.result), reason=outcome.verdict.reason)
        except CaptchaQAError as error:
            self._say(result=error.code, reason=error.message)
            if not isinstance(error, SpentElsewhere):
                return False
        over.touch()
        return True

    def _learn(self, secrets: Iterable[str]) -> None:
        """Say whose tokens are in hand, before they are used."""
        for secret in secrets:
            self._say(subject=self._subject, token=fingerprint(secret))

    def _say(self, **said: str) -> None:
        os.write(self._said, (json.dumps(said) + "\n").encode())


def work(job: Job, number: int, redelivers: float) -> None:
    # The sandbox speaks its own dialect here, but gives a token once and is silent then, as CapSkip is.
    providers.DIALECTS = {SANDBOX.name: replace(SANDBOX, silent=True)}
    Worker(job, number).run(redelivers=redelivers)


class Store:
    """The Redis that the workers share, and what it forgets when it is killed."""

    def __init__(self, server: Any, down: float) -> None:
        self._server, self._down = server, down
        self._random = random.Random(3)
        self._forgotten: Counter[tuple[str, str]] = Counter()

    def restart(self, crew: Any) -> None:
        """Kill it while all workers stand still, so that what it knew is known here too; start it a moment later."""
        crew.stand_still()
        before = self.states()
        self._server.kill()
        crew.go_on()
        Stop().wait(self._random.uniform(0, self._down))
        crew.stand_still()
        self._server.start()
        after = self.states()
        crew.go_on()
        self._forgotten.update(each for each in before.items() if each[0] not in after)

    def forgotten(self, states: Iterable[str], key: str | None = None) -> int:
        """Return how often a key was forgotten that was in one of these states; by default of all keys."""
        return sum(n for (name, state), n in self._forgotten.items() if state in states and key in (None, name))

    def states(self) -> dict[str, str]:
        """Return in which state each key is, by the start of its name."""
        with closing(RedisStore(RedisLink(self._server.address))) as store:
            return {view.key[:8]: view.state for view in store.views()}


@dataclass(frozen=True)
class Account:
    """What came of it all: by the workers' records, and by what the sandbox counted."""

    submits: int
    posts: dict[str, int]
    refused: dict[str, int]
    events: Counter[str]
    renewals: Counter[str]
    told_of: Counter[tuple[str, str]]
    """How often an event was told of a key, by the start of its hash."""
    results: Counter[str]
    tokens: dict[str, set[str]]
    digests: dict[str, str]

    @classmethod
    def of(cls, said: Iterable[dict[str, Any]], audit: dict[str, Any]) -> Account:
        tokens, digests = defaultdict(set), {}
        lines = list(said)
        for line in lines:
            if "token" in line:
                tokens[line["subject"]].add(line["token"])
            elif "key" in line:
                digests[line["subject"]] = line["key"][:8]
        events = [line for line in lines if line.get("$type") == "event"]
        return cls(
            submits=audit["provider"]["submits"],
            posts=audit["site"]["posts_by_token"],
            refused=audit["site"]["refusals"],
            events=Counter(event["name"] for event in events),
            renewals=Counter(event["data"]["why"] for event in events if event["name"] == "token_renewed"),
            told_of=Counter((event["name"], event["data"].get("key", "")) for event in events),
            results=Counter(line["result"] for line in lines if "result" in line),
            tokens=tokens,
            digests=digests,
        )

    def posts_of(self, subject: str) -> int:
        return sum(self.posts.get(token, 0) for token in self.tokens.get(subject, ()))


@dataclass(frozen=True)
class Plan:
    """How much there is to do, and how often something is killed meanwhile.

    `kept`: whether Redis keeps what it knows; `between`: mean seconds between two kills; `down`: most seconds without
    Redis; a worker goes on alone after three.
    """

    keys: int
    kills: int
    restarts: int
    kept: bool = True
    between: float = 0.25
    down: float = 0.5

    def __str__(self) -> str:
        return f"{self.keys} keys, {'kept' if self.kept else 'forgotten'}"


SMALL = [Plan(100, 16, 2), Plan(100, 16, 2, kept=False)]
LARGE = [Plan(1000, 120, 12, kept, between=0.25, down=4) for kept in (True, False)]


@pytest.fixture
def chaos(
    tmp_path: Path,
    one_form: Callable[[str], str],
    ask: Callable[..., Any],
    start_redis: Callable[..., Any],
    crew: Callable[..., Any],
) -> Iterator[Callable[[Plan], tuple[Account, Store]]]:
    """`chaos(plan)` lets it all happen and returns what came of it."""
    sandbox = SandboxProcess()

    def happen(plan: Plan) -> tuple[Account, Store]:
        addresses = sandbox.start(time_scale=SCALE, seed=7)
        ask(f"{addresses.audit}/control", SWITCHES)
        server = start_redis(*(KEPT if plan.kept else ()))
        job, store = job_of(plan, tmp_path, addresses, server.url, one_form), Store(server, plan.down)
        hired = crew(
            work, lambda n: (job, n, 0.03), plan.kills, plan.restarts, store.restart, plan.between, longest=900
        )
        hired.run()
        hired.follow_up(job, 0, 1.0 if plan.kept else 0.0)
        assert (hired.killed, hired.restarted) == (plan.kills, plan.restarts)
        return Account.of(job.said(), ask(addresses.audit)), store

    yield happen
    sandbox.stop()


def job_of(plan: Plan, folder: Path, sandbox: SandboxAddresses, store: str, one_form: Callable[[str], str]) -> Job:
    text = one_form(sandbox.site).replace("time_scale = 0.02", f"time_scale = {SCALE}\nmax_in_flight = 1000")
    text = text.replace('account = "local"', 'account = "local"\nstore_env = "STORE"\nretry_interval = 10')
    (folder / "captcha-qa.toml").write_text(text)
    job = Job(folder, tuple(f"registration-{number}" for number in range(plan.keys)), sandbox.provider, store)
    job.over.mkdir()
    return job


@pytest.mark.parametrize("plan", [*SMALL, *(pytest.param(each, marks=pytest.mark.soak) for each in LARGE)], ids=str)
def test_every_key_is_paid_for_and_posted_once_but_for_what_is_counted(
    chaos: Callable[[Plan], tuple[Account, Store]], plan: Plan
) -> None:
    account, store = chaos(plan)
    events, forgotten = account.events, store.forgotten(PAID)
    windows = events["submit_unknown"] + events["token_lost"] + events["submitted_alone"] + forgotten
    print(
        f"\n{plan}, {plan.kills} kills, {plan.restarts} restarts: {account.submits} submits <= {plan.keys} "
        f"+ W1 {events['submit_unknown']} + W2 {events['token_lost']} + W4 {events['submitted_alone']} alone, "
        f"{forgotten} forgotten + renewals {dict(account.renewals)}; posts {sum(account.posts.values())}, "
        f"W3 {events['submit_maybe_posted']} times told; {dict(account.results)}; {dict(events)}"
    )

    # No token was posted twice, and what the site refused was never the token's fault.
    assert set(account.posts.values()) == {1}
    assert account.refused == {}
    assert account.submits <= plan.keys + windows + account.renewals.total()
    assert_none_was_posted_beyond_what_is_counted(account, store, plan)
    if plan.kept:
        assert forgotten == 0
        assert_each_ended(account, store)


def assert_none_was_posted_beyond_what_is_counted(account: Account, store: Store, plan: Plan) -> None:
    """A key is posted again only after a submit without the store, or if the store has forgotten the first post."""
    assert len(account.digests) == plan.keys
    for subject, key in account.digests.items():
        most = 1 + account.told_of["submitted_alone", key] + store.forgotten(POSTED, key)
        if plan.down > PATIENCE:  # who sent a task and lost the store before its id was there goes on alone
            most += account.told_of["submit_unknown", key] + store.forgotten({State.INTENT}, key)
        assert account.posts_of(subject) <= most, subject
    assert sum(map(account.posts_of, account.digests)) == sum(account.posts.values())


def assert_each_ended(account: Account, store: Store) -> None:
    """A key is done and was posted once, or was spent by a process that died before, in or after the post."""
    states = store.states()
    for subject, key in account.digests.items():
        assert states[key] in POSTED, subject
        if states[key] == State.DONE:
            assert account.posts_of(subject) >= 1, subject
