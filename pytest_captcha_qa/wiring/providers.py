"""The provider of an account: one that this package speaks to, or one that an extension makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_captcha_qa.config.accounts import AccountConfig, ProviderName, is_of_an_extension
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.ports import GrantSource, Provider
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.redact import Learn
from pytest_captcha_qa.provider.dialects import DIALECTS, unsolved
from pytest_captcha_qa.provider.http import HttpProvider
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
    account: AccountConfig, extensions: Sequence[Extension], grants: GrantSource, learn: Learn, clean: Clean | None
) -> Provider:
    """Return the provider of an account; extensions are asked for those only that this package does not know.

    Raises:
        ConfigError: there is none, or the account does not fit it.
        ScopeDenied: a sandbox that is not on this machine.
    """
    if is_of_an_extension(account.provider):
        return team_provider(account, extensions, grants, learn, clean)
    return spoken_provider(account)


def unsolvable_forms(environment: EnvironmentConfig, forms: Iterable[str]) -> list[str]:
    """Return in sentences which of the forms are of a type that the account's service does not solve."""
    specs = [environment.forms[slug] for slug in forms]
    if environment.account.source is TokenSource.TESTKEYS:
        return [f"forms.{spec.slug}.type: {without_keys(spec.type)}" for spec in specs if not has_keys(spec.type)]
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
        ConfigError: it speaks none, or the account cannot work.
        ScopeDenied: a sandbox that is not on this machine.
    """
    if account.source is TokenSource.TESTKEYS:
        return TestKeysProvider()
    dialect = DIALECTS.get(account.provider)
    if dialect is None:
        raise ConfigError(
            f"account {account.name!r} names provider {account.provider}, which this version does not speak yet; "
            f"it speaks {', '.join(DIALECTS)}"
        )
    return HttpProvider(
        dialect,
        key=account.key.text() if account.key is not None else _WITHOUT_A_KEY.get(account.provider, ""),
        client=HttpClient(),
        base_url=account.url,
        time_scale=account.time_scale,
        solver_proxy=account.proxy,
    )
