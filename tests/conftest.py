"""What tests of the product as a whole share: pytest as a child process and what it leaves behind, and a real Redis."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.state.redis_link import RedisLink

_SECONDS = 150
_NOT_OURS = ("CAPTCHA_QA_", "CI", "GITHUB_", "GITLAB_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
# A team has few plugins, and each that a child loads costs it time; tests of getting along name the others.
_PLUGINS = ("pytest_captcha_qa.plugin", "xdist", "pytest_rerunfailures", "pytest_timeout")
_SERVERS = ("redis-server", "valkey-server")
_PLAIN = ("--port", "0", "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
# A server outlives a pytest that is killed, unless the system is told.
_ENDING_WITH_US = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
_MISSING = "no Redis here: install redis-server (apt-get install redis-server; brew install valkey)"


def pytest_configure() -> None:
    """Let child processes be interrupted although this one was started in the background, which ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


# How fast examples are made tells of the machine and who else works on it, nothing of the product.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@dataclass(frozen=True)
class PytestRun:
    """What one run of pytest left behind."""

    code: int
    output: str
    folder: Path
    verdict: dict[str, Any] = field(default_factory=dict)

    @property
    def record_files(self) -> list[Path]:
        return sorted(self.folder.glob("reports/records/*/*.jsonl"))

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Those of the last run come last; the names of two runs of one second are in no order."""
        files = sorted(self.record_files, key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["$type"] == kind]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self.of_type("attempt")

    @property
    def counts(self) -> str:
        """Return pytest's last line without its time, such as `1 failed, 2 passed`."""
        last = self.output.strip().splitlines()[-1]
        return last.strip("= ").split(" in ")[0]


@pytest.fixture(scope="session")
def clean_environment() -> Callable[[Path], dict[str, str]]:
    """`clean_environment(home)` returns the variables without what a CI or a user has set for this package."""

    def clean(home: Path) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        return kept | {"XDG_CACHE_HOME": str(home / ".cache"), "COLUMNS": "120", "NO_COLOR": "1"}

    return clean


@pytest.fixture(scope="session")
def run_child(clean_environment: Callable[[Path], dict[str, str]]) -> Callable[..., PytestRun]:
    """`run_child(folder, *arguments, env=...)` runs pytest in a folder, as a team does in its repository.

    It has the plugins that most teams have and those of `plugins`; `all_plugins`: whatever is installed.
    """

    def run(
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        plugins: tuple[str, ...] = (),
        all_plugins: bool = False,
        cache: bool = False,
    ) -> PytestRun:
        named = () if all_plugins else (*_PLUGINS, *plugins)
        chosen = [f"-p{name}" for name in named] + ([] if cache else ["-pno:cacheprovider"])
        few = {} if all_plugins else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [python, "-m", "pytest", *chosen, *arguments],
            cwd=folder,
            env=clean_environment(folder) | few | dict(env or {}),
            timeout=_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        verdict = folder / "reports" / "verdict.json"
        found = json.loads(verdict.read_text()) if verdict.exists() else {}
        return PytestRun(done.returncode, done.stdout, folder, found)

    return run


@pytest.fixture(scope="session")
def write_files() -> Callable[[Path, Mapping[str, str]], None]:
    """`write_files(folder, {name: text})` writes a team's files."""

    def write(folder: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


@pytest.fixture(scope="session")
def ask() -> Callable[..., Any]:
    """`ask(url, data=None)` returns the JSON that an address of this machine answers."""

    def fetch(url: str, data: object = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    return fetch


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class RedisServer:
    """A Redis process on a Unix socket in a folder of its own; it may be killed and started again."""

    def __init__(self, folder: Path, *command: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.command = [*command, "--unixsocket", str(self.socket), "--dir", str(folder)]
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def address(self) -> StoreAddress:
        return StoreAddress.parse(self.url)

    @property
    def client(self) -> redis.Redis:
        words = self.command
        password = words[words.index("--requirepass") + 1] if "--requirepass" in words else None
        return redis.Redis(unix_socket_path=str(self.socket), password=password, decode_responses=True)

    def empty(self) -> None:
        with self.client as client:
            client.flushall()

    def start(self, *options: str) -> None:
        with (self.folder / "redis.log").open("ab") as log:
            command = [*_ENDING_WITH_US, *self.command, *options]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with self.client as client:
            self.until(lambda: client.ping())

    def until(self, happens: Callable[[], object]) -> None:
        """Wait until something about the server is so, twenty seconds at most."""
        patience = Stop()
        for _ in range(1000):
            with suppress(redis.ConnectionError):
                if happens():
                    return
            if self.process.poll() is not None:
                break
            patience.wait(0.02)
        raise AssertionError((self.folder / "redis.log").read_text())

    def listen(self) -> int:
        """Take connections on a free TCP port too, and return it."""
        port = _free_port()
        with self.client as client:
            client.config_set("port", port)
        return port

    def kill(self) -> None:
        """End it without giving it a chance to do anything."""
        self.process.kill()
        self.process.wait(10)

    def shut_down(self) -> None:
        """End whichever process listens on the socket now, if any does."""
        with self.client as client, suppress(redis.ConnectionError):
            client.shutdown(nosave=True)

    def freeze(self) -> None:
        """Let it hold its connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def follow(self, primary: RedisServer, port: int) -> None:
        """Become a replica of the server at a port, and wait until it has all that is written there."""
        with self.client as client, primary.client as first:
            client.replicaof("127.0.0.1", port)
            self.until(lambda: client.info("replication")["master_link_status"] == "up")
            first.set("seen", "by all")
            assert first.wait(1, 10_000) == 1

    def tell(self, service: str, port: int) -> None:
        """Have this Sentinel name the server at a port as the primary; by itself it takes ten seconds and more."""
        with self.client as client:
            client.execute_command("SENTINEL REMOVE", service)
            client.execute_command("SENTINEL MONITOR", service, "127.0.0.1", port, 1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()


def _program() -> str:
    program = next(filter(None, map(shutil.which, _SERVERS)), None)
    if program is None and os.environ.get("CI") == "true":
        pytest.fail(_MISSING)
    return program or pytest.skip(_MISSING)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The server that tests share; whoever writes to it empties it first or chooses keys of its own."""
    with tempfile.TemporaryDirectory(prefix="cq-redis-") as folder:  # a socket's path must be short
        server = RedisServer(Path(folder), _program(), *_PLAIN)
        yield server
        server.close()


@pytest.fixture
def redis_link(redis_server: RedisServer) -> Iterator[RedisLink]:
    """A link to the shared server, emptied."""
    link = RedisLink(redis_server.address)
    redis_server.empty()
    yield link
    link.close()


@pytest.fixture
def start_redis() -> Iterator[Callable[..., RedisServer]]:
    """Starts servers of this test alone, with the options it gives."""
    servers = []
    with ExitStack() as folders:

        def start(*options: str) -> RedisServer:
            folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="cq-redis-"))
            servers.append(RedisServer(Path(folder), _program(), *_PLAIN, *options))
            return servers[-1]

        yield start
        for server in servers:
            server.close()


@pytest.fixture
def own_redis(start_redis: Callable[..., RedisServer]) -> RedisServer:
    """A server of this test alone, to be killed or frozen."""
    return start_redis()


@pytest.fixture
def start_sentinel(start_redis: Callable[..., RedisServer]) -> Iterator[Callable[[str, int], tuple[RedisServer, int]]]:
    """Starts a Sentinel that watches the primary at a port under a name, and returns it with its own port."""
    sentinels = []
    with tempfile.TemporaryDirectory(prefix="cq-sentinel-") as folder:

        def start(service: str, watched: int) -> tuple[RedisServer, int]:
            port, file = _free_port(), Path(folder) / "sentinel.conf"
            file.write_text(f"port {port}\nsentinel monitor {service} 127.0.0.1 {watched} 1\n")
            sentinels.append(RedisServer(Path(folder), _program(), str(file), "--sentinel"))
            return sentinels[-1], port

        yield start
        for sentinel in sentinels:
            sentinel.close()


@pytest.fixture
def free_port() -> int:
    """A TCP port on loopback that nothing listens on."""
    return _free_port()
