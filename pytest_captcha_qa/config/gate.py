"""The table `[gate]`: what a run must show; below it, rules for types, forms and projects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_captcha_qa.config.document import Document
from pytest_captcha_qa.config.problems import nearest, quoted
from pytest_captcha_qa.config.table import Number, Table, Text
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.gate import ALPHA, MIN_EFFECT, GateRules, Limits, Rule, Rules
from pytest_captcha_qa.model.metrics import TIMES

_DURATION = re.compile(r"([1-9]\d{0,3})([hdw])\Z", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DEFAULT_PROJECT = "default"
_RULES = tuple(rule.value for rule in Rule)
_TYPES = tuple(captcha.value for captcha in CaptchaType)
_TIMES = tuple(metric.name for metric in TIMES)


def duration(text: str) -> str:
    """Return a time span such as `12h`, `3d` or `2w`.

    Raises:
        ValueError: it is none.
    """
    if not _DURATION.match(text):
        raise ValueError('must be a whole number with h, d or w, such as "3d"')
    return text


def rule_name(text: str) -> str:
    """Return the name of a rule.

    Raises:
        ValueError: there is no such rule.
    """
    if text not in _RULES:
        raise ValueError(f"{quoted('', text)} is no rule of the gate{nearest(text, _RULES)}")
    return text


def required_rules(value: object) -> object:
    """Return the rules that `require_data` means: all with `true`, none with `false`, else those listed.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(value, bool):
        return tuple(Rule) if value else ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError('must be true, or a list of rules, such as ["min_verify_rate"]')
    return tuple(Rule(rule_name(name)) for name in value)


Share = Annotated[Number, Field(ge=0, le=1)]
Seconds = dict[str, Any]


class RegressionTable(Table):
    """When a release counts as worse than its baseline."""

    alpha: Annotated[Number, Field(gt=0, le=0.5)] = ALPHA
    min_effect: Annotated[Number, Field(gt=0, le=10)] = MIN_EFFECT


class RulesTable(Table):
    """Rules for one captcha type, form or project."""

    min_verify_rate: Share | None = None
    max_age_of_pass: Annotated[Text, AfterValidator(duration)] | None = None
    max_resolve_share: Share | None = None
    max_p90: Seconds = Field(default_factory=dict)
    warn_p90: Seconds = Field(default_factory=dict)
    regression: RegressionTable | None = None
    require_data: Annotated[tuple[Rule, ...] | None, BeforeValidator(required_rules)] = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what is no time, no captcha type or no number of seconds."""
        yield from super().faults()
        for key in (Rule.MAX_P90, Rule.WARN_P90):
            yield from _limit_faults(key, getattr(self, key))

    def rules(self) -> Rules:
        """Return the rules as the gate knows them."""
        age, regression = self.max_age_of_pass, self.regression
        return Rules(
            min_verify_rate=self.min_verify_rate,
            max_age_of_pass=_span(age) if age is not None else None,
            max_resolve_share=self.max_resolve_share,
            max_p90=_frozen(self.max_p90),
            warn_p90=_frozen(self.warn_p90),
            alpha=regression.alpha if regression is not None else None,
            min_effect=regression.min_effect if regression is not None else None,
            require_data=None if self.require_data is None else frozenset(self.require_data),
        )


class GateTable(RulesTable):
    """The gate. What stands in `types`, `projects` and `forms` goes before what stands here, the last of them first."""

    below: ClassVar[tuple[str, ...]] = ("types", "projects", "forms")

    min_coverage: Share | None = None
    types: dict[str, RulesTable] = Field(default_factory=dict)
    projects: dict[str, RulesTable] = Field(default_factory=dict)
    forms: dict[str, RulesTable] = Field(default_factory=dict)

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what is wrong here and in the tables below."""
        yield from super().faults()
        for section in self.below:
            tables: Mapping[str, RulesTable] = getattr(self, section)
            for name, table in tables.items():
                yield from ((f"{section}.{name}.{key}", message) for key, message in table.faults())

    def name_faults(self, forms: Iterable[str], projects: Iterable[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield (place, what is wrong) for tables named after something that the file does not have."""
        known = {"types": ("captcha type", {*_TYPES}), "forms": ("form", {*forms})}
        known["projects"] = ("project", {*projects, _DEFAULT_PROJECT})
        for section, (kind, names) in known.items():
            for name in getattr(self, section):
                if name not in names:
                    yield (section, name), f"{quoted('', name)} is no {kind}{nearest(name, names)}"

    def gate(self) -> GateRules:
        """Return the rules of every level."""
        lower = {section: {name: t.rules() for name, t in getattr(self, section).items()} for section in self.below}
        return GateRules(all=self.rules(), min_coverage=self.min_coverage, **lower)


def line_of(
    document: Document,
    rule: tuple[str, str | None],
    *,
    form: str | None = None,
    project: str | None = None,
    captcha: str | None = None,
) -> int:
    """Return the line where a rule (and the time it limits) stands for these, the table's or 1 where none is known."""
    name, time = rule
    tables = [("forms", form), ("projects", project), ("types", captcha)]
    places = [("gate", section, key) for section, key in tables if key is not None] + [("gate",)]
    keys = [(name, time), (name,)] if time is not None else [(name,)]
    paths = [(*place, *key) for key in keys for place in places]
    held = next((path for path in paths if document.holds(path)), ("gate",))
    return document.line(held) or 1


def _limit_faults(key: str, limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for time, limit in limits.items():
        place = f"{key}.{time}"
        if time not in _TIMES:
            yield place, f"{quoted('', time)} is no time that can be limited{nearest(time, _TIMES)}"
        elif isinstance(limit, Mapping):
            for captcha, seconds in limit.items():
                if captcha not in _TYPES:
                    yield (
                        f"{place}.{captcha}",
                        f"{quoted('', captcha)} is no captcha type{nearest(captcha, _TYPES)}",
                    )
                elif not _is_seconds(seconds):
                    yield f"{place}.{captcha}", _no_seconds(seconds)
        elif not _is_seconds(limit):
            yield place, _no_seconds(limit)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _no_seconds(value: object) -> str:
    return f"must be seconds, more than 0, not {quoted('', value)}; or a table of them by captcha type"


def _frozen(limits: Mapping[str, Any]) -> Limits:
    return MappingProxyType(dict(limits))


def _span(text: str) -> timedelta:
    found = _DURATION.match(text)
    assert found is not None, "`duration` refuses it"
    return int(found[1]) * _UNITS[found[2]]
