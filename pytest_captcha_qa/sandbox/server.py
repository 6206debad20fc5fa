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
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Self

from pytest_captcha_qa.errors import ConfigError

DEMO_CONFIG = Path(__file__).with_name("demo.toml")
"""The configuration of the built-in environment `demo`; its addresses are known once the sandbox runs."""

_HOST = "127.0.0.1"
_HIGHEST_PORT = 65535
_START_TIMEOUT = 20.0
_STOP_TIMEOUT = 5.0
_STDERR_TAIL = 2000


@dataclass(frozen=True, slots=True)
class SandboxAddresses:
    """Where a running sandbox serves, and how fast its time runs.

    `provider_https` and `ca_file`, the certificate to trust for it, are there if https was asked for.
    """

    provider: str
    vendor: str
    site: str
    audit: str
    time_scale: float
    provider_https: str | None = None
    ca_file: str | None = None


def serve(
    port: int = 0,
    *,
    json_line: bool = False,
    time_scale: float = 1.0,
    seed: int | None = None,
    site_release: str = "1.0.0",
    https: bool = False,
) -> None:
    """Serve the sandbox until SIGINT, SIGTERM or the end of a piped stdin.

    `port` and the three after it are used, or free ones for 0; with `https` a fifth one serves the provider under a
    certificate of the sandbox's own authority. Once all servers answer, one line with their addresses is printed.
    Solve times are multiplied by `time_scale`; `seed` makes them repeatable. Raises ConfigError when it cannot start.
    """
    if not (math.isfinite(time_scale) and time_scale >= 0):
        raise ConfigError(f"the time scale cannot be {time_scale}: 1 is real time, 0 solves at once")
    try:
        from pytest_captcha_qa.sandbox.hosting import Apps, run

        if https:  # making certificates takes a library that is slow to load
            from pytest_captcha_qa.sandbox.authority import authority
    except ModuleNotFoundError as exc:
        raise ConfigError("the sandbox needs its extra: pip install 'pytest-captcha-qa[sandbox]'") from exc
    sockets = _bind(port, 5 if https else 4)
    with ExitStack() as stack:
        trust = stack.enter_context(authority()) if https else None
        addresses = _addresses(sockets, time_scale, str(trust.ca_file) if trust else None)
        apps = Apps.build(addresses.vendor, time_scale=time_scale, seed=seed, release=site_release)
        announce = partial(print, _line(addresses, json_line), flush=True)
        asyncio.run(run(apps, sockets, announce, trust.context if trust else None))


def _addresses(sockets: list[socket.socket], time_scale: float, ca_file: str | None) -> SandboxAddresses:
    places = [f"{_HOST}:{sock.getsockname()[1]}" for sock in sockets]
    provider, vendor, site, audit = (f"http://{place}" for place in places[:4])
    provider_https = f"https://{places[4]}" if ca_file else None
    return SandboxAddresses(provider, vendor, site, audit, time_scale, provider_https, ca_file)


def _prompt(server: socket.socket) -> socket.socket:
    """Return the socket with all it accepts sending at once: head and body of an answer are two small packets, and the
    second would wait for the client's delayed acknowledgement, 40 ms.
    """
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def _bind(port: int, count: int) -> list[socket.socket]:
    """Return so many sockets bound to loopback: free ports for 0, else `port` and those after it."""
    if not (port == 0 or 1 <= port <= _HIGHEST_PORT + 1 - count):
        raise ConfigError(
            f"the sandbox cannot use port {port}: give 0 for free ones, or 1 to {_HIGHEST_PORT + 1 - count}"
        )
    sockets: list[socket.socket] = []
    for number in range(port, port + count) if port else (0,) * count:
        try:
            sockets.append(_prompt(socket.create_server((_HOST, number))))
        except OSError as exc:
            for sock in sockets:
                sock.close()
            reason = os.strerror(exc.errno) if exc.errno else "no reason given"
            raise ConfigError(f"the sandbox cannot use port {number} on {_HOST}: {reason}") from exc
    return sockets


def _line(addresses: SandboxAddresses, as_json: bool) -> str:
    if as_json:
        return json.dumps(asdict(addresses))
    https = f"provider over https {addresses.provider_https}  its CA {addresses.ca_file}  "
    return (
        f"sandbox ready: provider {addresses.provider}  vendor {addresses.vendor}  site {addresses.site}  "
        f"audit {addresses.audit}  {https if addresses.ca_file else ''}time scale {addresses.time_scale:g}"
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
        https: bool = False,
        stdin: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> SandboxAddresses:
        """Start the sandbox on free ports and return its addresses once it serves, the provider over https if asked.

        `stdin` is the read end of a pipe whose end ends the sandbox, by default a new one. Raises ConfigError
        with what the process said when it does not come up.
        """
        command = [sys.executable, "-m", __name__, "--json"]
        command += ["--time-scale", repr(float(time_scale)), "--site-release", site_release]
        if https:
            command += ["--https"]
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
    parser.add_argument(
        "--port", type=int, default=0, help="first of four ports in a row, five with --https; 0 for free ones"
    )
    parser.add_argument("--json", action="store_true", help="print the addresses as JSON")
    parser.add_argument("--time-scale", type=float, default=1.0, help="factor for solve times")
    parser.add_argument("--https", action="store_true", help="serve the provider over https, too")
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
            https=options.https,
        )
    except ConfigError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
