"""Faults that can be switched on, made from data: `{"kind": "status", "status": 502, "path": "/res.php"}`.

A fault is an effect (what happens) and a filter (to which calls). Effects on the transport fit every server; answers
fit the one whose they are: the solving service, the vendor or the site. The faults of a server apply in their order,
until one ends the call.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Call:
    """What a fault may be limited to; `form` is the path of the form's page without its first slash."""

    path: str
    method: str
    form: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which calls a fault applies to. Empty means any; `count` None means without end."""

    path: str = ""
    method: str = ""
    form: str = ""
    share: float = 1.0
    count: int | None = None

    def fits(self, call: Call) -> bool:
        """Tell whether the call is one of those meant."""
        pairs = ((self.path, call.path), (self.method, call.method), (self.form, call.form))
        return all(not wanted or wanted == actual for wanted, actual in pairs)


@dataclass(slots=True)
class Fault:
    """An effect, the calls it applies to, and how often it still does."""

    effect: Effect
    filter: Filter
    left: int | None

    @classmethod
    def from_data(cls, data: Any) -> Fault:
        """Return the fault a JSON object describes. Raises DescriptionProblem."""
        kind = KINDS.get(str(data.get("kind"))) if isinstance(data, dict) else None
        if kind is None:
            raise DescriptionProblem(f"a fault is an object with a kind, one of {', '.join(KINDS)}")
        own = {spec.name for spec in fields(kind)}
        effect = build(kind, {name: value for name, value in data.items() if name in own})
        rest = {name: value for name, value in data.items() if name not in own | {"kind"}}
        applies = build(Filter, rest)
        return cls(effect, applies, applies.count)

    def strikes(self, call: Call, rng: Random) -> bool:
        """Tell whether the fault applies to this call, and count it if so."""
        if self.left == 0 or not self.filter.fits(call) or rng.random() >= self.filter.share:
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
    forms: bool = False
    """Whether the server is the site, whose paths are forms."""
    faults: list[Fault] = field(default_factory=list)

    def parse(self, data: Any) -> list[Fault]:
        """Return the faults a JSON list describes, if they fit this server. Raises DescriptionProblem."""
        if not isinstance(data, list):
            raise DescriptionProblem("faults are a list of objects")
        faults = [Fault.from_data(item) for item in data]
        for fault in faults:
            self._check(fault)
        return faults

    def effects_on(self, call: Call) -> list[TransportEffect]:
        """Return what happens to this call, in order, up to the first effect that ends it."""
        effects: list[TransportEffect] = []
        for fault in self.faults:
            if isinstance(fault.effect, TransportEffect) and fault.strikes(call, self.rng):
                effects.append(fault.effect)
                if fault.effect.final:
                    break
        return effects

    def error_for(self, call: Call) -> str | None:
        """Return the error code the solving service answers this call with, if any."""
        error = self.answer(ErrorAnswer, call)
        return error.code if error is not None else None

    def fate_of(self, call: Call) -> Fate | None:
        """Return what will become of the task that this call submits, if it will not be solved."""
        fate: Fate | None = self._struck(Fate, call)
        return fate

    def answer(self, kind: type[_T], call: Call) -> _T | None:
        """Return the server's own answer of that kind to this call, if one is switched on."""
        answer: _T | None = self._struck(kind, call)
        return answer

    def _struck(self, kind: Any, call: Call) -> Any:
        struck = (f for f in self.faults if isinstance(f.effect, kind) and f.strikes(call, self.rng))
        return next((fault.effect for fault in struck), None)

    def _check(self, fault: Fault) -> None:
        is_answer = not isinstance(fault.effect, TransportEffect)
        if is_answer and not isinstance(fault.effect, self.answers):
            raise DescriptionProblem(f"this server has no {_kind_of(fault.effect)}; it is another one's answer")
        if fault.filter.form and not (is_answer or self.forms):
            raise DescriptionProblem("'form' limits faults of the site, and answers of the provider")


def _kind_of(effect: Effect) -> str:
    return next(name for name, kind in KINDS.items() if isinstance(effect, kind))


@dataclass(frozen=True, slots=True)
class Faults:
    """The fault plans of all servers."""

    provider: FaultPlan
    vendor: FaultPlan
    site: FaultPlan

    @classmethod
    def none(cls, rng: Random) -> Faults:
        """Return plans without any fault; `rng` decides about those that strike a share of calls."""
        return cls(
            FaultPlan(rng, answers=ProviderAnswer),
            FaultPlan(rng, answers=VendorAnswer),
            FaultPlan(rng, answers=SiteAnswer, forms=True),
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the faults that strike this call have their effect."""
        call = Call(scope["path"], scope["method"], form=scope["path"].strip("/"))
        app = self.app
        for effect in reversed(self.plan.effects_on(call)):
            app = effect.wrap(app)
        await app(scope, receive, send)
