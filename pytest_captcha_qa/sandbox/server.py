"""Starts the sandbox: here, or as a child process that ends with its parent."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox.children import Child
from pytest_captcha_qa.sandbox.sockets import LOOPBACK, bind

DEMO_CONFIG = Path(__file__).with_name("demo.toml")
"""The configuration of the built-in environment `demo`; its addresses are known once the sandbox runs."""


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
    sockets = bind("the sandbox", port, [LOOPBACK] * (5 if https else 4))
    with ExitStack() as stack:
        trust = stack.enter_context(authority()) if https else None
        addresses = _addresses(sockets, time_scale, str(trust.ca_file) if trust else None)
        apps = Apps.build(addresses.vendor, time_scale=time_scale, seed=seed, release=site_release)
        announce = partial(print, _line(addresses, json_line), flush=True)
        asyncio.run(run(apps, sockets, announce, trust.context if trust else None))


def _addresses(sockets: list[socket.socket], time_scale: float, ca_file: str | None) -> SandboxAddresses:
    places = [f"{LOOPBACK}:{sock.getsockname()[1]}" for sock in sockets]
    provider, vendor, site, audit = (f"http://{place}" for place in places[:4])
    provider_https = f"https://{places[4]}" if ca_file else None
    return SandboxAddresses(provider, vendor, site, audit, time_scale, provider_https, ca_file)


def _line(addresses: SandboxAddresses, as_json: bool) -> str:
    if as_json:
        return json.dumps(asdict(addresses))
    https = f"provider over https {addresses.provider_https}  its CA {addresses.ca_file}  "
    return (
        f"sandbox ready: provider {addresses.provider}  vendor {addresses.vendor}  site {addresses.site}  "
        f"audit {addresses.audit}  {https if addresses.ca_file else ''}time scale {addresses.time_scale:g}"
    )


class SandboxProcess(Child):
    """The sandbox as a child process."""

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
        arguments = ["--json", "--time-scale", repr(float(time_scale)), "--site-release", site_release]
        if https:
            arguments += ["--https"]
        if seed is not None:
            arguments += ["--seed", str(seed)]
        line = self.launch("the sandbox", [sys.executable, "-m", __name__, *arguments], stdin=stdin, env=env)
        return SandboxAddresses(**json.loads(line))


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
