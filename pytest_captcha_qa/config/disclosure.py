"""Everything that leaves the network for one form, in words (R0.5, R8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import FormSpec, VerifyVia
from pytest_captcha_qa.scope import TokenSource

# What a provider is told beside the type (R0.5), per type; as the page shows it unless configured. `page`: its URL.
TOLD: dict[CaptchaType, tuple[str, ...]] = {
    CaptchaType.RECAPTCHA_V2: ("sitekey", "page"),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: ("sitekey", "page"),
    CaptchaType.RECAPTCHA_V3: ("sitekey", "action", "min_score", "page"),
    CaptchaType.RECAPTCHA_ENTERPRISE: ("sitekey", "kind of key", "action", "min_score", "page"),
    CaptchaType.TURNSTILE: ("sitekey", "action", "cdata", "page"),
    CaptchaType.HCAPTCHA: ("sitekey", "page"),
    CaptchaType.GEETEST_V3: ("gt", "challenge", "page"),
    CaptchaType.GEETEST_V4: ("captcha_id", "page"),
    CaptchaType.FRIENDLY_V2: ("sitekey", "page"),
    CaptchaType.ALTCHA: ("the ALTCHA challenge", "page"),
    CaptchaType.IMAGE: ("the bytes of the image",),
}

# What the widget of a type fetches from the site beside its page.
FETCHED: dict[CaptchaType, str | None] = {
    CaptchaType.RECAPTCHA_V2: None,
    CaptchaType.RECAPTCHA_V2_INVISIBLE: None,
    CaptchaType.RECAPTCHA_V3: None,
    CaptchaType.RECAPTCHA_ENTERPRISE: None,
    CaptchaType.TURNSTILE: None,
    CaptchaType.HCAPTCHA: None,
    CaptchaType.GEETEST_V3: None,
    CaptchaType.GEETEST_V4: None,
    CaptchaType.FRIENDLY_V2: None,
    CaptchaType.ALTCHA: "challenge",
    CaptchaType.IMAGE: "image",
}

_TOLD_BY: dict[TokenSource, str | None] = {
    TokenSource.LIVE: None,
    TokenSource.TESTKEYS: "nothing: the vendor's official test keys need no solving",
    TokenSource.SANDBOX: None,
    TokenSource.STANDIN: None,
}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What is sent for one form, in words: to the provider, to the site, and to whoever verifies."""

    form: str
    page: str
    solver: str
    provider: tuple[str, ...]
    site: tuple[str, ...]
    verify: str


def disclosure(environment: EnvironmentConfig, form: FormSpec) -> Disclosure:
    """Return what is sent for one form of an environment; nothing is sent to find out."""
    return Disclosure(
        form=form.slug,
        page=_page(environment, form),
        solver=environment.account.provider,
        provider=tuple(_to_provider(environment, form)),
        site=tuple(_to_site(environment, form)),
        verify=_to_verifier(environment, form),
    )


def _page(environment: EnvironmentConfig, form: FormSpec) -> str:
    try:
        return environment.page_of(form.slug).without_query
    except ConfigError:
        return f"{form.path.partition('?')[0]} (its origin is not known yet)"


def _to_provider(environment: EnvironmentConfig, form: FormSpec) -> Iterator[str]:
    account = environment.account
    nothing = _TOLD_BY[account.source]
    if nothing is not None:
        yield nothing
        return
    yield f"type {form.type}"
    for name in TOLD[form.type]:
        configured = getattr(form, name, None)
        if name == "sitekey" and configured:
            yield f"sitekey as the page shows it (expected: {configured})"
        elif name == "page":
            yield "the page's URL without its query"
        elif name == "min_score":
            yield from () if configured is None else (f"min_score {configured:g}",)
        else:
            yield f"{name} {configured}" if configured else f"{name} as the page shows it"
    if account.key is not None:
        yield f"the account's key ({account.key.named})"
    if account.solver_proxy is not None:
        yield f"the proxy to solve through, with its password ({account.solver_proxy.named}), where the type allows one"
    if account.report:
        yield "afterwards whether the token was accepted"


def _to_site(environment: EnvironmentConfig, form: FormSpec) -> Iterator[str]:
    rules = environment.rules()
    if any(rules.needs_proof(pattern.origin) for pattern in environment.origins):
        yield "GET of the ownership proof"
    yield f"GET {form.path.partition('?')[0]}"
    if FETCHED[form.type] is not None:
        yield f"GET of the {FETCHED[form.type]}, unless the page itself holds it"
    if form.prepare is not None:
        yield f"before the page: whatever {form.prepare} asks of it"
    if form.verify.via.submits_form:
        yield _submitted(form)
    for variant in form.variants:
        yield f"as {form.slug}:{variant.id} once more with the headers {', '.join(variant.headers)}"
    if form.confirm is not None:
        how = f"GET {form.confirm.url.partition('?')[0]}" if form.confirm.url else f"what {form.confirm.function} asks"
        yield f"after an accepted submit: {how}, for {form.confirm.within:g} s at most"
    yield "every request carries the run's id and our User-Agent"
    http = environment.http
    for what, reference in (
        ("basic auth", http.basic_auth_ref),
        ("headers", http.headers_ref),
        ("cookies", http.cookie_ref),
    ):
        if reference is not None:
            yield f"{what} from {reference.named}"


def _submitted(form: FormSpec) -> str:
    """Return what the submit carries."""
    names = ", ".join(dict.fromkeys([*form.templates, *form.files]))
    fields = f"fields {names}; " if names else ""
    if form.submit is None:
        return f"the form is posted: {fields}its hidden fields; the token"
    submit = form.submit
    csrf = f"; the page's CSRF value in {submit.csrf.header}" if submit.csrf else ""
    return f"{submit.method} {submit.url.partition('?')[0]} ({submit.encoding}): {fields}the token{csrf}"


def _to_verifier(environment: EnvironmentConfig, form: FormSpec) -> str:
    references = environment.verify[form.slug]
    secret = references.secret.named if references.secret else ""
    vendor = f"the stand-in named by {references.url.named}" if references.url else "the vendor's siteverify"
    url = (form.verify.url or "").partition("?")[0]
    return {
        VerifyVia.FORM: "nobody else is asked; the form's own answer counts",
        VerifyVia.LOOKUP: f"GET {url}, after the form was posted",
        VerifyVia.ENDPOINT: f"the token goes to {url}; the form is not posted",
        VerifyVia.SITEVERIFY: f"token and site secret ({secret}) go to {vendor}; the form is not posted",
    }[form.verify.via]
