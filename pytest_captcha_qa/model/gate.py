"""What a gate demands: rules for the whole run, and for types, projects and forms of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from pytest_captcha_qa.model.captcha import CaptchaType

_T = TypeVar("_T")

ALPHA = 0.01
MIN_EFFECT = 0.15

Limits = Mapping[str, float | Mapping[str, float]]
"""By time the most seconds, or by time and captcha type."""


class GateMode(StrEnum):
    """What becomes of the gate's answer."""

    OFF = "off"
    REPORT = "report"
    ENFORCE = "enforce"


class Rule(StrEnum):
    """The rules, by the keys they have in the file."""

    MIN_VERIFY_RATE = "min_verify_rate"
    MIN_COVERAGE = "min_coverage"
    MAX_AGE_OF_PASS = "max_age_of_pass"
    MAX_RESOLVE_SHARE = "max_resolve_share"
    MAX_P90 = "max_p90"
    WARN_P90 = "warn_p90"
    REGRESSION = "regression"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one table says; None where it says nothing. `require_data`: rules for which too little data is a failure."""

    min_verify_rate: float | None = None
    max_age_of_pass: timedelta | None = None
    max_resolve_share: float | None = None
    max_p90: Limits = field(default_factory=dict)
    warn_p90: Limits = field(default_factory=dict)
    alpha: float | None = None
    min_effect: float | None = None
    require_data: frozenset[Rule] | None = None

    def over(self, lower: Rules) -> Rules:
        """Return `lower` with what is said here in its place; limits are replaced time by time."""
        return Rules(
            min_verify_rate=_first(self.min_verify_rate, lower.min_verify_rate),
            max_age_of_pass=_first(self.max_age_of_pass, lower.max_age_of_pass),
            max_resolve_share=_first(self.max_resolve_share, lower.max_resolve_share),
            max_p90={**lower.max_p90, **self.max_p90},
            warn_p90={**lower.warn_p90, **self.warn_p90},
            alpha=_first(self.alpha, lower.alpha),
            min_effect=_first(self.min_effect, lower.min_effect),
            require_data=_first(self.require_data, lower.require_data),
        )

    def limits(self, rule: Rule, captcha: str) -> Mapping[str, float]:
        """Return by time the most seconds for a captcha type, of `max_p90` or `warn_p90`."""
        given = self.max_p90 if rule is Rule.MAX_P90 else self.warn_p90
        flat = {time: limit.get(captcha) if isinstance(limit, Mapping) else limit for time, limit in given.items()}
        return {time: limit for time, limit in flat.items() if limit is not None}

    def requires(self, rule: Rule) -> bool:
        """Return whether too little data for that rule is a failure."""
        return rule in (self.require_data or ())


@dataclass(frozen=True, slots=True)
class GateRules:
    """The whole gate: rules for everything, and what types, projects and forms say instead.

    `min_coverage`: the least share of the selected forms that must be measured.
    """

    all: Rules = Rules()
    min_coverage: float | None = None
    types: Mapping[str, Rules] = field(default_factory=dict)
    projects: Mapping[str, Rules] = field(default_factory=dict)
    forms: Mapping[str, Rules] = field(default_factory=dict)

    @property
    def own_forms(self) -> frozenset[str]:
        """The forms with rules of their own: they are judged and compared alone."""
        return frozenset(self.forms)

    def of(self, captcha: CaptchaType | str, *, project: str = "default", form: str | None = None) -> Rules:
        """Return what holds for a captcha type in a project; for one form if it is judged alone."""
        found = self.all
        for tables, name in ((self.types, captcha), (self.projects, project), (self.forms, form)):
            if name is not None and name in tables:
                found = tables[name].over(found)
        return found


def _first(*values: _T | None) -> _T | None:
    return next((value for value in values if value is not None), None)
