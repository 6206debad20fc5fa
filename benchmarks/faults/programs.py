"""Clients under test as child programs that are asked many things at once."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from faults.environment import CLIENTS, python_with_sdks

SDKS = ("captchaai", "capskip", "twocaptcha")
_PASSED_ON = ("PATH", "LANG", "TMPDIR")  # nothing else of the environment is a foreign program's business
_COMING, _LEAVING = 30.0, 5.0


@dataclass(frozen=True)
class Outcome:
    """What a client made of one job; without token and error it did not come back in time."""

    token: Any = None
    error: str = ""
    own: bool = False
    """Whether what it raised is an error of its own and not a slip such as KeyError."""
    task: str | None = None
    seconds: float = 0.0


@dataclass
class Program:
    """A client that runs."""

    process: subprocess.Popen[str]
    numbers: Iterator[int] = field(default_factory=count)
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: dict[int, Future[Any]] = field(default_factory=dict)
    ready: threading.Event = field(default_factory=threading.Event)

    def solve(self, job: Mapping[str, Any], *, seconds: float) -> Outcome:
        """Give it a job and return what came of it within so many seconds; may be called from many threads."""
        future: Future[Any] = Future()
        with self.lock:
            number = next(self.numbers)
            self.waiting[number] = future
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({"id": number, **job}) + "\n")
            self.process.stdin.flush()
        try:
            answer = future.result(timeout=seconds)
        except NotInTime:
            return Outcome(seconds=seconds)
        return Outcome(**{name: value for name, value in answer.items() if name != "id"})

    def listen(self) -> None:
        """Hand answers to those who wait for them, until the program ends."""
        assert self.process.stdout is not None
        self.process.stdout.readline()  # all is loaded
        self.ready.set()
        for line in self.process.stdout:
            answer = json.loads(line)
            self.waiting.pop(answer["id"]).set_result(answer)
        for future in self.waiting.values():
            future.set_result({"error": "the client's program ended"})


@contextmanager
def running(script: Path, python: Path, *, ca_file: str) -> Iterator[Program]:
    """Run a client's program, which trusts the sandbox's authority by the usual variables and asks no proxy."""
    given = {"REQUESTS_CA_BUNDLE": ca_file, "SSL_CERT_FILE": ca_file, "NO_PROXY": "*", "no_proxy": "*"}
    given["PYTHONPATH"] = str(CLIENTS)  # for `serving`
    given |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with subprocess.Popen(
        [str(python), str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=given,
    ) as process:
        program = Program(process)
        listener = threading.Thread(target=program.listen, daemon=True)
        listener.start()
        try:
            program.ready.wait(_COMING)
            yield program
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()
            listener.join(_LEAVING)


def running_sdk(name: str, *, ca_file: str) -> Any:
    """Run one of the official SDKs. Raises Unavailable."""
    return running(CLIENTS / f"{name}_sdk.py", python_with_sdks(), ca_file=ca_file)
