"""What a solving service does wrong, row by row, and what a client should make of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

SUBMIT: Mapping[str, str] = MappingProxyType({"path": "/in.php"})
POLL: Mapping[str, str] = MappingProxyType({"path": "/res.php", "action": "get"})
_ANY = 1_000


@dataclass(frozen=True)
class Row:
    """One fault.

    `faults`, `switches`: as the sandbox's control endpoint takes them, without the key. `token`: whether a client can
    obtain one. `errors`: codes of the errors that are right if it cannot, or does not; empty: none is. `excused`: tasks
    that no client could keep. `busy`: whether another task of the key holds its only thread at first. `address`: where
    the service is said to be, if not at the sandbox. `dialects`: in which the row makes sense, if not in all.
    """

    name: str
    faults: tuple[Mapping[str, Any], ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    token: bool = True
    errors: tuple[str, ...] = ()
    excused: int = 0
    busy: bool = False
    type: str = ""
    address: str = ""
    dialects: tuple[str, ...] = ()


_DOWN = ("provider_unavailable", "provider_down", "provider_not_running")
_LATE = ("deadline", *_DOWN)
_SLOWED = ("provider_busy", "rate_limited")

# How one answer can be spoilt; those in which the service may have done what it was asked stand apart.
_UNDONE: Mapping[str, Mapping[str, Any]] = {
    "HTTP 500": {"kind": "status", "status": 500},
    "HTTP 502": {"kind": "status", "status": 502},
    "HTTP 503": {"kind": "status", "status": 503},
    "HTTP 401": {"kind": "status", "status": 401},
    "HTTP 429": {"kind": "status", "status": 429},
    "HTTP 429, Retry-After in seconds": {"kind": "status", "status": 429, "retry_after": 1},
    "HTTP 429, Retry-After as a date": {"kind": "status", "status": 429, "retry_after": 2, "as_date": True},
    "HTML with status 200": {"kind": "html200"},
    "empty body": {"kind": "empty"},
    "no answer": {"kind": "never"},
    "connection reset": {"kind": "reset"},
    "gzip bomb": {"kind": "gzip_bomb", "mebibytes": 32},
    "ERROR_SERVER_ERROR": {"kind": "error", "code": "ERROR_SERVER_ERROR"},
    "ERROR_NO_SLOT_AVAILABLE": {"kind": "error", "code": "ERROR_NO_SLOT_AVAILABLE"},
    "code as text under json=1": {"kind": "error", "code": "ERROR_NO_SLOT_AVAILABLE", "as_text": True},
}
_DONE: Mapping[str, Mapping[str, Any]] = {
    "late connection reset": {"kind": "reset", "late": True},
    "truncated JSON": {"kind": "truncated"},
    "answer twice in one body": {"kind": "twice"},
    "JSON that is a list": {"kind": "json_list"},
    "JSON without status": {"kind": "no_status"},
    "slow drip": {"kind": "drip", "seconds": 1.0},
}


def _once(where: str, calls: Mapping[str, str], spoilt: Mapping[str, Mapping[str, Any]], **told: Any) -> Iterable[Row]:
    for name, fault in spoilt.items():
        yield Row(f"{where}: {name}, once", ({**fault, **calls, "count": 1},), **told)


def _always(where: str, calls: Mapping[str, str], names: Iterable[str], errors: tuple[str, ...]) -> Iterable[Row]:
    for name in names:
        fault = {**{**_UNDONE, **_DONE}[name], **calls}
        yield Row(f"{where}: {name}, always", (fault,), token=False, errors=errors, excused=_ANY)


def _twice(calls: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    return ({"kind": "status", "status": 503, **calls, "count": 2},)


def _every_other(fault: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the fault for the first, third and so on: each one sees only the calls that those before it let pass."""
    return tuple({**fault, "skip": spared, "count": 1} for spared in range(20))


def _refused(code: str, errors: tuple[str, ...]) -> Row:
    fault = {"kind": "error", "code": code, **SUBMIT}
    return Row(f"submit: {code}, always", (fault,), token=False, errors=errors)


def _busy(name: str, when_busy: str) -> Row:
    """Let the key's only thread be held by a long task of somebody else."""
    long = {"kind": "slow", "factor": 3, "count": 1}
    return Row(f"busy: {name}", (long,), {"threads": 1, "when_busy": when_busy}, busy=True)


def _shape(name: str, **switches: Any) -> Row:
    return Row(f"answer: {name}", switches=switches)


def _geetest(name: str, **switches: Any) -> Row:
    return Row(f"GeeTest: {name}", switches=switches, type="geetest_v3")


def _fate(name: str, *faults: Mapping[str, Any], **told: Any) -> Row:
    return Row(f"task: {name}", faults, **told)


ROWS: tuple[Row, ...] = (
    Row("no fault"),
    *_once("submit", SUBMIT, _UNDONE),
    # A submit whose answer is lost may have made a task that nobody can find again.
    *_once("submit", SUBMIT, _DONE, excused=1),
    *_once("poll", POLL, _UNDONE),
    *_once("poll", POLL, _DONE, switches={"read_once": False}),
    *_always("submit", SUBMIT, ("HTTP 502", "HTML with status 200", "no answer", "connection reset"), _DOWN),
    *_always("submit", SUBMIT, ("truncated JSON",), _DOWN),
    Row("submit: HTTP 429, always", ({"kind": "status", "status": 429, **SUBMIT},), token=False, errors=_SLOWED),
    Row("poll: HTTP 502, always", ({"kind": "status", "status": 502, **POLL},), token=False, errors=_LATE),
    Row("poll: no answer, always", ({"kind": "never", **POLL},), token=False, errors=_LATE),
    Row("poll: slow drip, always", ({"kind": "drip", "seconds": 1.0, **POLL},), {"read_once": False}, errors=_LATE),
    Row("blip: HTTP 503 twice at both endpoints", (*_twice(SUBMIT), *_twice(POLL))),
    Row("poll: HTTP 502, every other answer", _every_other({"kind": "status", "status": 502, **POLL})),
    Row("service not running", token=False, errors=_DOWN, address="127.0.0.1:1"),
    _refused("ERROR_WRONG_USER_KEY", ("key_rejected",)),
    _refused("IP_BANNED", ("key_rejected",)),
    _refused("ERROR_ZERO_BALANCE", ("balance_exhausted",)),
    _refused("ERROR: 1001", (*_SLOWED, "balance_exhausted")),
    _refused("MAX_USER_TURN", _SLOWED),
    _refused("ERROR_BAD_PARAMETERS", ("request_rejected",)),
    _refused("ERROR_NEVER_HEARD_OF", _DOWN),
    # To the others a zero balance means no money.
    replace(_busy("zero balance", "zero_balance"), dialects=("sandbox", "captchaai")),
    _busy("no slot", "no_slot"),
    _busy("queued silently", "queue"),
    # The deadline may cut the last poll off, which then looks like one without an answer.
    _fate("never ready", {"kind": "not_ready_forever"}, token=False, errors=_LATE),
    _fate("unsolvable once", {"kind": "unsolvable", "count": 1}),
    _fate("unsolvable always", {"kind": "unsolvable"}, token=False, errors=("unsolvable",)),
    _fate("id that nobody knows, once", {"kind": "lost_id", "count": 1}, errors=("task_unknown",)),
    _fate("token that contains ERROR", {"kind": "ending", "text": "ERROR"}),
    _fate("token that contains |", {"kind": "ending", "text": "|b|c"}),
    Row(
        "task: token is read once and lost on the way",
        ({"kind": "slow", "factor": 0}, {"kind": "reset", "late": True, **POLL, "count": 1}),
        {"read_once": True},
        errors=("task_unknown", "task_silent", *_LATE),
        excused=1,
    ),
    _shape("id as integer", ids="integer"),
    _shape("id as text", ids="string"),
    _shape("token in result", answer_in="result"),
    _shape("token in solution", answer_in="solution"),
    _shape("JSON always", grammar="json"),
    _shape("text always", grammar="text"),
    _shape("user agent and cookies beside", user_agent="user_agent", cookies="list"),
    _shape("empty bodies while solving", waiting="empty"),
    _shape("errors with a text beside", error_text=True),
    _geetest("object", parts="object"),
    _geetest("prefixed object", parts="object", prefixed=True),
    _geetest("JSON text", parts="json"),
    _geetest("prefixed JSON text", parts="json", prefixed=True),
    _geetest("pairs", parts="pairs"),
    _geetest("prefixed pairs", parts="pairs", prefixed=True),
)
