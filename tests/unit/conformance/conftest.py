"""Probes without a site: a form that judges drafts as a function says, on a bench of fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.place import Place
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.conformance.runner import Finding, run_family
from pytest_captcha_qa.conformance.trial import Lab, Trial
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Challenge, Effect, FormSpec
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.testing import BASE_URL, Bench

KEY = "0x4AAAAAAADnPIDROrmt1Wwj"
FLAWLESS = SeenPage(
    BASE_URL, 200, f'<div class="g-recaptcha" data-sitekey="{KEY}"></div>', sitekeys=(KEY,),
    scripts=("https://www.google.com/recaptcha/api.js",),
)  # fmt: skip


def token_of(draft: Draft) -> object:
    """Return what a sound backend reads as the token: the field of a POST in the form's own encoding, the last one."""
    values = [value for name, value in draft.pairs if name in draft.token_fields]
    return values[-1] if values and draft.method == "POST" else None


class Backend:
    """A sound backend: takes tokens that its provider made, each once. Subclasses have one flaw."""

    def __init__(self) -> None:
        self.used: set[object] = set()

    def accepts(self, draft: Draft) -> bool:
        token = token_of(draft)
        good = isinstance(token, str) and token.startswith("fake-token-of-") and token not in self.used
        self.used |= {token} if good else set()
        return good

    def __call__(self, draft: Draft) -> Answer:
        return testing.accepted(draft.target) if self.accepts(draft) else testing.refused(draft.target)


@dataclass
class FakeVendor:
    """Issues tokens and remembers what it will answer about each; `log` is what the backend has asked."""

    outcomes: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)

    def solution(self, challenge: Challenge, outcome: Mapping[str, Any], *, age: float = 0.0) -> Solution:
        made = testing.solution(f"scripted-{len(self.outcomes)}")
        self.outcomes[made.text] = (age, dict(outcome))
        return made

    def calls(self, after: int = 0, *, own: bool = True) -> list[Mapping[str, Any]]:
        return [*self.log[after:]]

    def mark(self, text: str) -> int:
        return len(self.log)


@dataclass
class Probing:
    """Runs probes against one form and remembers everything that was sent."""

    backend: Callable[[Draft], Answer]
    form: FormSpec
    page: SeenPage = FLAWLESS
    bench: Bench = field(default_factory=Bench)
    others: Sequence[FormSpec] = ()
    vendor: FakeVendor | None = None

    def __post_init__(self) -> None:
        self.bench.forms = [self.form, *self.others]
        self.bench.driver = testing.ScriptedDriver(judge=self.backend)
        place = Place(self.bench.limits, self.bench.stop, session="s", owner="me")
        self.lab = Lab(
            self.bench.services, lambda form, deadline: self.page, session="s", place=place, vendor=self.vendor
        )

    def trial(self) -> Trial:
        return Trial(self.lab, self.form, "test.py::test")

    def family(self, family: Family, *ids: str, least: Severity = Severity.MEDIUM) -> list[Finding]:
        probes = [p for p in CATALOGUE.values() if p.family is family and (not ids or p.id in ids)]
        return run_family(self.lab, self.form, family, probes, nodeid="test.py::test", least=least)

    def verdicts(self, family: Family, *ids: str) -> dict[str, ProbeVerdict]:
        return {finding.probe.id: finding.judged.verdict for finding in self.family(family, *ids)}

    @property
    def sent(self) -> list[Draft]:
        return [draft for opened in self.bench.driver.opened for draft in opened.sent]


@pytest.fixture
def backend() -> type[Backend]:
    return Backend


@pytest.fixture
def probing() -> Callable[..., Probing]:
    """`probing(backend, effects=..., page=...)` makes a form whose drafts the backend judges."""

    def make(backend: Callable[[Draft], Answer], *, page: SeenPage = FLAWLESS, **changes: object) -> Probing:
        others, vendor = changes.pop("others", ()), changes.pop("vendor", None)
        spec = testing.form(**({"effects": (Effect.ACCOUNT,), "fields": {"email": "{identity.email}"}} | changes))
        return Probing(backend, spec, page, others=others, vendor=vendor)  # type: ignore[arg-type]

    return make
