"""What acceptance tests share: a sandbox, a team's folder in which pytest runs, and processes that are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

ONE_FORM = """\
[accounts.local]
provider = "sandbox"
url_env = "SANDBOX_PROVIDER_URL"
time_scale = 0.02
[env.staging]
kind = "staging"
origins = ["{site}"]
account = "local"
[forms.login]
path = "/{path}"
type = "turnstile"
fields = {{ email = "{{identity.email}}", name = "{{identity.name}}" }}
success = {{ status = 303, location = "/welcome*" }}
refused = {{ status = 422 }}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    """A sandbox of this module's own, fifty times as fast as life."""
    process = SandboxProcess()
    try:
        yield process.start(time_scale=0.02, seed=7)
    finally:
        process.stop()


@pytest.fixture(scope="session")
def one_form() -> Callable[..., str]:
    """`one_form(site, path="turnstile")` returns a captcha-qa.toml whose one form, `login`, stands at that path."""

    def settings(site: str, path: str = "turnstile") -> str:
        return ONE_FORM.format(site=site, path=path)

    return settings


@pytest.fixture
def run_pytest(
    tmp_path: Path, run_child: Callable[..., Any], write_files: Callable[[Path, Mapping[str, str]], None]
) -> Callable[..., Any]:
    """`run_pytest(*arguments, files=..., env=...)` runs pytest in a folder of the test's own."""

    def run(*arguments: str, files: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> Any:
        write_files(tmp_path, files or {})
        if not (tmp_path / "pytest.ini").exists():
            (tmp_path / "pytest.ini").write_text("[pytest]\n")
        return run_child(tmp_path, *arguments, env=env)

    return run


@dataclass
class Crew:
    """Eight processes that work until they are done; one that is killed is replaced by another that begins anew.

    `work` is called with `arguments(number)` in the `number`-th process; `restart` is called so many times meanwhile;
    `longest`: the seconds in which all that must be over.
    """

    work: Callable[..., None]
    arguments: Callable[[int], tuple[object, ...]]
    kills: int
    restarts: int = 0
    restart: Callable[[Crew], None] = lambda crew: None
    between: float = 0.25
    longest: float = 300.0
    killed: int = 0
    restarted: int = 0
    _hired: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _working: list[BaseProcess] = field(default_factory=list)

    def run(self) -> None:
        """Kill one after the other, with a mean of `between` seconds, then let the last ones come to an end."""
        until, stop = time.monotonic() + self.longest, Stop()
        self._working = [self._hire() for _ in range(8)]
        while self.killed < self.kills:
            if self.restarted * self.kills < self.killed * self.restarts:
                self.restart(self)
                self.restarted += 1
            stop.wait(self._random.uniform(0, 2 * self.between))
            assert time.monotonic() < until, f"only {self.killed} kills in {self.longest:g} s"
            self._replace(self._random.randrange(len(self._working)))
        self._come_to_an_end(until)

    def follow_up(self, *arguments: object) -> None:
        """Let one last process work."""
        self._working = [self._start(*arguments)]
        self._come_to_an_end(time.monotonic() + self.longest)

    def stand_still(self) -> None:
        """Stop all of them where they are."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let them go on after that."""
        self._signal(signal.SIGCONT)

    def dismiss(self) -> None:
        """Kill whoever is left."""
        for process in self._working:
            process.kill()
            process.join()

    def _come_to_an_end(self, until: float) -> None:
        for process in self._working:
            process.join(max(0.0, until - time.monotonic()))
        assert {process.exitcode for process in self._working} == {0}

    def _signal(self, number: int) -> None:
        for process in self._working:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)

    def _replace(self, number: int) -> None:
        process = self._working[number]
        if process.is_alive():
            process.kill()
            self.killed += 1
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        self._working[number] = self._hire()

    def _hire(self) -> BaseProcess:
        self._hired += 1
        return self._start(*self.arguments(self._hired))

    def _start(self, *arguments: object) -> BaseProcess:
        # Named by where they are needed first: a forked process has them, a new interpreter would load them for long.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["pytest", "pytest_captcha_qa.config.sources", "pytest_captcha_qa.wiring.engine"]
        )
        process = context.Process(target=self.work, args=arguments)
        process.start()
        return process


@pytest.fixture
def crew() -> Iterator[Callable[..., Crew]]:
    """`crew(work, arguments, kills, ...)` returns a crew that is dismissed with the test."""
    if not hasattr(os, "fork"):
        pytest.skip("needs a fork server and SIGKILL")
    with ExitStack() as stack:

        def hire(*told: Any, **more: Any) -> Crew:
            made = Crew(*told, **more)
            stack.callback(made.dismiss)
            return made

        yield hire
