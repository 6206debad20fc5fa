"""The merged settings of one run: what was chosen, from where, and the environments it can be run against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.config import document
from pytest_captcha_qa.config.access import HttpConfig
from pytest_captcha_qa.config.accounts import AccountConfig, AccountTable, traits_of
from pytest_captcha_qa.config.catalog import DEMO, Catalog, Environment
from pytest_captcha_qa.config.document import Document, KeyPath
from pytest_captcha_qa.config.flows import field_variables
from pytest_captcha_qa.config.merging import locate
from pytest_captcha_qa.config.options import DEFAULT, Chosen, ExitCodes, Outage
from pytest_captcha_qa.config.problems import Problems
from pytest_captcha_qa.config.resolved import EnvironmentConfig, ReleaseFrom, VerifyReferences
from pytest_captcha_qa.config.variables import Reference, Variables
from pytest_captcha_qa.config.waivers import waivers_of
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.gate import GateMode, GateRules
from pytest_captcha_qa.model.probing import Severity
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.model.waiver import Waiver


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What holds for the run whatever its environment; None where nobody said anything.

    `budget`: most submits; `allow_production`: hosts named on the command line; `probe_severity`: from which an unsafe
    probe counts; `baseline`: what gate and dashboard compare with; `dashboard`: where
    its page goes.
    """

    env: str | None
    required: bool
    records: Path
    release: str | None
    run_id: str | None
    budget: int | None
    account: str | None
    store_env: str | None
    outage: Outage
    allow_production: tuple[str, ...]
    exit_codes: ExitCodes
    probe_severity: Severity = Severity.MEDIUM
    metrics: Path | None = None
    gate: GateMode | None = None
    baseline: str | None = None
    dashboard: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was said, merged. `chosen` holds, by `dest`, each option that some source set."""

    root: Path
    run: RunSettings
    catalog: Catalog = field(repr=False)
    variables: Variables = field(repr=False)
    chosen: Mapping[str, Chosen] = field(repr=False)

    def __repr__(self) -> str:
        changed = ", ".join(f"{dest.removeprefix('captcha_')}={said.source}" for dest, said in self.chosen.items())
        label = self.catalog.document.label
        return f"<Settings {label}: {', '.join(self.names)}; {changed or 'all by default'}>"

    @property
    def file(self) -> Path | None:
        """The configuration file, None if there is none."""
        return self.catalog.document.path

    @property
    def folder(self) -> Path:
        """That of the configuration file, where relative paths start and modules of the team are looked for too."""
        return self.variables.folder

    @property
    def gate(self) -> GateRules | None:
        """The rules of the gate, None without a table [gate]."""
        return self.catalog.gate.gate() if self.catalog.gate is not None else None

    @property
    def rule_waivers(self) -> tuple[Waiver, ...]:
        """The waivers of rules of the gate, whatever environment is under test."""
        return tuple(table.waiver() for table in self.catalog.waivers.values() if table.rule is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The environments, the built-in one last."""
        return (*self.catalog.environments, DEMO)

    def source(self, dest: str) -> str:
        """Return in words where the value of an option comes from."""
        return self.chosen[dest].source if dest in self.chosen else DEFAULT

    def environment(self, name: str | None = None) -> EnvironmentConfig:
        """Return an environment, merged and ready for use; by default the chosen one.

        Raises:
            UnknownName: there is no such environment, or the chosen account does not exist.
            ConfigError: none was chosen, the account chosen for the run does not fit, or the built-in one is broken.
        """
        return _Resolver(self, *self.written(name)).environment()

    def written(self, name: str | None = None) -> tuple[Catalog, str]:
        """Return the catalog an environment is written in, and its name; by default the chosen one.

        Raises:
            UnknownName: there is no such environment.
            ConfigError: none was chosen.
        """
        name = name or self.run.env
        if name is None:
            raise ConfigError("no environment was chosen; name one with --captcha-env NAME (`demo` is built in)")
        if name == DEMO:
            return demo_catalog(), name
        if name not in self.catalog.environments:
            raise UnknownName.among("environment", name, self.names, where=self.catalog.document.label)
        return self.catalog, name


def demo_catalog() -> Catalog:
    """Return what the built-in environment `demo` says; it has its own accounts and forms."""
    text = files("pytest_captcha_qa").joinpath("sandbox", "demo.toml").read_text("utf-8")
    return Catalog.of(document.parse(text, "built-in demo.toml", Path.cwd()), built_in=True)


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Turns the tables of one environment into what wiring takes."""

    settings: Settings
    catalog: Catalog
    name: str

    @property
    def written(self) -> Environment:
        return self.catalog.environments[self.name]

    def environment(self) -> EnvironmentConfig:
        table, folder = self.written.table, self.settings.variables.folder
        self._check_chosen_account()
        return EnvironmentConfig(
            name=self.name,
            folder=folder,
            kind=table.kind,
            origins=table.patterns,
            base=Url.parse(table.base_url) if table.base_url else self._named("base_url"),
            account=self._account(),
            forms=MappingProxyType({slug: form.spec(slug, folder) for slug, form in table.forms.items()}),
            verify=MappingProxyType({slug: self._verify_references(slug) for slug in table.forms}),
            field_values=MappingProxyType({slug: self._field_values(slug) for slug in table.forms}),
            store=self._store(),
            given_release=self.settings.run.release,
            release_ref=self._named("release"),
            release_from=self._release_from(),
            retry_interval=table.retry_interval,
            on_store_loss=table.on_store_loss,
            http=self._http(),
            identity_domain=table.identity.domain,
            waivers=waivers_of(tuple(self.catalog.waivers.values()), table.forms),
            extensions=self.settings.catalog.extensions,
        )

    def _check_chosen_account(self) -> None:
        """Refuse an account of this run that does not fit; that of the file was checked when the file was read."""
        if self.settings.run.account is None:
            return
        problems = Problems(self.catalog.document)
        for key, message in self.written.table.account_faults(self._account_table[1]):
            at = self._locate(("env", self.name, *key.split(".")))
            problems.add(at, f"{message} (the account comes from {self.settings.source('captcha_account')})")
        problems.refuse()

    @property
    def _account_table(self) -> tuple[str, AccountTable]:
        name = self.settings.run.account or self.written.table.account
        if name not in self.catalog.accounts:
            raise UnknownName.among("account", name, self.catalog.accounts, where=self.catalog.document.label)
        return name, self.catalog.accounts[name]

    def _account(self) -> AccountConfig:
        name, table = self._account_table
        path = ("accounts", name)
        traits = traits_of(table.provider)
        key = self._reference(path, table, "api_key")
        if key is None and traits.default_key is not None and self.settings.variables.get(traits.default_key):
            key = Reference(f"accounts.{name}", DEFAULT, self.settings.variables, traits.default_key)
        return AccountConfig(
            name=name,
            provider=table.provider,
            key=key,
            address=self._reference(path, table, "url") or self._default_address(table),
            solver_proxy=self._reference(path, table, "solver_proxy"),
            max_in_flight=table.max_in_flight,
            price_per_1000=table.price_per_1000,
            time_scale=1.0 if table.time_scale is None else table.time_scale,
            report=table.report,
        )

    def _default_address(self, table: AccountTable) -> Url | None:
        build = traits_of(table.provider).default_address
        if build is None:
            return None
        try:
            return Url.parse(build(self.settings.variables))
        except UrlRefused as refused:
            raise ConfigError(f"CAPSKIP_HOST and CAPSKIP_PORT make no usable address: {refused}") from None

    def _store(self) -> Reference | None:
        given = self.settings.run.store_env
        if given is not None:
            source = self.settings.source("captcha_store_env")
            return Reference(f"env.{self.name}.store_env", source, self.settings.variables, given)
        return self._named("store")

    def _release_from(self) -> ReleaseFrom | None:
        table = self.written.table.release_from
        return ReleaseFrom(table.path, table.json_, table.header) if table else None

    def _http(self) -> HttpConfig:
        table = self.written.table.http
        folder = self.settings.variables.folder
        path = ("env", self.name, "http")
        return HttpConfig(
            basic_auth_ref=self._reference(path, table, "basic_auth"),
            headers_ref=self._reference(path, table, "headers"),
            cookie_ref=self._reference(path, table, "cookie"),
            proxy_ref=self._reference(path, table, "proxy"),
            client_cert=folder / table.client_cert_file if table.client_cert_file else None,
            ca=folder / table.ca_file if table.ca_file else None,
        )

    def _verify_references(self, slug: str) -> VerifyReferences:
        table = self.written.table.forms[slug].verify
        path = ("env", self.name, "forms", slug, "verify")
        return VerifyReferences(secret=self._reference(path, table, "secret"), url=self._reference(path, table, "url"))

    def _field_values(self, slug: str) -> dict[str, Reference]:
        found: dict[str, Reference] = {}
        for name, variable in field_variables(self.written.table.forms[slug].fields).items():
            at = self._locate(("env", self.name, "forms", slug, "fields", name))
            where = self.catalog.document.where(at)
            found[name] = Reference(".".join(at), where, self.settings.variables, variable)
        return found

    def _named(self, key: str) -> Reference | None:
        return self._reference(("env", self.name), self.written.table, key)

    def _reference(self, path: KeyPath, table: Any, key: str) -> Reference | None:
        """Return what `key_env` or `key_file` of a table names, None if it has neither."""
        for twin, given in ((f"{key}_env", "variable"), (f"{key}_file", "file")):
            value = getattr(table, twin)
            if value is not None:
                at = self._locate((*path, twin))
                where = self.catalog.document.where(at)
                return Reference(".".join(at), where, self.settings.variables, **{given: value})
        return None

    def _locate(self, path: KeyPath) -> KeyPath:
        if path[0] != "env":
            return path
        return locate(self.catalog.document, self.written.chain, path[2:])


def empty_document(folder: Path) -> Document:
    """Return the document of a team that has no configuration file: only the built-in environment."""
    return Document("no configuration file", folder, {})
