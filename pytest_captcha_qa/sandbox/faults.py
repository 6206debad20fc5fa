"""Faults that can be switched on, made from data: `{"kind": "status", "status": 502, "path": "/res.php"}`.

A fault is an effect (what happens) and a filter (to which calls). Effects on the transport fit every server; answers
fit the one whose they are: the solving service, the vendor or the site. The faults of a server apply in their order,
until one ends the call.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_captcha_qa.sandbox.described import DescriptionProblem, build
from pytest_captcha_qa.sandbox.effects import (
    KINDS,
    Effect,
    ErrorAnswer,
    Fate,
    ProviderAnswer,
    SiteAnswer,
    TransportEffect,
    VendorAnswer,
)

_T = TypeVar("_T")
Describe = Callable[[Scope, Receive], Awaitable[tuple["Call", Receive]]]


@dataclass(frozen=True, slots=True)
class Call:
    """What a fault may be limited to; `form` is the path of the form's page without its first slash.

    `key`, `action`, `task` and `type` (of captcha) are those of a call of the solving service.
    """

    path: str
    method: str
    form: str = ""
    key: str = field(default="", repr=False)
    action: str = ""
    task: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which calls a fault applies to. Empty means any; None means without end.

    `skip`: so many calls are spared first, then `count` are struck; `after`, `lasts`: the period in which that
    happens, in seconds, the first from the moment the fault was switched on.
    """

    path: str = ""
    method: str = ""
    form: str = ""
    key: str = field(default="", repr=False)
    action: str = ""
    task: str = ""
    type: str = ""
    share: float = 1.0
    skip: int = 0
    count: int | None = None
    after: float = 0.0
    lasts: float | None = None

    def fits(self, call: Call) -> bool:
        """Tell whether the call is one of those meant."""
        wanted = {name: getattr(self, name) for name in _OF_A_CALL}
        return all(not value or value == getattr(call, name) for name, value in wanted.items())

    def is_on(self, age: float) -> bool:
        """Tell whether its period has come and is not over, so many seconds after it was switched on."""
        return age >= self.after and (self.lasts is None or age < self.after + self.lasts)


_OF_A_CALL = tuple(spec.name for spec in fields(Call))
_OF_THE_SERVICE = ("form", "key", "action", "task", "type")


@dataclass(slots=True)
class Fault:
    """An effect, the calls it applies to, and how often it still does."""

    effect: Effect
    filter: Filter
    left: int | None
    since: float = 0.0
    spared: int = 0

    @classmethod
    def from_data(cls, data: Any, *, since: float = 0.0) -> Fault:
        """Return the fault a JSON object describes, switched on at `since`. Raises DescriptionProblem."""
        kind = KINDS.get(str(data.get("kind"))) if isinstance(data, dict) else None
        if kind is None:
            raise DescriptionProblem(f"a fault is an object with a kind, one of {', '.join(KINDS)}")
        own = {spec.name for spec in fields(kind)}
        effect = build(kind, {name: value for name, value in data.items() if name in own})
        rest = {name: value for name, value in data.items() if name not in own | {"kind"}}
        applies = build(Filter, rest)
        return cls(effect, applies, applies.count, since)

    def strikes(self, call: Call, rng: Random, now: float) -> bool:
        """Tell whether the fault applies to this call, and count it if so."""
        meant = self.left != 0 and self.filter.fits(call) and self.filter.is_on(now - self.since)
        if not meant or rng.random() >= self.filter.share:
            return False
        if self.spared < self.filter.skip:
            self.spared += 1
            return False
        if self.left is not None:
            self.left -= 1
        return True


@dataclass(slots=True)
class FaultPlan:
    """The faults of one server that are switched on."""

    rng: Random
    answers: Any = ()
    """The kinds of answers that are the server's own, as `isinstance` takes them."""
    of_a_call: tuple[str, ...] = ()
    """What, besides path and verb, is known of a call of this server."""
    clock: Callable[[], float] = time.monotonic
    faults: list[Fault] = field(default_factory=list)

    def parse(self, data: Any) -> list[Fault]:
        """Return the faults a JSON list describes, if they fit this server. Raises DescriptionProblem."""
        if not isinstance(data, list):
            raise DescriptionProblem("faults are a list of objects")
        faults = [Fault.from_data(item, since=self.clock()) for item in data]
        for fault in faults:
            self._check(fault)
        return faults

    def effects_on(self, call: Call) -> list[TransportEffect]:
        """Return what happens to this call, in order, up to the first effect that ends it."""
        effects: list[TransportEffect] = []
        for fault in self.faults:
            if isinstance(fault.effect, TransportEffect) and fault.strikes(call, self.rng, self.clock()):
                effects.append(fault.effect)
                if fault.effect.final:
                    break
        return effects

    def error_for(self, call: Call) -> ErrorAnswer | None:
        """Return the error the solving service answers this call with, if any."""
        return self.answer(ErrorAnswer, call)

    def fate_of(self, call: Call) -> Fate | None:
        """Return what will become of the task that this call submits, if it will not be solved."""
        fate: Fate | None = self._struck(Fate, call)
        return fate

    def answer(self, kind: type[_T], call: Call) -> _T | None:
        """Return the server's own answer of that kind to this call, if one is switched on."""
        answer: _T | None = self._struck(kind, call)
        return answer

    def _struck(self, kind: Any, call: Call) -> Any:
        struck = (f for f in self.faults if isinstance(f.effect, kind) and f.strikes(call, self.rng, self.clock()))
        return next((fault.effect for fault in struck), None)

    def _check(self, fault: Fault) -> None:
        is_answer = not isinstance(fault.effect, TransportEffect)
        if is_answer and not isinstance(fault.effect, self.answers):
            raise DescriptionProblem(f"this server has no {_kind_of(fault.effect)}; it is another one's answer")
        for name in _OF_THE_SERVICE:
            if getattr(fault.filter, name) and name not in self.of_a_call:
                raise DescriptionProblem(f"{name!r} is not known of the calls of this server")


def _kind_of(effect: Effect) -> str:
    return next(name for name, kind in KINDS.items() if isinstance(effect, kind))


@dataclass(frozen=True, slots=True)
class Faults:
    """The fault plans of all servers."""

    provider: FaultPlan
    vendor: FaultPlan
    site: FaultPlan

    @classmethod
    def none(cls, rng: Random, clock: Callable[[], float] = time.monotonic) -> Faults:
        """Return plans without any fault; `rng` decides about those that strike a share of calls."""
        return cls(
            FaultPlan(rng, answers=ProviderAnswer, of_a_call=_OF_THE_SERVICE, clock=clock),
            FaultPlan(rng, answers=VendorAnswer, clock=clock),
            FaultPlan(rng, answers=SiteAnswer, of_a_call=("form",), clock=clock),
        )

    def load(self, data: Any) -> None:
        """Replace the faults of the servers named in a JSON object. Raises DescriptionProblem."""
        names = [spec.name for spec in fields(self)]
        if not isinstance(data, dict) or not data.keys() <= set(names):
            raise DescriptionProblem(f"faults are an object with the keys {', '.join(names)}")
        plans: dict[str, FaultPlan] = {name: getattr(self, name) for name in data}
        parsed = {name: plan.parse(data[name]) for name, plan in plans.items()}
        for name, plan in plans.items():
            plan.faults = parsed[name]

    def clear(self) -> None:
        """Switch all faults off."""
        for plan in (self.provider, self.vendor, self.site):
            plan.faults = []


@dataclass(frozen=True, slots=True)
class Faulty:
    """A server with its transport faults in front of it."""

    app: ASGIApp
    plan: FaultPlan
    describe: Describe | None = None
    """How a call is described by more than its path and verb; it reads the body and returns a channel that has it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the faults that strike this call have their effect."""
        app, call = self.app, Call(scope["path"], scope["method"], form=scope["path"].strip("/"))
        if self.plan.faults and self.describe is not None:
            call, receive = await self.describe(scope, receive)
        for effect in reversed(self.plan.effects_on(call)):
            app = effect.wrap(app)
        await app(scope, receive, send)
