"""Starts the stand-in alone, without solving service and site: for backends of one's own (docs/standin.md)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from ipaddress import ip_address
from random import SystemRandom

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox.children import Child
from pytest_captcha_qa.sandbox.sockets import LOOPBACK, bind

KEY_VARIABLE = "CAPTCHA_QA_STANDIN_KEY"
LONGEST = 8 * 3600.0
"""Seconds after which a stand-in ends by itself."""

_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
_SHORTEST_KEY = 22  # characters of base64 that hold 128 bits; of hexadecimal digits it is 32
_FEWEST_LETTERS = 8
_WHAT = "the stand-in"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class StandInAddresses:
    """Where a running stand-in serves: the vendors' endpoints, over http and https, and its own at `audit`.

    `provider`: what the `url_env` of an account holds; `ca_file`: the certificate to trust for https; `key_needed`:
    whether its own endpoints want the admin key.
    """

    provider: str
    vendor: str
    vendor_https: str
    audit: str
    ca_file: str
    key_needed: bool


@dataclass(frozen=True, slots=True)
class Listening:
    """Where it is served: on this machine, or over TLS at another address under these names, for who has the key."""

    address: str = LOOPBACK
    names: tuple[str, ...] = ()
    key: str = ""

    def check(self) -> None:
        """Return quietly if the stand-in may be served there. Raises ConfigError."""
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"--host {name!r} is no name of a host; write it without scheme and port")
        if not self.is_open:
            return
        if not self.names and self.shown in ("0.0.0.0", "::"):
            raise ConfigError(f"--listen {self.address} is every address: name with --host what backends call it")
        if len(self.key) < _shortest(self.key) or len(set(self.key)) < _FEWEST_LETTERS:
            raise ConfigError(
                f"--listen needs an admin key of 128 random bits in {KEY_VARIABLE}; make one with "
                "`python -c 'import secrets; print(secrets.token_hex(16))'`"
            )

    @property
    def is_open(self) -> bool:
        """Whether others than this machine reach it."""
        try:
            return not ip_address(self.address).is_loopback
        except ValueError:
            raise ConfigError(f"--listen {self.address!r} is no address; names are given with --host") from None

    @property
    def shown(self) -> str:
        """The address as it is written in a certificate."""
        return str(ip_address(self.address))

    @property
    def known(self) -> frozenset[str]:
        """The names and addresses in a Host header that it answers to, besides loopback."""
        return frozenset(name.lower() for name in self.names) | ({self.shown} if self.is_open else frozenset())

    @property
    def url_host(self) -> str:
        """What stands in its https address."""
        address = f"[{self.shown}]" if ":" in self.shown else self.shown
        return self.names[0] if self.names and self.is_open else address


def _shortest(key: str) -> int:
    return 32 if all(char in "0123456789abcdefABCDEF" for char in key) else _SHORTEST_KEY


def serve(
    port: int = 0,
    *,
    listening: Listening | None = None,
    json_line: bool = False,
    lasts: float = LONGEST,
    lease: float | None = None,
) -> None:
    """Serve the stand-in until SIGINT, SIGTERM, the end of a piped stdin, or for `lasts` seconds.

    What a session has made ends `lease` seconds after it was last heard of, by default ten minutes. `port` takes http
    and the next one https, or free ones for 0; http is on this machine only. Once both answer, one
    line with the addresses is printed; at the end a warning, if a backend has asked. Raises ConfigError when it cannot
    start.
    """
    place = listening or Listening()
    place.check()
    try:
        from pytest_captcha_qa.sandbox.audit import Audit
        from pytest_captcha_qa.sandbox.authority import authority
        from pytest_captcha_qa.sandbox.desk import KeyRing
        from pytest_captcha_qa.sandbox.faults import Faults
        from pytest_captcha_qa.sandbox.hosting import guarded, serve_all, serve_one
        from pytest_captcha_qa.sandbox.impostors import Impostors
        from pytest_captcha_qa.sandbox.issuing import ROOT, with_admin
        from pytest_captcha_qa.sandbox.scripted import LEASE, Book
        from pytest_captcha_qa.sandbox.standin import StandIn, build_app
        from pytest_captcha_qa.sandbox.tokens import TokenRegistry
    except ModuleNotFoundError as exc:
        raise ConfigError("the stand-in needs its extra: pip install 'pytest-captcha-qa[sandbox]'") from exc
    plain, secure = bind(_WHAT, port, [LOOPBACK, place.address])
    registry = TokenRegistry()
    book = Book(registry, longest=LEASE if lease is None else lease)
    ring = KeyRing(learns=True, plays_test_secrets=False)
    vendors = build_app(StandIn(registry, Audit(), Faults.none(SystemRandom()).vendor, ring))
    with ExitStack() as stack:
        trust = stack.enter_context(authority(*sorted(place.known)))
        impostors = Impostors(lambda: trust.bad, serve_one, book.log.mark, place.address, place.url_host)
        app = guarded(with_admin(vendors, book, impostors, place.key), names=place.known)
        http = f"http://{LOOPBACK}:{plain.getsockname()[1]}"
        https = f"https://{place.url_host}:{secure.getsockname()[1]}"
        provider = https if place.is_open else http
        addresses = StandInAddresses(provider, http, https, provider + ROOT, str(trust.ca_file), bool(place.key))
        announce = partial(print, _line(addresses, json_line), flush=True)
        places = [(app, plain, None), (app, secure, trust.context)]
        asyncio.run(serve_all(places, announce, lasts=min(lasts, LONGEST)))
    if book.log.last_at is not None:
        print(still_in_use(book.log.use()), file=sys.stderr)


def still_in_use(use: dict[str, object]) -> str:
    """Return the warning that a backend has asked a stand-in, and what that means for its visitors."""
    asked = use["secrets"]
    named = sorted(asked, key=lambda name: -asked[name]) if isinstance(asked, dict) else []
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    who = f"{', '.join(named[:_MOST_NAMED]) or 'none'}{more}"
    return (
        f"WARNING: a backend asks this stand-in: {use['calls']} calls, the last {use['last_call_ago']} s ago; secrets "
        f"by fingerprint: {who}. Point it back at its vendor: until then it refuses every visitor, or lets all in."
    )


def _line(addresses: StandInAddresses, as_json: bool) -> str:
    if as_json:
        return json.dumps(asdict(addresses))
    key = f"  admin key as in {KEY_VARIABLE}" if addresses.key_needed else ""
    return (
        f"stand-in ready: vendor {addresses.vendor}  over https {addresses.vendor_https}  its CA {addresses.ca_file}  "
        f"own {addresses.audit}{key}"
    )


class StandInProcess(Child):
    """A stand-in as a child process, on this machine only."""

    def start(self) -> StandInAddresses:
        """Start it on free ports and return its addresses once it serves. Raises ConfigError."""
        environ = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
        line = self.launch(_WHAT, [sys.executable, "-m", __name__, "--json"], env=environ)
        return StandInAddresses(**json.loads(line))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stand-in on this machine from a command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pytest_captcha_qa.sandbox.alone", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="first of two ports in a row; 0 for free ones")
    parser.add_argument("--json", action="store_true", help="print the addresses as JSON")
    parser.add_argument("--lasts", type=float, default=LONGEST, help="seconds until it ends by itself")
    parser.add_argument("--lease", type=float, help="seconds until what a silent session has made is gone")
    options = parser.parse_args(arguments)
    try:
        serve(options.port, json_line=options.json, lasts=options.lasts, lease=options.lease)
    except ConfigError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
