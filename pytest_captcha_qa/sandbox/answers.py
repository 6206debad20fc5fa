"""What a solved task is answered with: the solution of each type, and both grammars under all switches."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.switches import Cookies, Grammar, Number, Parts, Switches, UserAgent, Where
from pytest_captcha_qa.sandbox.types import TYPES

SOLVER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) captcha-qa-sandbox-solver/1"
"""The user agent that comes with a solution where a service sends one."""
SOLVER_COOKIES = MappingProxyType({"sandbox_solver": "c4ptchaqa", "sandbox_region": "loopback"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer in both grammars."""

    json: Mapping[str, Any]
    plain: str

    @classmethod
    def of(cls, value: object, plain: str | None = None) -> Answer:
        """Return the usual answer with a value: `OK|value`, or status 1 and the value."""
        return cls({"status": 1, "request": value}, f"OK|{value if plain is None else plain}")


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution: one text, or parts with names; `extra` goes into a `solution` object where there is one."""

    text: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    """What the names of the parts begin with where a service prefixes them."""
    extra: Mapping[str, Any] = field(default_factory=dict)


def solved_answer(solved: Solved, switches: Switches, *, price: str = "") -> Answer:
    """Return a solution in both grammars; `price` is what `get2` adds."""
    value, plain = _values(solved, switches)
    body: dict[str, Any] = {"status": 1, **_placed(value, switches)}
    if switches.with_solution:
        body["solution"] = {"token": value, **solved.extra}
    if switches.user_agent is not UserAgent.NONE:
        body[switches.user_agent.value] = SOLVER_AGENT
    if switches.cookies is not Cookies.NONE:
        body["cookies"] = _COOKIES[switches.cookies]
    if price:
        body["price"] = price
    return Answer(body, f"OK|{plain}|{price}" if price else f"OK|{plain}")


def bare(solved: Solved, switches: Switches) -> str:
    """Return a solution as one item of a batch."""
    return _values(solved, switches)[1]


def _values(solved: Solved, switches: Switches) -> tuple[Any, str]:
    """Return the solution as a value in JSON and as plain text."""
    if not solved.parts:
        return solved.text, solved.text
    prefix = solved.prefix if switches.prefixed else ""
    parts = {prefix + name: value for name, value in solved.parts.items()}
    text, pairs = json.dumps(parts), ",".join(f"{name}:{value}" for name, value in parts.items())
    return {
        Parts.OBJECT: (parts, text),
        Parts.JSON: (text, text),
        Parts.PAIRS: (pairs, pairs),
        Parts.MIXED: (parts, pairs),
    }[switches.parts]


def _placed(value: Any, switches: Switches) -> dict[str, Any]:
    if switches.answer_in is Where.SOLUTION:
        return {"solution": value if isinstance(value, dict) else {"token": value}}
    return {switches.answer_in.value: value}


_COOKIES: Mapping[Cookies, Any] = MappingProxyType(
    {
        Cookies.OBJECT: dict(SOLVER_COOKIES),
        Cookies.TEXT: ";".join(f"{name}:{value}" for name, value in SOLVER_COOKIES.items()),
        Cookies.LIST: [{"name": name, "value": value} for name, value in SOLVER_COOKIES.items()],
    }
)


def number(value: float, text: str, kind: Number) -> float | str:
    """Return a number as JSON holds it under a switch."""
    return text if kind is Number.STRING else value


def is_json(switches: Switches, asked: bool) -> bool:
    """Tell whether an answer is JSON, given whether JSON was asked for."""
    return asked if switches.grammar is Grammar.ASKED else switches.grammar is Grammar.JSON


def error_body(code: str, switches: Switches) -> dict[str, Any]:
    """Return an error in JSON."""
    beside = {"error_text": f"The sandbox was asked in a way that it answers with {code}."}
    return {"status": 0, "request": code, **(beside if switches.error_text else {})}


_PREFIXES = MappingProxyType({"geetest_v3": "geetest_"})


def _counter(payload: str) -> Mapping[str, Any]:
    return {"number": json.loads(base64.b64decode(payload))["number"]}


_EXTRAS: Mapping[str, Callable[[str], Mapping[str, Any]]] = MappingProxyType({"altcha": _counter})
"""What a service may add in a `solution` object: the counter of ALTCHA's proof of work."""


def solve(text: str, binding: Binding) -> Solved:
    """Return the solution that a token of this text is for what it was bound to."""
    parts, extra = TYPES[binding.type].parts, _EXTRAS.get(binding.type)
    return Solved(
        text,
        parts={} if parts is None else parts(text, binding),
        prefix=_PREFIXES.get(binding.type, ""),
        extra={} if extra is None else extra(text),
    )
