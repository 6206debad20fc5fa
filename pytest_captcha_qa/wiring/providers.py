"""The provider of an account: one that this package speaks to, or one that an extension makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_captcha_qa.config.accounts import AccountConfig, ProviderName, is_of_an_extension
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.ports import GrantSource, Provider
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.redact import Learn
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import DIALECTS, unsolved
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.provider.standin import StandIn, without_vendor
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.provider.testkeys import TestKeysProvider, has_keys, without_keys
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.scope import TokenSource
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.wiring.extensions import Extension
from pytest_captcha_qa.wiring.team_provider import team_provider

# The sandbox takes any key of the right length; this one says what it is wherever it shows up.
SANDBOX_KEY = "pytestcaptchaqasandboxdemokey000"
_WITHOUT_A_KEY: dict[str, str] = {ProviderName.SANDBOX: SANDBOX_KEY}


def provider_of(
    environment: EnvironmentConfig,
    extensions: Sequence[Extension],
    grants: GrantSource,
    learn: Learn,
    clean: Clean | None,
) -> Provider:
    """Return the provider of an environment; extensions are asked for those only that this package does not know.

    Raises:
        ConfigError: there is none, or the account does not fit it.
        ScopeDenied: a sandbox that is not on this machine, or a stand-in that is not and speaks plain http.
    """
    account = environment.account
    if is_of_an_extension(account.provider):
        return team_provider(account, extensions, grants, learn, clean)
    if account.source is TokenSource.STANDIN:
        return StandInProvider(stand_in_of(environment))
    return spoken_provider(account)


def stand_in_of(environment: EnvironmentConfig, at: Url | None = None) -> StandIn:
    """Return a client of the environment's stand-in, as a session of its own.

    `at`: where it is, when that is not the account's address. A certificate is checked against the environment's
    `ca_file`, if it names one.

    Raises:
        ConfigError: the account names no stand-in.
        ScopeDenied: it is not on this machine and speaks plain http.
    """
    account = environment.account
    base = at if at is not None else account.url if account.source is TokenSource.STANDIN else None
    if base is None:
        raise ConfigError(
            f"account {account.name!r} of environment {environment.name!r} is one of {account.provider}, which answers "
            'about no token as a test says: use an account with provider = "standin", or the environment demo'
        )
    key = account.key.text() if account.key is not None and at is None else ""
    trusted = str(environment.http.ca) if environment.http.ca else None
    return StandIn(base, key=key, client=HttpClient(foreign_ca_file=trusted))


def unsolvable_forms(environment: EnvironmentConfig, forms: Iterable[str]) -> list[str]:
    """Return in sentences which of the forms are of a type that the account's service does not solve."""
    specs = [environment.forms[slug] for slug in forms]
    if environment.account.source is TokenSource.TESTKEYS:
        return [f"forms.{spec.slug}.type: {without_keys(spec.type)}" for spec in specs if not has_keys(spec.type)]
    if environment.account.source is TokenSource.STANDIN:
        return [f"forms.{it.slug}.type: {without_vendor(it.type)}" for it in specs if not facts(it.type).has_vendor]
    dialect = DIALECTS.get(environment.account.provider)
    if dialect is None:  # told by the configuration itself, or by the extension that makes the provider
        return []
    return [
        f"forms.{spec.slug}.type: {unsolved(dialect, spec.type)}"
        for spec in specs
        if dialect.methods[spec.type] is None
    ]


def spoken_provider(account: AccountConfig) -> Provider:
    """Return the client of a service whose dialect this package speaks.

    Raises:
        ConfigError: the account cannot work.
        ScopeDenied: a sandbox that is not on this machine.
    """
    if account.source is TokenSource.TESTKEYS:
        return TestKeysProvider()
    dialect = DIALECTS[account.provider]
    return HttpProvider(
        dialect,
        key=account.key.text() if account.key is not None else _WITHOUT_A_KEY.get(account.provider, ""),
        client=HttpClient(),
        base_url=account.url,
        time_scale=account.time_scale,
        solver_proxy=account.proxy,
    )
