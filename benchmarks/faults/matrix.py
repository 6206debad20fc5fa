"""Runs the rows for the clients: every row at once, each under a key of its own with the fault on that key only."""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faults.environment import CLIENTS, python_with_sdks
from faults.grading import Grade, grade
from faults.programs import Program, running
from faults.puzzles import PUZZLES
from faults.rows import Row
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

TIME_SCALE = 0.05
"""Solves take a twentieth of life's time, and so do the waits of clients that can be told."""
_CALL = 10.0
_PATIENCE = 2.0
"""Seconds beyond its limit after which a client is not waited for."""


@dataclass(frozen=True)
class Client:
    """A client under test.

    `type`: what it is asked for where a row does not say; `dialect`: whose keys it has; `deadline`, `interval`: what it
    is told or, where it cannot be told, what it has; `polls_by`: the action of its polls; `tolerance`: seconds for the
    machine, which runs all rows at once; `strict`: its errors have this package's codes.
    """

    name: str
    script: Path
    sdk: bool = True
    type: str = "turnstile"
    dialect: str = "sandbox"
    deadline: float = 12.0
    interval: float = 1.0
    polls_by: str = "get"
    tolerance: float = 0.7
    strict: bool = False

    @property
    def python(self) -> Path:
        """The interpreter that runs its script. Raises Unavailable."""
        return python_with_sdks() if self.sdk else Path(sys.executable)


OURS = Client("ours", CLIENTS / "ours.py", sdk=False, interval=5.0 * TIME_SCALE, strict=True)
OURS_AS = (
    replace(OURS, name="ours-captchaai", dialect="captchaai"),
    replace(OURS, name="ours-capskip", dialect="capskip"),
    replace(OURS, name="ours-twocaptcha", dialect="twocaptcha", polls_by="get2"),
)
"""Our client as it speaks to each of the real services."""
KNOWN = {
    it.name: it
    for it in (
        OURS,
        *OURS_AS,
        Client("capskip", CLIENTS / "capskip_sdk.py", dialect="capskip"),
        Client("twocaptcha", CLIENTS / "twocaptcha_sdk.py", dialect="twocaptcha"),
        # Its first wait is shortest for images; 180 s and 5 s are built in.
        Client("captchaai", CLIENTS / "captchaai_sdk.py", type="image", dialect="captchaai", deadline=180, interval=6),
    )
}


@dataclass
class Sandbox:
    """The service under all clients, and its switches; faults of all keys are in force together."""

    addresses: SandboxAddresses

    def set_up(self, entries: Iterable[tuple[str, Client, Row]]) -> None:
        """Give each key its account and its faults."""
        keys, faults = {}, []
        for key, client, row in entries:
            keys[key] = {"dialect": client.dialect, **row.switches}
            polls = {"action": client.polls_by}
            faults += [{**fault, **(polls if "action" in fault else {}), "key": key} for fault in row.faults]
        self._post(f"{self.addresses.audit}/control", {"keys": keys, "faults": {"provider": faults}})

    def occupy(self, key: str, page: str) -> str:
        """Submit a task for the key beside the client, and return its id."""
        fields = {"key": key, "json": "1", "pageurl": page, "method": "turnstile", **PUZZLES["turnstile"]()}
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(f"{self.addresses.provider}/in.php", body, timeout=_CALL) as reply:
            return str(json.load(reply)["request"])

    def tasks(self) -> Mapping[str, Any]:
        """Return all tasks by their ids."""
        with urllib.request.urlopen(self.addresses.audit, timeout=_CALL) as reply:
            found: Mapping[str, Any] = json.load(reply)["provider"]["tasks"]
            return found

    def _post(self, url: str, data: object) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(data).encode(), headers)
        with urllib.request.urlopen(request, timeout=_CALL):
            pass


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Run a sandbox for one matrix."""
    with SandboxProcess() as process:
        yield Sandbox(process.start(time_scale=TIME_SCALE, seed=11, https=True))


def graded(clients: Iterable[Client], rows: Iterable[Row]) -> list[Grade]:
    """Return the matrix, in the order of clients and rows. Raises Unavailable."""
    chosen, wanted = list(clients), list(rows)
    for client in chosen:
        assert client.python.exists(), f"{client.python} is needed to run {client.name}"
    grades = []
    with sandbox() as service:
        for client in chosen:  # one after the other: they are timed
            fitting = [row for row in wanted if not row.dialects or client.dialect in row.dialects]
            entries = [(_key(client, number), client, row) for number, row in enumerate(fitting)]
            service.set_up(entries)
            grades += _column(client, entries, service)
    return grades


def _key(client: Client, number: int) -> str:
    return f"{client.name}-{number:03d}".ljust(32, "0")


def _column(client: Client, entries: list[tuple[str, Client, Row]], service: Sandbox) -> list[Grade]:
    """Let one client go through all rows at once."""
    ca_file = str(service.addresses.ca_file)
    with running(client.script, client.python, ca_file=ca_file) as program, ThreadPoolExecutor(len(entries)) as pool:
        return list(pool.map(lambda entry: _cell(program, entry, service), entries))


def _cell(program: Program, entry: tuple[str, Client, Row], service: Sandbox) -> Grade:
    key, client, row = entry
    kind = row.type or client.type
    places = {"http": service.addresses.provider, "https": str(service.addresses.provider_https)}
    if row.address:
        places = {"http": f"http://{row.address}", "https": f"https://{row.address}"}
    page = f"{service.addresses.site}/{kind}"
    job = {
        **places,
        **{"key": key, "dialect": client.dialect, "type": kind, "page": page, "data": PUZZLES[kind]()},
        **{"deadline": client.deadline, "interval": client.interval},
    }
    ours = {service.occupy(key, page)} if row.busy else set()
    limit = client.deadline + client.interval + client.tolerance
    outcome = program.solve(job, seconds=limit + _PATIENCE)
    mark = fingerprint(key)
    tasks = {name: task for name, task in service.tasks().items() if task["key"] == mark and name not in ours}
    return grade(client.name, row, outcome, limit=limit, tasks=tasks, strict=client.strict)
