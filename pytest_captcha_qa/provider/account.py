"""What one account says, checked before anything is sent: its key, its address, its proxy, the pages it is for."""

from __future__ import annotations

from pytest_captcha_qa.errors import ConfigError, MissingSecret, ScopeDenied
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.solver_proxy import SolverProxy
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import Dialect
from pytest_captcha_qa.scope import TokenSource


def check_key(dialect: Dialect, key: str) -> None:
    """Return quietly if the key has the form that the service's keys have.

    Raises:
        MissingSecret: it is empty, and the service needs one.
        ConfigError: it has another length.
    """
    if dialect.key_length is None:
        return
    if not key:
        raise MissingSecret(f"the account's key for {dialect.name} is empty")
    if len(key) != dialect.key_length:
        raise ConfigError(
            f"the account's key has {len(key)} characters, a key of {dialect.name} has {dialect.key_length}"
        )


def address_of(dialect: Dialect, base_url: Url | None) -> Url:
    """Return where the service is.

    Raises:
        ConfigError: nobody says where.
        ScopeDenied: a sandbox that is not on this machine.
    """
    if base_url is None and dialect.base_url is None:
        raise ConfigError(f"{dialect.name} has no fixed address: set the account's url_env")
    base = base_url or Url.parse(str(dialect.base_url))
    if dialect.source is TokenSource.SANDBOX and not base.origin.is_loopback:
        raise ScopeDenied(
            f"a sandbox at {base.origin} is not on this machine; start one with `captcha-qa sandbox`",
            reason="sandbox_not_loopback",
        )
    return base


def check_proxy(dialect: Dialect, proxy: SolverProxy | None) -> None:
    """Return quietly if the service can solve through the proxy.

    Raises:
        ConfigError: it cannot.
    """
    if proxy is not None and proxy.kind not in dialect.proxy_types:
        known = ", ".join(sorted(dialect.proxy_types)).lower() or "none"
        raise ConfigError(f"{dialect.name} takes no {proxy.kind.lower()} proxy to solve through; it takes: {known}")


def of_test_key(challenge: Challenge, service: str) -> str:
    """Return in a sentence that a page shows a test key, which is not what a solving service is for."""
    return (
        f"{challenge.page.without_query} shows the vendor's official test key {challenge.sitekey}, which takes no "
        f'token of {service}: use an account with provider = "testkeys"'
    )
