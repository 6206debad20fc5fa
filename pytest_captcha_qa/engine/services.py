"""Everything an attempt needs from the outside, as one value that wiring makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.extending import Extensions, NoExtensions
from pytest_captcha_qa.engine.obtaining import Obtainer
from pytest_captcha_qa.engine.ports import (
    Clock,
    EffectCheck,
    EvidenceSink,
    FormDriver,
    GrantSource,
    NoEffects,
    NoEvidence,
    Provider,
    RecordSink,
    Verifier,
)
from pytest_captcha_qa.engine.pulse import Pulse, ThreadPulse
from pytest_captcha_qa.engine.recording import About
from pytest_captcha_qa.errors import UnknownName
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.policy import Timeouts
from pytest_captcha_qa.model.url import Url


def no_values(form: FormSpec) -> Mapping[str, str]:
    """Return nothing: all the fields of the form stand in the configuration."""
    return {}


@dataclass(frozen=True)
class Services:
    """Everything an attempt needs from the outside, joined by wiring.

    `field_values` reads the fields of a form whose value stands outside the configuration; `retry_interval`, `lease`:
    seconds until a crashed attempt is repeated, and until its key is free for that; `reports`: whether the provider is
    told what became of its tokens.
    """

    about: About
    page_of: Callable[[FormSpec], Url]
    forms: Mapping[str, FormSpec]
    grants: GrantSource
    driver: FormDriver
    provider: Provider
    obtainer: Obtainer
    verifier_of: Callable[[FormSpec], Verifier]
    records: RecordSink
    clock: Clock
    emit: events.Emit
    identity: Callable[[], Identity]
    field_values: Callable[[FormSpec], Mapping[str, str]] = no_values
    retry_interval: float = 30.0
    lease: float = 30.0
    timeouts: Timeouts = field(default_factory=Timeouts)
    evidence: EvidenceSink = field(default_factory=NoEvidence)
    effects: EffectCheck = field(default_factory=NoEffects)
    extensions: Extensions = field(default_factory=NoExtensions)
    pulse: Pulse = field(default_factory=ThreadPulse)
    reports: bool = False

    def form(self, name: str) -> FormSpec:
        """Return the form of that name.

        Raises:
            UnknownName: there is none; it tells the nearest.
        """
        if name not in self.forms:
            raise UnknownName.among("form", name, self.forms, where=f"environment {self.about.env!r}")
        return self.forms[name]
