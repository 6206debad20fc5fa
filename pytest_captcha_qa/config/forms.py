"""The table `[forms.SLUG]`: one protected form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.flows import (
    Confirm,
    Function,
    Rate,
    VariantTable,
    field_variables,
    file_paths,
    seconds_between,
    variant_faults,
)
from pytest_captcha_qa.config.policy import PolicyTable
from pytest_captcha_qa.config.rules import RuleTable, VerifyTable, WidgetTable, page_path
from pytest_captcha_qa.config.submits import SubmitTable, field_value
from pytest_captcha_qa.config.table import Number, Table, Text, Yes
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Effect, Encoding, FormSpec, ScorePolicy

_HERE = Path()

# Which of these keys mean something for a type: what a widget may carry (reference/provider-protocol.md, per type), and
# `token_field` for types whose solution is a single text, `sitekey` for those that have one.
TYPE_KEYS: dict[CaptchaType, frozenset[str]] = {
    CaptchaType.RECAPTCHA_V2: frozenset({"sitekey", "token_field"}),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: frozenset({"sitekey", "token_field"}),
    CaptchaType.RECAPTCHA_V3: frozenset({"sitekey", "token_field", "action", "min_score", "score_policy"}),
    CaptchaType.RECAPTCHA_ENTERPRISE: frozenset({"sitekey", "token_field", "action", "min_score", "score_policy"}),
    CaptchaType.TURNSTILE: frozenset({"sitekey", "token_field", "action", "cdata"}),
    CaptchaType.HCAPTCHA: frozenset({"sitekey", "token_field"}),
    CaptchaType.GEETEST_V3: frozenset({"sitekey"}),
    CaptchaType.GEETEST_V4: frozenset({"sitekey"}),
    CaptchaType.FRIENDLY_V2: frozenset({"sitekey", "token_field"}),
    CaptchaType.ALTCHA: frozenset({"token_field"}),
    CaptchaType.IMAGE: frozenset({"token_field"}),
}


class FormTable(Table):
    """One form; a table of an environment overrides single keys of the shared one."""

    path: Annotated[str, AfterValidator(page_path)] = Field(description="the page of the form, such as /signup")
    type: CaptchaType = Field(description=f"one of {', '.join(CaptchaType)}")
    success: RuleTable = Field(description="what the site answers when all is well, such as { status = 303 }")
    fields: dict[str, Annotated[Any, AfterValidator(field_value)]] = Field(default_factory=dict)
    refused: RuleTable | None = None
    verify: VerifyTable = VerifyTable()
    widget: WidgetTable | None = None
    sitekey: Text | None = None
    action: Text | None = None
    min_score: Annotated[Number, Field(ge=0.1, le=0.9)] | None = None
    score_policy: ScorePolicy = ScorePolicy.REQUIRE
    cdata: Text | None = None
    token_field: Text | None = None
    submit: SubmitTable | None = None
    prepare: Function | None = None
    confirm: Confirm | None = None
    cleanup: Function | None = None
    rate: Rate | None = None
    variants: tuple[VariantTable, ...] = ()
    effects: tuple[Effect, ...] = ()
    owner: Text | None = None
    tags: tuple[Text, ...] = ()
    policy: PolicyTable = PolicyTable()
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
        for key, message in self.policy.faults():
            yield f"policy.{key}", message
        if self.policy.payment_test_mode and Effect.PAYMENT not in self.effects:
            yield "policy.payment_test_mode", "means nothing: effects does not say that a success is a payment"
        yield from variant_faults(self.variants)
        yield from self._submit_faults()
        yield from self._effect_faults()

    def _submit_faults(self) -> Iterable[tuple[str, str]]:
        if self.submit is None:
            return
        for key, message in self.submit.faults():
            yield f"submit.{key}" if key else "submit", message
        for path in self.fields:
            yield from self.submit.misplaced([path], f"fields.{path}")
        if file_paths(self.fields) and self.submit.encoding is not Encoding.MULTIPART:
            yield "fields", "names a file, which only encoding = 'multipart' can carry"
        if self.token_field is not None and self.submit.token_at is not None:
            yield "token_field", "and submit.token_at say the same thing; keep one of them"
        if isinstance(self.submit.token_at, str) and "token_field" not in TYPE_KEYS[self.type]:
            message = f"is one path, and a {self.type} solution has several parts; write {{ part = path }}"
            yield "submit.token_at", message

    def _effect_faults(self) -> Iterable[tuple[str, str]]:
        if self.confirm is not None and not self.verify.via.submits_form:
            yield "confirm", f"means nothing with verify.via = {str(self.verify.via)!r}: the form is not submitted"
        if self.cleanup is not None and not set(self.effects) - {Effect.NONE}:
            yield "cleanup", "has nothing to remove: effects names nothing that a success leaves behind"

    def spec(self, slug: str, folder: Path = _HERE) -> FormSpec:
        """Return the form as the engine knows it; paths of files start at `folder`."""
        files = {name: str(folder / path) for name, path in file_paths(self.fields).items()}
        texts = self.fields | dict.fromkeys(field_variables(self.fields), "")
        return FormSpec(
            slug=slug,
            path=self.path,
            type=self.type,
            success=self.success.rule(),
            fields=MappingProxyType({name: text for name, text in texts.items() if name not in files}),
            refused=self.refused.rule() if self.refused else None,
            verify=self.verify.spec(),
            widget=self.widget.widget() if self.widget else None,
            sitekey=self.sitekey,
            action=self.action,
            min_score=self.min_score,
            score_policy=self.score_policy,
            cdata=self.cdata,
            effects=self.effects,
            owner=self.owner,
            tags=self.tags,
            files=MappingProxyType(files),
            token_field=self.token_field,
            submit=self.submit.spec() if self.submit else None,
            prepare=self.prepare,
            confirm=self.confirm.spec() if self.confirm else None,
            cleanup=self.cleanup,
            spacing=seconds_between(self.rate),
            variants=tuple(variant.variant() for variant in self.variants),
            probes=self.policy.policy(),
        )


_WIDGET_KEYS: frozenset[str] = frozenset[str]().union(*TYPE_KEYS.values())
