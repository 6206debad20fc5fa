"""A process that uses the token of one key, with one caller a thread; it is told how as JSON, and tells as JSON lines.

Its callers wait for each other, and for a line on stdin, before they ask for the token and before they use it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.setup import RunSetup

_SECONDS = 60


class Callers:
    """The callers of one process, who share its engine."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        folder = Path(told["folder"])
        settings = load(
            folder, folder, options={"captcha_env": "staging"}, ini={}, environ=os.environ, prefix="--captcha-"
        )
        setup = RunSetup(
            run_id="run",
            session="run",
            boundary="boundary",
            records=folder / "records",
            store=StoreAddress.parse(told["store"]) if told["store"] else folder / "state.sqlite",
            lease=told["lease"],
        )
        self._told = told
        self._engine = Engine(settings.environment(), setup)
        self._opened = self._gate("opened")
        self._obtained = self._gate("obtained")

    def run(self) -> None:
        """Let all callers do their work."""
        threads = [threading.Thread(target=self._use_token) for _ in range(self._told["callers"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._engine.close(complete=True)

    def _use_token(self) -> None:
        request = AttemptRequest("login", self._told["subject"], fresh=self._told["fresh"])
        try:
            with Attempt(request, self._engine.services()) as attempt:
                attempt.start()
                attempt.open()
                self._opened.wait(_SECONDS)
                self._obtain(attempt)
                self._obtained.wait(_SECONDS)
                self._submit(attempt)
            tell(outcome=str(attempt.outcome.result))
        except CaptchaQAError as error:
            tell(outcome=error.code)

    def _obtain(self, attempt: Attempt) -> None:
        token = attempt.obtain()
        [text] = token.secrets()
        tell(token=fingerprint(text), source=str(token.source), generation=token.generation)

    def _submit(self, attempt: Attempt) -> None:
        crash = self._told["crash"]
        if crash is not None:
            page = CrashingPage(attempt.visit.page, after_post=crash == "after the post")
            attempt.visit.page = page  # type: ignore[assignment]
        attempt.submit()

    def _gate(self, name: str) -> threading.Barrier:
        def pass_together() -> None:
            tell(step=name)
            sys.stdin.readline()

        return threading.Barrier(self._told["callers"], action=pass_together)


class CrashingPage:
    """An opened page in whose submit the process dies as if the machine had gone: the token is spent by then."""

    def __init__(self, page: Any, *, after_post: bool) -> None:
        self.challenge, self.page = page.challenge, page.page
        self._real, self._after_post = page, after_post

    def submit(self, solution: Solution, fields: Mapping[str, str], grants: GrantSource, deadline: Deadline) -> Answer:
        """Die before or after the form is posted."""
        if self._after_post:
            self._real.submit(solution, fields, grants, deadline)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process went on")


def tell(**said: object) -> None:
    """Write one line for the test."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Callers(json.loads(sys.argv[1])).run()
