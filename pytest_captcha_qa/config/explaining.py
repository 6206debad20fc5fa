"""One environment in words: each value with its source, what a run needs, what prevents it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_captcha_qa.config.accounts import is_of_an_extension
from pytest_captcha_qa.config.disclosure import Disclosure, disclosure
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.rows import Row, environment_rows
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.scope import TokenSource


@dataclass(frozen=True, slots=True)
class Explained:
    """One environment.

    `needs` is what a run asks for beyond the file, `problems` what prevents one, `store` where the state is kept and
    what of it leaves this machine.
    """

    name: str
    rows: tuple[Row, ...]
    leaves: tuple[Disclosure, ...]
    needs: tuple[str, ...]
    problems: tuple[str, ...]
    store: str


def explain(settings: Settings, name: str, *, form: str | None = None) -> Explained:
    """Return an environment in words, narrowed to one form if asked; nothing is sent.

    Raises:
        UnknownName: there is no such environment, account or form.
    """
    environment = settings.environment(name)
    slugs = [form] if form is not None else list(environment.forms)
    forms = [environment.form(slug) for slug in slugs]
    return Explained(
        name=name,
        rows=tuple(environment_rows(settings, environment, slugs)),
        leaves=tuple(disclosure(environment, spec) for spec in forms),
        needs=tuple(_needs(environment)),
        problems=(*environment.missing(slugs), *_never(environment)),
        store=_store(environment),
    )


def _never(environment: EnvironmentConfig) -> Iterator[str]:
    """Yield which origins the account can never be used for; a run finds that out as a refusal of scope."""
    if environment.account.source is TokenSource.SANDBOX:
        for pattern in environment.origins:
            if not pattern.origin.is_loopback:
                yield (
                    f"env.{environment.name}.origins: {pattern} is not on this machine, and tokens of the account "
                    f"{environment.account.name!r} are sent to loopback addresses only"
                )


def _store(environment: EnvironmentConfig) -> str:
    try:
        address = environment.store_address
    except ConfigError:
        return "a shared one whose address is not known yet"
    if address is None:
        return "nothing: it is a file in the user's cache"
    return f"{address}: hashed keys, task ids, tokens until they expire or are used, verdicts, shared session cookies"


def _needs(environment: EnvironmentConfig) -> Iterator[str]:
    rules = environment.rules()
    for pattern in environment.origins:
        if rules.needs_proof(pattern.origin):
            yield f"{pattern} serves the ownership proof (made by `captcha-qa authorise {environment.name}`)"
    if environment.kind is EnvKind.PRODUCTION:
        for pattern in environment.origins:
            yield f"--captcha-allow-production {pattern.origin.host} on the command line"
        yield "a budget (--captcha-budget N)"
        if environment.account.source is not TokenSource.LIVE:
            yield f"a live account: tokens of {environment.account.provider} are never sent to production"
    if is_of_an_extension(environment.account.provider):
        made = f"the provider {environment.account.provider!r}"
        yield f"an extension that makes {made}, or a plugin or conftest.py with the hook pytest_captcha_provider"
    if environment.release is None and environment.release_ref is not None:
        yield f"{environment.release_ref.named}, or the release stays unknown and is not compared"
