"""The table `[accounts.NAME]`: a provider key with its slots, and what is true of each provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.table import Number, Table, Text, VariableName, Whole
from pytest_captcha_qa.config.variables import Reference, Variables
from pytest_captcha_qa.errors import ConfigError, MissingSecret
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.policy import AccountLimits
from pytest_captcha_qa.model.solver_proxy import SolverProxy
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.scope import TokenSource


class ProviderName(StrEnum):
    """Where an account's tokens come from."""

    CAPTCHAAI = "captchaai"
    CAPSKIP = "capskip"
    TWOCAPTCHA = "twocaptcha"
    TESTKEYS = "testkeys"
    SANDBOX = "sandbox"
    STANDIN = "standin"


_TEAM_PROVIDER = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")


def provider_name(text: str) -> str:
    """Return the provider of that name, or the name itself where only an extension can know it.

    Raises:
        ValueError: no provider can have the name.
    """
    if not is_of_an_extension(text):
        return ProviderName(text)
    if not _TEAM_PROVIDER.match(text):
        raise ValueError(f"is no name of a provider; there are: {', '.join(ProviderName)}")
    return text


class Need(StrEnum):
    """Whether a provider's account has something."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


def _capskip_address(variables: Variables) -> str:
    host = variables.get("CAPSKIP_HOST") or "127.0.0.1"
    return f"http://{host}:{variables.get('CAPSKIP_PORT') or '8080'}"


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """What is true of a provider: what its tokens prove, whether it takes a key and an address.

    `default_key`: the variable its key stands in by custom; `default_address`: where it is without `url_env`;
    `scalable`: whether it can solve faster; `patience`: least seconds that a solve is given, whatever its type.
    """

    source: TokenSource
    key: Need
    address: Need = Need.NONE
    default_key: str | None = None
    default_address: Callable[[Variables], str] | None = None
    scalable: bool = False
    patience: float = 0.0


# Its own client gives up after 300 s; it may queue, load the page and solve for longer than that.
_CAPSKIP_PATIENCE = 450.0

# R3.4: CapSkip runs on the team's own machine and has variables of its own. Clouds have fixed addresses.
PROVIDERS: dict[ProviderName, ProviderTraits] = {
    ProviderName.CAPTCHAAI: ProviderTraits(TokenSource.LIVE, Need.REQUIRED),
    ProviderName.CAPSKIP: ProviderTraits(
        TokenSource.LIVE, Need.OPTIONAL, Need.OPTIONAL,
        default_key="CAPSKIP_API_KEY", default_address=_capskip_address,
        patience=_CAPSKIP_PATIENCE,
    ),
    ProviderName.TWOCAPTCHA: ProviderTraits(TokenSource.LIVE, Need.REQUIRED),
    ProviderName.TESTKEYS: ProviderTraits(TokenSource.TESTKEYS, Need.NONE),
    ProviderName.SANDBOX: ProviderTraits(TokenSource.SANDBOX, Need.OPTIONAL, Need.OPTIONAL, scalable=True),
    ProviderName.STANDIN: ProviderTraits(TokenSource.STANDIN, Need.OPTIONAL, Need.REQUIRED),
}  # fmt: skip

# What an extension makes (R0): always a real provider, whatever it says of itself.
TEAM_PROVIDER = ProviderTraits(TokenSource.LIVE, Need.OPTIONAL, Need.OPTIONAL)


def traits_of(provider: str) -> ProviderTraits:
    """Return what is true of a provider, of this package or of an extension."""
    return TEAM_PROVIDER if is_of_an_extension(provider) else PROVIDERS[ProviderName(provider)]


def is_of_an_extension(provider: str) -> bool:
    """Return whether only an extension can make the provider."""
    return provider not in frozenset(ProviderName)


KEY_MODES: dict[TokenSource, KeyMode] = {
    TokenSource.LIVE: KeyMode.LIVE,
    TokenSource.TESTKEYS: KeyMode.TESTKEYS,
    TokenSource.SANDBOX: KeyMode.STANDIN,
    TokenSource.STANDIN: KeyMode.STANDIN,
}


class AccountTable(Table):
    """One account at a provider."""

    twins: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("api_key_env", "api_key_file"),
        ("url_env", "url_file"),
        ("solver_proxy_env", "solver_proxy_file"),
    )

    provider: Annotated[str, AfterValidator(provider_name)] = Field(description=f"one of {', '.join(ProviderName)}")
    api_key_env: VariableName | None = None
    api_key_file: Text | None = None
    url_env: VariableName | None = None
    url_file: Text | None = None
    solver_proxy_env: VariableName | None = None
    solver_proxy_file: Text | None = None
    max_in_flight: Whole = 10
    price_per_1000: Annotated[Number, Field(ge=0)] | None = None
    time_scale: Annotated[Number, Field(gt=0)] | None = None
    report: bool = False

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield what the provider needs and lacks, and what it has no use for."""
        yield from super().faults()
        traits = traits_of(self.provider)
        has_key, has_address = self.api_key_env or self.api_key_file, self.url_env or self.url_file
        if traits.key is Need.REQUIRED and not has_key:
            yield (
                "api_key_env",
                f"is missing: {self.provider} needs the variable that holds its key (or api_key_file)",
            )
        if traits.key is Need.NONE and has_key:
            yield "api_key_env", f"means nothing for {self.provider}, which has no key"
        if traits.address is Need.REQUIRED and not has_address:
            yield (
                "url_env",
                f"is missing: {self.provider} needs the variable that holds its address (or url_file)",
            )
        if traits.address is Need.NONE and has_address:
            yield "url_env", f"cannot be given for {self.provider}: its address is fixed"
        if self.time_scale is not None and not traits.scalable:
            yield "time_scale", f"is for the sandbox only; nobody can make {self.provider} solve faster"
        if (self.solver_proxy_env or self.solver_proxy_file) and traits.source is not TokenSource.LIVE:
            yield "solver_proxy_env", f"means nothing for {self.provider}, which solves nothing on the web"
        if self.report and traits.source is not TokenSource.LIVE:
            yield "report", f"means nothing for {self.provider}, whose tokens nobody is paid for"


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """One account, ready for use; secrets are read when they are asked for.

    `key`, `address`, `solver_proxy`: None if there is none; `time_scale` is a factor of sandbox solve times; `report`:
    whether the provider is told what became of its tokens.
    """

    name: str
    provider: str
    key: Reference | None
    address: Reference | Url | None
    solver_proxy: Reference | None
    max_in_flight: int
    price_per_1000: float | None
    time_scale: float
    report: bool = False

    @property
    def source(self) -> TokenSource:
        """What its tokens may be sent to."""
        return traits_of(self.provider).source

    @property
    def key_mode(self) -> KeyMode:
        """What its tokens prove."""
        return KEY_MODES[self.source]

    @property
    def url(self) -> Url | None:
        """The provider's address where the team chooses it, else None.

        Raises:
            MissingSecret: the variable or file that should hold it is empty.
            ConfigError: what stands there is no address.
        """
        if not isinstance(self.address, Reference):
            return self.address
        try:
            return Url.parse(self.address.text())
        except UrlRefused as refused:
            raise ConfigError(
                f"{self.address.named} is no usable address for account {self.name!r}: {refused}"
            ) from None

    @property
    def proxy(self) -> SolverProxy | None:
        """The proxy that the provider should solve through, None if there is none.

        Raises:
            MissingSecret: the variable or file that should hold it is empty.
            ConfigError: what stands there is no proxy.
        """
        if self.solver_proxy is None:
            return None
        try:
            return SolverProxy.parse(self.solver_proxy.text())
        except MissingSecret:
            raise
        except ConfigError as error:
            raise ConfigError(f"{self.solver_proxy.key}: {self.solver_proxy.named}: {error.message}") from None

    @property
    def patience(self) -> float:
        """Least seconds that a solve is given, whatever its type."""
        return traits_of(self.provider).patience

    def limits(self, *, run_budget: int | None = None) -> AccountLimits:
        """Return the account's limits with the most submits of this run."""
        return AccountLimits(max_in_flight=self.max_in_flight, run_budget=run_budget)
