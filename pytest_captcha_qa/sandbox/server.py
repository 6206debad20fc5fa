"""Starts the sandbox: here, or as a child process that ends with its parent."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from pytest_captcha_qa.errors import ConfigError

DEMO_CONFIG = Path(__file__).with_name("demo.toml")
"""The configuration of the built-in environment `demo`; its addresses are known once the sandbox runs."""

_HOST = "127.0.0.1"
_START_TIMEOUT = 20.0
_STOP_TIMEOUT = 5.0
_STDERR_TAIL = 2000


@dataclass(frozen=True, slots=True)
class SandboxAddresses:
    """Where a running sandbox serves, and how fast its time runs."""

    provider: str
    vendor: str
    site: str
    audit: str
    time_scale: float


def serve(
    port: int = 0,
    *,
    json_line: bool = False,
    time_scale: float = 1.0,
    seed: int | None = None,
    site_release: str = "1.0.0",
) -> None:
    """Serve the sandbox until SIGINT, SIGTERM or the end of a piped stdin.

    `port` and the three after it are used, or free ones for 0. Once all four servers answer, one line with
    their addresses is printed. Solve times are multiplied by `time_scale`; `seed` makes them repeatable.
    Raises ConfigError when it cannot start.
    """
    if not (math.isfinite(time_scale) and time_scale >= 0):
        raise ConfigError(f"the time scale cannot be {time_scale}: 1 is real time, 0 solves at once")
    try:
        from pytest_captcha_qa.sandbox.hosting import Apps, run
    except ModuleNotFoundError as exc:
        raise ConfigError("the sandbox needs its extra: pip install 'pytest-captcha-qa[sandbox]'") from exc
    sockets = _bind(port)
    provider, vendor, site, audit = (f"http://{_HOST}:{sock.getsockname()[1]}" for sock in sockets)
    addresses = SandboxAddresses(provider, vendor, site, audit, time_scale)
    apps = Apps.build(addresses.vendor, time_scale=time_scale, seed=seed, release=site_release)
    asyncio.run(run(apps, sockets, announce=lambda: print(_line(addresses, json_line), flush=True)))


def _bind(port: int) -> list[socket.socket]:
    """Return four sockets bound to loopback: free ports for 0, else `port` and the three after it."""
    if not (port == 0 or 1 <= port <= 65532):
        raise ConfigError(f"the sandbox cannot use port {port}: give 0 for free ones, or 1 to 65532")
    sockets: list[socket.socket] = []
    for number in range(port, port + 4) if port else (0,) * 4:
        try:
            sockets.append(socket.create_server((_HOST, number)))
        except OSError as exc:
            for sock in sockets:
                sock.close()
            reason = os.strerror(exc.errno) if exc.errno else "no reason given"
            raise ConfigError(f"the sandbox cannot use port {number} on {_HOST}: {reason}") from exc
    return sockets


def _line(addresses: SandboxAddresses, as_json: bool) -> str:
    if as_json:
        return json.dumps(asdict(addresses))
    return (
        f"sandbox ready: provider {addresses.provider}  vendor {addresses.vendor}  "
        f"site {addresses.site}  audit {addresses.audit}  time scale {addresses.time_scale:g}"
    )


class SandboxProcess:
    """The sandbox as a child process.

    It ends when stopped, and by itself when the pipe at its stdin closes, so that it never outlives a parent
    that was killed.
    """

    def __init__(self) -> None:
        """Prepare; nothing runs before `start`."""
        self._process: subprocess.Popen[str] | None = None

    def start(
        self,
        *,
        time_scale: float,
        seed: int | None = None,
        site_release: str = "1.0.0",
        stdin: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> SandboxAddresses:
        """Start the sandbox on free ports and return its addresses once it serves.

        `stdin` is the read end of a pipe whose end ends the sandbox, by default a new one. Raises ConfigError
        with what the process said when it does not come up.
        """
        command = [sys.executable, "-m", __name__, "--json"]
        command += ["--time-scale", repr(float(time_scale)), "--site-release", site_release]
        if seed is not None:
            command += ["--seed", str(seed)]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                text=True,
                # Ctrl-C in the terminal is for the parent, which may need the sandbox to finish its work.
                start_new_session=True,
            )
            line = _first_line(self._process)
            if line:
                return SandboxAddresses(**json.loads(line))
            self.stop()
            stderr.seek(0)
            said = stderr.read()[-_STDERR_TAIL:].strip()
        raise ConfigError(f"the sandbox did not start: {said or 'it said nothing'}")

    def stop(self) -> None:
        """End the sandbox, if it runs, and wait until it has."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        """Return the process, to be started."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the sandbox."""
        self.stop()


def _first_line(process: subprocess.Popen[str]) -> str:
    """Return the line with the addresses, or nothing when the process ended or its time is over."""
    assert process.stdout is not None
    watchdog = threading.Timer(_START_TIMEOUT, process.kill)
    watchdog.start()
    try:
        return process.stdout.readline()
    finally:
        watchdog.cancel()


def main(arguments: list[str] | None = None) -> int:
    """Run the sandbox from a command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pytest_captcha_qa.sandbox.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="first of four ports; 0 for free ones")
    parser.add_argument("--json", action="store_true", help="print the addresses as JSON")
    parser.add_argument("--time-scale", type=float, default=1.0, help="factor for solve times")
    parser.add_argument("--seed", type=int, help="makes solve times repeatable")
    parser.add_argument("--site-release", default="1.0.0", help="the version the site reports")
    options = parser.parse_args(arguments)
    try:
        serve(
            options.port,
            json_line=options.json,
            time_scale=options.time_scale,
            seed=options.seed,
            site_release=options.site_release,
        )
    except ConfigError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
