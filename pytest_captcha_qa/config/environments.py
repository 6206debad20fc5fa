"""The table `[env.NAME]` and, below it, `http`, `identity` and the forms of this environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_captcha_qa.config.accounts import AccountTable, ProviderName
from pytest_captcha_qa.config.forms import FormTable
from pytest_captcha_qa.config.rules import site_path
from pytest_captcha_qa.config.table import Number, Table, Text, VariableName, Whole
from pytest_captcha_qa.model.captcha import CaptchaType, facts, is_test_sitekey
from pytest_captcha_qa.model.form import EnvKind, VerifyVia
from pytest_captcha_qa.model.policy import KeyTimes, OnStoreLoss, Timeouts
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused
from pytest_captcha_qa.model.waiver import MOST_DAYS
from pytest_captcha_qa.scope import OriginPattern

_ONE_PEM = ": put certificate and key into one PEM file and name it with client_cert_file"
_NEVER = "in an environment of kind production it is always a mistake"
_STAND_INS = frozenset({ProviderName.SANDBOX, ProviderName.STANDIN})


def origin(text: str) -> str:
    """Return an origin or a pattern of origins.

    Raises:
        ValueError: it is not written canonically.
    """
    try:
        OriginPattern.parse(text)
    except UrlRefused as refused:
        raise ValueError(f"is no usable origin: {refused}") from None
    return text


def base(text: str) -> str:
    """Return the address of a site.

    Raises:
        ValueError: it is not canonical or has a query.
    """
    try:
        url = Url.parse(text)
    except UrlRefused as refused:
        raise ValueError(f"is no usable address: {refused}") from None
    if url.query:
        raise ValueError("must not have a query")
    return text


def domain_name(text: str) -> str:
    """Return the name of a domain.

    Raises:
        ValueError: it is none.
    """
    try:
        host = Origin.parse(f"https://{text}").host
    except UrlRefused as refused:
        raise ValueError(f"is no usable domain: {refused}") from None
    if host != text or "." not in text:
        raise ValueError("must be the name of a domain, such as qa-mail.shop.example")
    return text


def _not_a_single_text(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f'must be a list: ["{value}"]')
    return value


Origins = Annotated[
    tuple[Annotated[str, AfterValidator(origin)], ...],
    BeforeValidator(_not_a_single_text),
    Field(min_length=1),
]


class HttpTable(Table):
    """How the environment is reached; sent to its own origins only."""

    later: ClassVar[Mapping[str, str]] = {"client_key_file": _ONE_PEM}
    twins: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("basic_auth_env", "basic_auth_file"),
        ("headers_env", "headers_file"),
        ("cookie_env", "cookie_file"),
        ("proxy_env", "proxy_file"),
    )

    basic_auth_env: VariableName | None = None
    basic_auth_file: Text | None = None
    headers_env: VariableName | None = None
    headers_file: Text | None = None
    cookie_env: VariableName | None = None
    cookie_file: Text | None = None
    proxy_env: VariableName | None = None
    proxy_file: Text | None = None
    client_cert_file: Text | None = None
    ca_file: Text | None = None


class IdentityTable(Table):
    """Where synthetic people get their mail."""

    domain: Annotated[str, AfterValidator(domain_name)] | None = None


class ReleaseFromTable(Table):
    """Where the site says which release it is."""

    path: Annotated[str, AfterValidator(site_path)] = Field(description="a path on the site, such as /version")
    json_: Text | None = Field(default=None, alias="json")
    header: Text | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield whether it says exactly one of the two places."""
        if (self.json_ is None) == (self.header is None):
            yield "", "needs one of json (a dotted key of the answer) and header (its name)"


class EnvTable(Table):
    """One environment after `extends` and the shared forms were merged into it."""

    later: ClassVar[Mapping[str, str]] = {"gate": "; write [gate], it holds for every environment", "probes": ""}
    twins: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("base_url", "base_url_env", "base_url_file"),
        ("store_env", "store_file"),
        ("release_env", "release_file", "release_from"),
    )

    kind: EnvKind = Field(description=f"one of {', '.join(EnvKind)}")
    origins: Origins | None = None
    base_url: Annotated[str, AfterValidator(base)] | None = None
    base_url_env: VariableName | None = None
    base_url_file: Text | None = None
    account: Text = Field(description="the name of a table [accounts.NAME]")
    store_env: VariableName | None = None
    store_file: Text | None = None
    release_env: VariableName | None = None
    release_file: Text | None = None
    release_from: ReleaseFromTable | None = None
    retry_interval: Number = 30.0
    on_store_loss: OnStoreLoss = OnStoreLoss.CONTINUE
    waivers_max_days: Whole = MOST_DAYS
    http: HttpTable = HttpTable()
    identity: IdentityTable = IdentityTable()
    forms: dict[str, FormTable] = Field(default_factory=dict)

    @property
    def patterns(self) -> tuple[OriginPattern, ...]:
        """The origins, parsed."""
        return tuple(map(OriginPattern.parse, self.origins or ()))

    @property
    def names_base_url(self) -> bool:
        """Whether a variable or file holds the address."""
        return self.base_url_env is not None or self.base_url_file is not None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what contradicts or lacks something within the environment, its tables and its forms."""
        yield from super().faults()
        yield from self._address_faults()
        yield from self._time_faults()
        below: dict[str, Table] = {"http": self.http}
        below |= {"release_from": self.release_from} if self.release_from else {}
        below |= {f"forms.{slug}": form for slug, form in self.forms.items()}
        for place, table in below.items():
            for key, message in table.faults():
                yield f"{place}.{key}" if key else place, message
        yield from self._target_faults()

    def account_faults(self, account: AccountTable) -> Iterable[tuple[str, str]]:
        """Yield what does not fit the account the environment uses."""
        if self.kind is EnvKind.PRODUCTION:
            yield from self._test_key_faults(account)
        plays_vendor = account.provider in _STAND_INS
        for slug, form in self.forms.items():
            key, named = f"forms.{slug}.verify.url_env", form.verify.url_env or form.verify.url_file
            if named and not plays_vendor:
                yield key, f"is for a stand-in only; the vendor itself checks tokens of {account.provider}"
            if not named and plays_vendor and form.verify.via is VerifyVia.SITEVERIFY:
                yield (
                    key,
                    f"is missing: no vendor knows tokens of {account.provider}; "
                    "name the variable with the stand-in's address (or url_file)",
                )

    def _test_key_faults(self, account: AccountTable) -> Iterable[tuple[str, str]]:
        """Yield where official test keys would be used in production."""
        if account.provider is ProviderName.TESTKEYS:
            yield "account", f"uses the vendors' official test keys, which let everybody pass; {_NEVER}"
        for slug, form in self.forms.items():
            if form.sitekey and is_test_sitekey(form.sitekey):
                yield f"forms.{slug}.sitekey", f"is an official test key, which lets everybody pass; {_NEVER}"

    def _address_faults(self) -> Iterable[tuple[str, str]]:
        if self.origins is None:
            if self.kind is not EnvKind.DEMO or self.base_url is not None or self.names_base_url:
                yield "origins", 'is missing: the origins you own, such as ["https://staging.shop.example"]'
            return
        if self.base_url is not None and not lies_in(Url.parse(self.base_url), self.patterns):
            yield (
                "base_url",
                f"{Url.parse(self.base_url).origin} is not among origins ({', '.join(self.origins)})",
            )
        if self.base_url is None and not self.names_base_url and not single_origin(self.patterns):
            yield (
                "base_url",
                "is missing: say which of the origins the pages are on (base_url or base_url_env)",
            )

    def _time_faults(self) -> Iterable[tuple[str, str]]:
        found: dict[str, None] = {}
        for kind in sorted({form.type for form in self.forms.values()} or CaptchaType):
            times = KeyTimes.of(facts(kind), timeouts=Timeouts(), retry_interval=self.retry_interval)
            found.update(dict.fromkeys(times.problems()))
        if found:
            yield "retry_interval", f"cannot be {self.retry_interval:g}: {'; '.join(found)}"

    def _target_faults(self) -> Iterable[tuple[str, str]]:
        for slug, form in self.forms.items():
            for key, url in _targets(form):
                if not url.startswith("/") and self.origins and not lies_in(Url.parse(url), self.patterns):
                    yield (
                        f"forms.{slug}.{key}",
                        f"{Url.parse(url).origin} is not among origins; it is a target like the page itself",
                    )


def _targets(form: FormTable) -> Iterable[tuple[str, str]]:
    """Yield the addresses that a form asks beside its page."""
    if form.verify.url:
        yield "verify.url", form.verify.url
    if form.submit:
        yield "submit.url", form.submit.url
    if form.confirm and form.confirm.url:
        yield "confirm.url", form.confirm.url
    for key, addresses in (("siblings", form.policy.siblings), ("flow", form.policy.flow)):
        yield from ((f"policy.{key}.{place}", address) for place, address in enumerate(addresses))


class ProjectTable(Table):
    """A team or client that uses an account (R6)."""

    twins: ClassVar[tuple[tuple[str, ...], ...]] = (("proxy_env", "proxy_file"),)

    envs: Annotated[tuple[Text, ...], BeforeValidator(_not_a_single_text), Field(min_length=1)]
    max_in_flight: Whole | None = None
    account: Text | None = None
    proxy_env: VariableName | None = None
    proxy_file: Text | None = None


def lies_in(url: Url, patterns: Iterable[OriginPattern]) -> bool:
    """Return whether the URL's origin is one of those meant."""
    return any(pattern.matches(url.origin) for pattern in patterns)


def single_origin(patterns: tuple[OriginPattern, ...]) -> Origin | None:
    """Return the one concrete origin, None if there are several or any that a `*` stands for."""
    return patterns[0].origin if len(patterns) == 1 and not patterns[0].wildcard else None
