"""The provider of an account: one that this package speaks to, or one that an extension makes."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_captcha_qa.config.accounts import AccountConfig, is_of_an_extension
from pytest_captcha_qa.engine.ports import GrantSource, Provider
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.redact import Learn
from pytest_captcha_qa.provider.dialects import DIALECTS
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.wiring.extensions import Extension
from pytest_captcha_qa.wiring.team_provider import team_provider

# The sandbox takes any key of the right length; this one says what it is wherever it shows up.
SANDBOX_KEY = "pytestcaptchaqasandboxdemokey000"


def provider_of(
    account: AccountConfig, extensions: Sequence[Extension], grants: GrantSource, learn: Learn, clean: Clean | None
) -> Provider:
    """Return the provider of an account; extensions are asked for those only that this package does not know.

    Raises:
        ConfigError: there is none, or the account does not fit it.
    """
    if is_of_an_extension(account.provider):
        return team_provider(account, extensions, grants, learn, clean)
    return _spoken(account)


def _spoken(account: AccountConfig) -> Provider:
    dialect = DIALECTS.get(account.provider)
    if dialect is None:
        raise ConfigError(
            f"account {account.name!r} names provider {account.provider!s}, which this version does not speak yet; "
            f"it speaks {', '.join(DIALECTS)}"
        )
    if account.solver_proxy is not None:
        raise ConfigError(
            f"account {account.name!r} names a solver proxy, which this version does not send yet; leave it out"
        )
    key = account.key.text() if account.key is not None else SANDBOX_KEY
    return HttpProvider(dialect, key=key, client=HttpClient(), base_url=account.url, time_scale=account.time_scale)
