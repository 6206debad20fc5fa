"""The table `[forms.SLUG]`: one protected form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.rules import RuleTable, Template, VerifyTable, WidgetTable, page_path
from pytest_captcha_qa.config.table import Number, Table, Text, Yes
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Effect, FormSpec

_PLAIN = " (a form of plain HTML needs none)"
_LATER = {
    "token_field": _PLAIN,
    "submit": _PLAIN,
    "prepare": "",
    "rate": "",
    "variants": "",
    "confirm": "",
    "cleanup": "",
    "score_policy": "",
}

# Which of the keys a widget may carry mean something for a type; reference/provider-protocol.md, per type.
TYPE_KEYS: dict[CaptchaType, frozenset[str]] = {
    CaptchaType.RECAPTCHA_V2: frozenset(),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: frozenset(),
    CaptchaType.RECAPTCHA_V3: frozenset({"action", "min_score"}),
    CaptchaType.RECAPTCHA_ENTERPRISE: frozenset({"action", "min_score"}),
    CaptchaType.TURNSTILE: frozenset({"action", "cdata"}),
    CaptchaType.HCAPTCHA: frozenset(),
    CaptchaType.GEETEST_V3: frozenset(),
    CaptchaType.GEETEST_V4: frozenset(),
    CaptchaType.FRIENDLY_V2: frozenset(),
    CaptchaType.ALTCHA: frozenset(),
    CaptchaType.IMAGE: frozenset(),
}


class FormTable(Table):
    """One form; a table of an environment overrides single keys of the shared one."""

    later: ClassVar[Mapping[str, str]] = _LATER

    path: Annotated[str, AfterValidator(page_path)] = Field(description="the page of the form, such as /signup")
    type: CaptchaType = Field(description=f"one of {', '.join(CaptchaType)}")
    success: RuleTable = Field(description="what the site answers when all is well, such as { status = 303 }")
    fields: dict[str, Template] = Field(default_factory=dict)
    refused: RuleTable | None = None
    verify: VerifyTable = VerifyTable()
    widget: WidgetTable | None = None
    sitekey: Text | None = None
    action: Text | None = None
    min_score: Annotated[Number, Field(ge=0.1, le=0.9)] | None = None
    cdata: Text | None = None
    effects: tuple[Effect, ...] = ()
    owner: Text | None = None
    tags: tuple[Text, ...] = ()
    enabled: Yes = True

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield keys the type has no use for, and values that contradict each other."""
        yield from super().faults()
        for key in sorted(_WIDGET_KEYS & self.model_fields_set - TYPE_KEYS[self.type]):
            users = ", ".join(kind for kind, keys in TYPE_KEYS.items() if key in keys)
            yield key, f"means nothing for {self.type}; it is for {users}"
        if self.refused is not None and self.refused == self.success:
            yield "refused", "is the same as success; an answer cannot be both"
        if Effect.NONE in self.effects and len(self.effects) > 1:
            yield "effects", "says none and something else"
        for key, message in self.verify.faults():
            yield f"verify.{key}", message

    def spec(self, slug: str) -> FormSpec:
        """Return the form as the engine knows it."""
        return FormSpec(
            slug=slug,
            path=self.path,
            type=self.type,
            success=self.success.rule(),
            fields=MappingProxyType(dict(self.fields)),
            refused=self.refused.rule() if self.refused else None,
            verify=self.verify.spec(),
            widget=self.widget.widget() if self.widget else None,
            sitekey=self.sitekey,
            action=self.action,
            min_score=self.min_score,
            cdata=self.cdata,
            effects=self.effects,
            owner=self.owner,
            tags=self.tags,
        )


_WIDGET_KEYS: frozenset[str] = frozenset[str]().union(*TYPE_KEYS.values())
