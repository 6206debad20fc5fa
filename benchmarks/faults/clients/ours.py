"""This package's own client: provider adapter, engine and a store in memory, put together as a run does."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from serving import serve

from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.key_state import State
from pytest_captcha_qa.engine.obtaining import Obtainer, Order
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.engine.task import Tally
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.attempt import AttemptKey
from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.policy import AccountLimits, KeyTimes, Timeouts
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.ownership import ProofFetcher
from pytest_captcha_qa.provider.dialects import DIALECTS
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.scope import OriginPattern, ScopeRules, TokenSource
from pytest_captcha_qa.state.memory import MemoryLimits, MemoryStore
from pytest_captcha_qa.transport import HttpClient

_INTERVAL = 5.0  # seconds between polls, in real time
_CALL = 2.0  # seconds of one call; a service on this machine answers in milliseconds
_KEPT = (State.SUBMITTED, State.READY)


class Failed(Exception):
    """What ended the solve: the error's code, and the task that the next caller resumes."""

    def __init__(self, error: CaptchaQAError, task_id: str | None) -> None:
        """Tell the error and keep the task."""
        super().__init__(f"{error.code}: {error.message}")
        self.task_id = task_id


def solve(job: Any) -> Any:
    """Return the parts of the token."""
    page, scale, clock, stop = Url.parse(job["page"]), job["interval"] / _INTERVAL, SystemClock(), Stop()
    with closing(HttpClient()) as client:
        # The dialect of a real service, to whose sandbox it is told that it may send a page of this machine.
        dialect = replace(DIALECTS[job["dialect"]], source=TokenSource.SANDBOX)
        provider = HttpProvider(
            dialect, key=job["key"], client=client, base_url=Url.parse(job["http"]), time_scale=scale
        )
        store, challenge = MemoryStore(), _challenge(job, page)
        admission = Admission("account", "account", "run", MemoryLimits(), AccountLimits(), clock, stop, scale)
        solver = Solver(provider, store, admission, clock, stop)
        order = _order(job, page, challenge, client)
        try:
            held = Obtainer(store, solver, clock, stop).obtain(order, Tally())
        except CaptchaQAError as error:
            raise Failed(error, _kept(store, order)) from None
        return dict(held.ready.solution.parts)


def _kept(store: MemoryStore, order: Order) -> str | None:
    """Return the id of the task that whoever asks for the key next would resume."""
    state = store.peek(order.key.digest)
    return state.task.id if state is not None and state.task is not None and state.state in _KEPT else None


def _challenge(job: Any, page: Url) -> Challenge:
    shown = {name: value for name, value in job["data"].items() if name != "sitekey"}
    data = {name: value if isinstance(value, str) else json.dumps(value) for name, value in shown.items()}
    return Challenge(CaptchaType(job["type"]), job["data"].get("sitekey", ""), page, data=data)


def _order(job: Any, page: Url, challenge: Challenge, client: HttpClient) -> Order:
    rules = ScopeRules("faults", EnvKind.DEMO, (OriginPattern(page.origin),), TokenSource.SANDBOX)
    return Order(
        key=AttemptKey("faults", "account", "faults", str(page.origin), "form", "", job["key"]),
        challenge=challenge,
        grants=Grants(rules, ProofFetcher(client, None, rules), SystemClock()),
        times=KeyTimes.of(facts(challenge.type), timeouts=Timeouts(provider_call=_CALL)),
        deadline=Deadline(job["deadline"], what="the solve"),
    )


if __name__ == "__main__":
    serve(solve, "__main__")
