"""The log of a stand-in: every call of a vendor's endpoint, in order, and the marks that a test puts between them."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.grammars import Grammar
from pytest_captcha_qa.sandbox.web import Fields

KEPT = 10_000
_LONGEST_NAME = 60
_MOST_NAMES = 30
_DOCUMENTATION = ip_network("192.0.2.0/24")
_ENCODINGS = {
    "application/x-www-form-urlencoded": "form",
    "multipart/form-data": "multipart",
    "application/json": "json",
}


@dataclass(slots=True)
class LoggedCall:
    """One call. It holds no token, secret or address of a person: fingerprints, and names of parameters.

    `order` counts calls and marks together; `at`: seconds since the start; `names`: parameters in their order, a
    repeated one repeatedly; `unknown`: those the vendor does not document; `token`: fingerprint, the id of a token that
    was issued here; `remote_ip`: the address if it is one for documentation, else `other` where one was sent;
    `accepted`: None when no answer of the vendor's was sent.
    """

    order: int
    at: float
    vendor: str
    path: str
    method: str
    encoding: str
    names: list[str]
    unknown: list[str]
    repeated: bool
    token: str
    issued: bool
    session: str
    secret: str
    idempotency_key: str
    remote_ip: str
    scripted: bool = False
    status: int | None = None
    accepted: bool | None = None
    mark: str = ""


@dataclass(slots=True)
class CallLog:
    """The last calls and marks; `secrets` counts calls by the fingerprint of what they were sent with."""

    clock: Callable[[], float] = time.monotonic
    entries: deque[LoggedCall] = field(default_factory=lambda: deque(maxlen=KEPT))
    secrets: Counter[str] = field(default_factory=Counter)
    last_at: float | None = None
    count: int = 0
    _next: int = 1
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        """Count time from now."""
        self._start = self.clock()

    def called(self, call: ReadCall, session: str, *, issued: bool) -> LoggedCall:
        """Note a call and return its entry, for its answer to be added."""
        secret = fingerprint(call.secret) if call.secret else ""
        self.last_at = self.clock()
        self.count += 1
        if secret:
            self.secrets[secret] += 1
        return self._add(**call.facts(), token=call.fingerprint, issued=issued, session=session, secret=secret)

    def mark(self, text: str) -> LoggedCall:
        """Note what a test says happened between two calls."""
        empty: dict[str, Any] = dict.fromkeys(
            ("vendor", "path", "method", "encoding", "token", "session", "secret", "idempotency_key", "remote_ip"), ""
        )
        return self._add(**empty, names=[], unknown=[], repeated=False, issued=False, mark=text)

    def after(self, order: int) -> list[dict[str, Any]]:
        """Return the entries after the one with this number, as JSON values."""
        return [asdict(entry) for entry in self.entries if entry.order > order]

    @property
    def last(self) -> int:
        """The number of the last entry, 0 if there is none."""
        return self._next - 1

    def use(self) -> dict[str, Any]:
        """Return who asked, as JSON values: how often, how many seconds ago the last time, by which secrets."""
        ago = None if self.last_at is None else round(self.clock() - self.last_at, 1)
        return {"calls": self.count, "last_call_ago": ago, "secrets": dict(self.secrets)}

    def _add(self, **facts: Any) -> LoggedCall:
        entry = LoggedCall(self._next, round(self.clock() - self._start, 3), **facts)
        self._next += 1
        self.entries.append(entry)
        return entry


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call of a vendor's endpoint, as far as its body could be read."""

    grammar: Grammar
    path: str
    method: str
    content_type: str
    fields: Fields
    key: str = field(repr=False)
    """What came in a header as the key."""

    @property
    def token(self) -> str:
        """The token in question, wherever this vendor has it."""
        seccode = self.fields.get("seccode").partition("|")[0]
        plain = (self.fields.get(name) for name in ("response", "token", "lot_number"))
        return next((text for text in plain if text), "") or seccode or _event_token(self.fields.get("event"))

    @property
    def fingerprint(self) -> str:
        """What stands for the token, empty without one."""
        return fingerprint(self.token) if self.token else ""

    @property
    def secret(self) -> str:
        """The secret or key that came with it."""
        return self.fields.get("secret") or self.key or self.fields.get("key")

    def facts(self) -> dict[str, Any]:
        """Return what the log tells of the call itself."""
        names = [name[:_LONGEST_NAME] for name, _ in self.fields.pairs][:_MOST_NAMES]
        retry = self.fields.get("idempotency_key")
        return {
            "vendor": self.grammar.vendor,
            "path": self.path[:200],
            "method": self.method,
            "encoding": _ENCODINGS.get(self.content_type, "query" if self.method == "GET" else "other"),
            "names": names,
            "unknown": [name for name in names if name not in self.grammar.names],
            "repeated": self.fields.has_repeated_names(),
            "idempotency_key": fingerprint(retry) if retry else "",
            "remote_ip": _shown(self._address()),
        }

    def _address(self) -> str:
        names = ("remoteip", "ip", "ip_address")
        return next((self.fields.get(name) for name in names if self.fields.get(name)), "")


def _event_token(event: str) -> str:
    try:
        token = json.loads(event).get("token") if event else ""
    except (ValueError, AttributeError, RecursionError):
        return ""
    return token if isinstance(token, str) else ""


def _shown(address: str) -> str:
    try:
        known = not address or ip_address(address) in _DOCUMENTATION
    except ValueError:
        known = False
    return address if known else "other"
