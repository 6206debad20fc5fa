"""What a team says about one of its forms, and what the opened page says about its challenge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.body import Scalar, leaves
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.probing import ProbePolicy
from pytest_captcha_qa.model.url import Url

LOW_SCORE = "low-score"
"""The code of a verdict that refuses a token for its score and nothing else."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_RATE_LIMIT = 429
_SAYS_SUCCESS = Rule(json=MappingProxyType({"success": True}))
_ANYTHING = Rule()


class EnvKind(StrEnum):
    """How much care an environment needs."""

    DEMO = "demo"
    QA = "qa"
    STAGING = "staging"
    PRODUCTION = "production"


class Effect(StrEnum):
    """What a successful submit causes on the site."""

    NONE = "none"
    ACCOUNT = "account"
    MAIL = "mail"
    SMS = "sms"
    LOCKOUT = "lockout"
    PAYMENT = "payment"


class VerifyVia(StrEnum):
    """Who consumes the token and thereby says whether it was valid (architecture, decision 4)."""

    FORM = "form"
    LOOKUP = "lookup"
    ENDPOINT = "endpoint"
    SITEVERIFY = "siteverify"

    @property
    def submits_form(self) -> bool:
        """Whether the form itself is posted; otherwise the verifier consumes the token."""
        return self in (VerifyVia.FORM, VerifyVia.LOOKUP)


class ScorePolicy(StrEnum):
    """What a score below the wanted one says of a form: a refusal like any other, or nothing."""

    REQUIRE = "require"
    OBSERVE = "observe"


@dataclass(frozen=True, slots=True)
class VerifySpec:
    """How the token's verdict is read.

    `url` (lookup, endpoint) must lie on a granted origin; `secret_env` names the variable of the vendor secret for
    siteverify, `url_env` the one with a stand-in's address. `success` and `refused` judge the answer of lookup and
    endpoint; by default JSON `success` must be true.
    """

    via: VerifyVia = VerifyVia.FORM
    url: str | None = None
    secret_env: str | None = None
    secret_file: str | None = None
    url_env: str | None = None
    success: Rule = _SAYS_SUCCESS
    refused: Rule | None = None


@dataclass(frozen=True, slots=True)
class WidgetSpec:
    """Which of several widgets on the page is meant: a CSS selector."""

    selector: str


class Encoding(StrEnum):
    """How a described submit writes its body."""

    FORM = "form"
    JSON = "json"
    MULTIPART = "multipart"


@dataclass(frozen=True, slots=True)
class CsrfSpec:
    """Where the opened page holds the value that a header of the submit repeats; one of the places is set.

    `cookie`: a cookie, whose value is URL-decoded; `meta`: the content of a `<meta name=...>`; `field`: the value of an
    input.
    """

    header: str
    cookie: str | None = None
    meta: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class SubmitSpec:
    """What a script of the page would send, for pages that are no plain HTML form.

    `body`: nested for JSON, flat otherwise; its texts are templates. `token_at`: for each part of the solution the
    dotted path (JSON) or field that takes it; empty: the names that the type's own fields have.
    """

    url: str
    method: str = "POST"
    encoding: Encoding = Encoding.JSON
    body: Mapping[str, Any] = field(default_factory=dict)
    token_at: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    csrf: CsrfSpec | None = None

    @property
    def values(self) -> dict[str, Scalar]:
        """The values of the body, by dotted path."""
        return dict(leaves(self.body))


@dataclass(frozen=True, slots=True)
class ConfirmSpec:
    """What shows that an accepted submit had its effect: an address and a rule on its answer, or a team's function.

    It is asked again and again for `within` seconds.
    """

    url: str | None = None
    success: Rule = _ANYTHING
    function: str | None = None
    within: float = 10.0


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """The same form as another visitor sees it: headers of the page and of the submit."""

    id: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FormSpec:
    """One protected form as the configuration describes it.

    `fields`: templates by field or, with `submit`, by dotted path, empty where a variable holds the value; `files`:
    paths by field; `token_field`: the field that takes the token, where it is not the type's own; `spacing`: least
    seconds between two submits of all workers; `prepare`, `cleanup`: the team's functions, as `package.module:name`.
    `variant` and its `headers` are set in a form that `variant_forms` made; `probes`: what the team has decided about
    conformance probes.
    """

    slug: str
    path: str
    type: CaptchaType
    success: Rule
    fields: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    refused: Rule | None = None
    verify: VerifySpec = VerifySpec()
    widget: WidgetSpec | None = None
    sitekey: str | None = None
    action: str | None = None
    min_score: float | None = None
    score_policy: ScorePolicy = ScorePolicy.REQUIRE
    cdata: str | None = None
    effects: tuple[Effect, ...] = ()
    owner: str | None = None
    tags: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    token_field: str | None = None
    submit: SubmitSpec | None = None
    prepare: str | None = None
    confirm: ConfirmSpec | None = None
    cleanup: str | None = None
    spacing: float = 0.0
    variants: tuple[VariantSpec, ...] = ()
    variant: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    probes: ProbePolicy = field(default_factory=ProbePolicy)

    @property
    def name(self) -> str:
        """What a test calls it: the slug, or `slug:variant`."""
        return f"{self.slug}:{self.variant}" if self.variant else self.slug

    @property
    def templates(self) -> dict[str, str]:
        """Everything that names may be filled into, by field or dotted path: the texts of the body, then `fields`."""
        body = self.submit.values if self.submit else {}
        return {path: text for path, text in body.items() if isinstance(text, str)} | dict(self.fields)

    def variant_forms(self) -> list[FormSpec]:
        """Return the form once for each of its variants."""
        return [replace(self, variant=variant.id, headers=variant.headers, variants=()) for variant in self.variants]

    def accepts(self, answer: Answer) -> bool:
        """Return whether the site took the submit for a success."""
        return self.success.matches(answer)

    def refuses(self, answer: Answer) -> bool:
        """Return whether the answer is a CAPTCHA refusal.

        Without a `refused` rule every answer below 500 that is no success counts as one, except a rate limit's.
        """
        if self.accepts(answer):
            return False
        if self.refused is not None:
            return self.refused.matches(answer)
        return answer.status < 500 and answer.status != _RATE_LIMIT


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a granted page shows and the type needs; all that a provider is ever told (R0.5).

    `data` holds page-specific values such as GeeTest's `gt` and `challenge`; `min_score` comes from configuration.
    """

    type: CaptchaType
    sitekey: str
    page: Url
    action: str | None = None
    cdata: str | None = None
    min_score: float | None = None
    data: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
