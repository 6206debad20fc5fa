"""Everything one document says, merged and checked: accounts, environments, projects, run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from pytest_captcha_qa.config.accounts import AccountTable, ProviderName, is_of_an_extension
from pytest_captcha_qa.config.document import Document, KeyPath
from pytest_captcha_qa.config.environments import EnvTable, ProjectTable
from pytest_captcha_qa.config.forms import FormTable
from pytest_captcha_qa.config.gate import GateTable
from pytest_captcha_qa.config.merging import dropped_in_vain, effective, lineage, locate, unfounded_overrides
from pytest_captcha_qa.config.options import ExitCodes, Outage
from pytest_captcha_qa.config.problems import Problems, meant, nearest, quoted, url_secrets
from pytest_captcha_qa.config.sentences import not_among, sentences
from pytest_captcha_qa.config.table import Table, Text, Whole
from pytest_captcha_qa.config.waivers import WaiverTable, waiver_faults
from pytest_captcha_qa.model.gate import GateMode
from pytest_captcha_qa.model.probing import Severity

DEMO = "demo"
_SECTIONS = ("accounts", "env", "extensions", "forms", "gate", "projects", "run", "waivers")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")

_T = TypeVar("_T", bound=Table)


class RunTable(Table):
    """What holds for a run whatever the environment; options override it."""

    records: Text | None = None
    metrics: Text | None = None
    budget: Whole | None = None
    outage: Outage | None = None
    exit_codes: ExitCodes | None = None
    probe_severity: Severity | None = None
    gate: GateMode | None = None
    baseline: Text | None = None
    dashboard: Text | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment as written, merged, with the names of those it extends (itself first)."""

    table: EnvTable
    chain: list[str]
    merged: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The checked content of a document; `extensions` are modules of the team, `gate` is None where there is none."""

    document: Document
    accounts: Mapping[str, AccountTable]
    environments: Mapping[str, Environment]
    projects: Mapping[str, ProjectTable]
    run: RunTable
    waivers: Mapping[int, WaiverTable]
    extensions: tuple[str, ...] = ()
    gate: GateTable | None = None

    @classmethod
    def of(cls, document: Document, *, built_in: bool = False, today: date | None = None) -> Catalog:
        """Return the catalog of a document; only the built-in one may define `demo`. `today` is the day in UTC.

        Raises:
            ConfigError: something is wrong; the message lists all of it, one problem a line.
        """
        return _Reader(document, Problems(document), built_in, today or datetime.now(UTC).date()).catalog()


@dataclass(frozen=True, slots=True)
class _Reader:
    document: Document
    problems: Problems
    built_in: bool
    today: date

    def catalog(self) -> Catalog:
        self._check_sections()
        accounts = self._section(AccountTable, "accounts")
        environments = self._environments()
        projects = self._section(ProjectTable, "projects")
        run = self._table(RunTable, ("run",)) if "run" in self.document.tables else RunTable()
        self._check_accounts(environments, accounts)
        self._check_providers(accounts)
        self._check_projects(projects, accounts)
        waivers = self._waivers(environments)
        extensions, gate = self._extensions(), self._gate()
        self.problems.refuse()
        return Catalog(self.document, accounts, environments, projects, run or RunTable(), waivers, extensions, gate)

    def _gate(self) -> GateTable | None:
        gate = self._table(GateTable, ("gate",)) if "gate" in self.document.tables else None
        if gate is not None:
            for place, message in gate.name_faults(self._forms_named(), self._written("projects")):
                self.problems.add(("gate", *place), message)
        return gate

    def _check_sections(self) -> None:
        url_secrets(self.problems, self.document.tables)
        for name in self.document.tables:
            if name not in _SECTIONS:
                self.problems.add((name,), f"there is no such table{nearest(name, _SECTIONS)}")

    def _written(self, section: str) -> Mapping[str, Any]:
        """Return a section's tables as they stand in the file."""
        tables = self.document.tables.get(section)
        return tables if isinstance(tables, Mapping) else {}

    def _names(self, section: str) -> list[str]:
        """Return the names of a section's tables; a problem is what is no table or has no usable name."""
        tables = self.document.tables.get(section, {})
        if not isinstance(tables, Mapping):
            self.problems.add((section,), f"must hold tables, such as [{section}.NAME]")
            return []
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                self.problems.add((section, name), f"must be a table: [{section}.NAME]")
            elif not _NAME.match(name):
                self.problems.add((section, name), "is no usable name: letters, digits, _ and - only, at most 64")
        return [name for name, table in tables.items() if isinstance(table, Mapping) and _NAME.match(name)]

    def _table(self, model: type[_T], path: KeyPath) -> _T | None:
        value: Any = self.document.tables
        for name in path:
            value = value[int(name) if isinstance(value, list) else name]
        try:
            found = model.model_validate(value)
        except ValidationError as error:
            for loc, message in sentences(error, model):
                self.problems.add(path + loc, message)
            return None
        for key, message in found.faults():
            self.problems.add((*path, *key.split(".")), message)
        return found

    def _section(self, model: type[_T], section: str) -> dict[str, _T]:
        tables = {name: self._table(model, (section, name)) for name in self._names(section)}
        return {name: table for name, table in tables.items() if table is not None}

    def _environments(self) -> dict[str, Environment]:
        names = self._names("env")
        if names:
            self._names("forms")  # their content is checked as part of each environment
        else:
            self._section(FormTable, "forms")
        if DEMO in names and not self.built_in:
            self.problems.add(("env", DEMO), "is built in and cannot be defined; give this environment another name")
        found = {name: self._environment(name) for name in names}
        return {name: environment for name, environment in found.items() if environment is not None}

    def _environment(self, name: str) -> Environment | None:
        tables = self._written("env")
        chain, problem = lineage(tables, name)
        if problem is not None:
            hint = nearest(str(tables[chain[-1]]["extends"]), tables) if "no environment" in problem else ""
            self.problems.add(("env", chain[-1], "extends"), problem + hint)
            return None
        for slug in dropped_in_vain(self.document, chain):
            message = f"drops a form that is not there{nearest(slug, self._written('forms'))}"
            self.problems.add(("env", name, "forms", slug), message)
        # What else a misspelt form lacks would be beside the point.
        merged = effective(self.document, chain, without=self._misspelt_forms(chain))
        try:
            table = EnvTable.model_validate(merged)
        except ValidationError as error:
            for loc, message in sentences(error, EnvTable):
                self.problems.add(locate(self.document, chain, loc), message)
            return None
        self._add_faults(table.faults(), chain)
        return Environment(table, chain, merged)

    def _misspelt_forms(self, chain: list[str]) -> Iterator[str]:
        """Yield the forms that are overridden under a wrong name, after adding a problem for each."""
        for path, below in unfounded_overrides(self.document, chain).items():
            hint = meant(path[-1], below)
            if hint:
                message = f"overrides a form that is not there{hint} A new form needs path, type and success"
                self.problems.add(path, message)
                yield path[-1]

    def _add_faults(self, faults: Iterable[tuple[str, str]], chain: list[str]) -> None:
        for key, message in faults:
            self.problems.add(locate(self.document, chain, tuple(key.split(".")) if key else ()), message)

    def _check_accounts(self, environments: Mapping[str, Environment], accounts: Mapping[str, AccountTable]) -> None:
        known = self._written("accounts")
        for environment in environments.values():
            name = environment.table.account
            if name in accounts:
                self._add_faults(environment.table.account_faults(accounts[name]), environment.chain)
            elif name not in known:
                path = locate(self.document, environment.chain, ("account",))
                self.problems.add(path, f"{name!r} is no account{nearest(name, known)}")

    def _check_providers(self, accounts: Mapping[str, AccountTable]) -> None:
        """Refuse a provider that this package does not know, unless the file says that there are extensions."""
        if "extensions" in self.document.tables:
            return
        for name, account in accounts.items():
            if is_of_an_extension(account.provider):
                known = not_among("provider", account.provider, [name.value for name in ProviderName])
                self.problems.add(("accounts", name, "provider"), f"{known}; one of your own needs `extensions`")

    def _extensions(self) -> tuple[str, ...]:
        """Return the modules of the team; a problem is what cannot be the name of one, or stands twice."""
        written = self.document.tables.get("extensions", [])
        if not isinstance(written, list) or not all(isinstance(name, str) for name in written):
            self.problems.add(("extensions",), 'must be a list of modules of yours, such as ["qa.captcha"]')
            return ()
        for name in written:
            if not _MODULE.match(name):
                self.problems.add(("extensions",), f"{quoted('extensions', name)} is no module, such as qa.captcha")
        for name in sorted({name for name in written if written.count(name) > 1}):
            self.problems.add(("extensions",), f"names {quoted('extensions', name)} twice")
        return tuple(written)

    def _check_projects(self, projects: Mapping[str, ProjectTable], accounts: Mapping[str, AccountTable]) -> None:
        known = self._written("env")
        for name, project in projects.items():
            for env in project.envs:
                if env not in known:
                    self.problems.add(("projects", name, "envs"), f"{env!r} is no environment{nearest(env, known)}")
            if project.account is not None and project.account not in accounts:
                message = f"{project.account!r} is no account{nearest(project.account, accounts)}"
                self.problems.add(("projects", name, "account"), message)

    def _waivers(self, environments: Mapping[str, Environment]) -> dict[int, WaiverTable]:
        written = self.document.tables.get("waivers", [])
        if not isinstance(written, list):
            self.problems.add(("waivers",), "must be written as [[waivers]], once for each")
            return {}
        tables = {place: self._table(WaiverTable, ("waivers", str(place))) for place in range(len(written))}
        found = {place: table for place, table in tables.items() if table is not None}
        most_days: dict[str, int] = {}
        for environment in environments.values():
            for form in environment.table.forms:
                most_days[form] = min(environment.table.waivers_max_days, most_days.get(form, sys.maxsize))
        for place, key, message in waiver_faults(found, most_days, self._forms_named(), self.today):
            self.problems.add(("waivers", str(place), key), message)
        return found

    def _forms_named(self) -> Iterator[str]:
        """Yield every form that the file writes down, whether or not it is well written."""
        yield from self._written("forms")
        for environment in self._written("env").values():
            forms = environment.get("forms") if isinstance(environment, Mapping) else None
            yield from forms if isinstance(forms, Mapping) else ()
