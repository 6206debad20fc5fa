"""Every value of the merged settings with the source it comes from, secrets masked."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_captcha_qa.config.catalog import Catalog
from pytest_captcha_qa.config.document import Document, KeyPath
from pytest_captcha_qa.config.environments import EnvTable
from pytest_captcha_qa.config.merging import locate
from pytest_captcha_qa.config.options import DEFAULT, OPTIONS, Option
from pytest_captcha_qa.config.problems import visible
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.config.table import Table
from pytest_captcha_qa.config.variables import Reference, Variables

_PLACES_OF_FILES = ("client_cert_file", "ca_file")
_NO_VALUES: tuple[object, ...] = (None, "", [], (), {})
# What `check` says in its headings: the environment's name and the file.
_IN_HEADINGS = ("captcha_env", "captcha_config")
_OF_ENVIRONMENT = "env.*."


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the merged settings and where it comes from.

    `value` is what JSON can say; for a value that stands elsewhere `{"variable": NAME, "set": bool}`, or `"file"`.
    """

    key: str
    value: object
    source: str

    @property
    def text(self) -> str:
        """The value as people read it; a list without its brackets."""
        if isinstance(self.value, dict):
            place, is_set = self.value.values()
            return f"{place} ({'set' if is_set else 'missing'})"
        if isinstance(self.value, list):
            return ", ".join(part if isinstance(part, str) else _inline(part) for part in self.value)
        return self.value if isinstance(self.value, str) else _inline(self.value)


def run_rows(settings: Settings) -> Iterator[Row]:
    """Yield what holds for a run whatever its environment."""
    for row in OPTIONS:
        chosen = settings.chosen.get(row.dest)
        value = chosen.value if chosen else row.default
        if row.dest in _IN_HEADINGS or _overridden(row) or value in (*_NO_VALUES, False):
            continue
        yield Row(row.dest.removeprefix("captcha_"), _visible("", value), settings.source(row.dest))


def environment_rows(settings: Settings, environment: EnvironmentConfig, forms: Iterable[str]) -> Iterator[Row]:
    """Yield the values of an environment, of its account and of these forms, as they stand after all overrides."""
    catalog, name = settings.written(environment.name)
    written, slugs = catalog.environments[name], set(forms)
    account = ("accounts", environment.account.name)
    for path, value in _leaves(catalog.accounts[account[1]]):
        yield _row(catalog, settings.variables, (*account, *path), value)
    overrides = {_overridden(row): row for row in OPTIONS if _overridden(row) and row.dest in settings.chosen}
    replaced = {twin for key in overrides for twin in _twins(key)}
    for path, value in _leaves(written.table):
        if path[0] not in replaced and (path[0] != "forms" or path[1] in slugs):
            yield _row(catalog, settings.variables, locate(catalog.document, written.chain, path), value)
    yield from _waiver_rows(catalog, slugs)
    for key, row in overrides.items():
        chosen = settings.chosen[row.dest]
        key = key if key != "release_env" else "release"
        yield Row(f"env.{name}.{key}", _value(settings.variables, key, chosen.value), chosen.source)


def gate_rows(settings: Settings) -> Iterator[Row]:
    """Yield the rules of the gate; nothing without a table [gate]."""
    gate = settings.catalog.gate
    for path, value in _leaves(gate) if gate is not None else ():
        yield _row(settings.catalog, settings.variables, ("gate", *path), value)


def _waiver_rows(catalog: Catalog, forms: Collection[str]) -> Iterator[Row]:
    for place, table in catalog.waivers.items():
        if table.form is None or table.form in forms:
            for key, value in table.model_dump(mode="json", exclude_none=True, exclude={"form"}).items():
                source = catalog.document.where(("waivers", str(place), key))
                yield Row(f"waivers.{table.form or table.rule}.{key}", _visible(key, value), source)


def _overridden(row: Option) -> str:
    """Return which key of an environment the option overrides, empty if none."""
    return row.path.removeprefix(_OF_ENVIRONMENT) if row.path and row.path.startswith(_OF_ENVIRONMENT) else ""


def _twins(key: str) -> tuple[str, ...]:
    return next((group for group in EnvTable.twins if key in group), (key,))


def _row(catalog: Catalog, variables: Variables, path: KeyPath, value: object) -> Row:
    source = catalog.document.where(path) if _stands_in(catalog.document, path) else DEFAULT
    return Row(".".join(path), _value(variables, _meaning(path), value), source)


def _meaning(path: KeyPath) -> str:
    """Return the key that tells what a value is: a CSRF cookie's name is no secret, a field's `env` is a variable."""
    if path[-2:-1] == ("csrf",):
        return path[-2]
    return "field_env" if path[-3:-2] == ("fields",) and path[-1] == "env" else path[-1]


def _stands_in(document: Document, path: KeyPath) -> bool:
    """Return whether the file says the value, itself or in short: a function's name in place of its table."""
    return document.holds(path) or (path[-1] == "function" and document.holds(path[:-1]))


def _value(variables: Variables, key: str, value: object) -> object:
    if key in _PLACES_OF_FILES:
        return {"file": value, "set": (variables.folder / str(value)).is_file()}
    if key.endswith("_env"):
        return {"variable": value, "set": variables.get(str(value)) is not None}
    if key.endswith("_file"):
        return {"file": value, "set": Reference("", "", variables, file=str(value)).is_set}
    return _visible(key, value)


def _visible(key: str, value: object) -> object:
    """Return a value as it may be shown, of the kind it has."""
    if isinstance(value, list | tuple):
        return [_visible(key, inner) for inner in value]
    if isinstance(value, Mapping):
        return {name: _visible(name, inner) for name, inner in value.items() if inner not in _NO_VALUES}
    shown = visible(key, value)
    return shown if isinstance(value, str) or shown != str(value) else value


def _inline(value: object) -> str:
    """Return a value as the file would say it on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_inline(inner)}' for name, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _leaves(table: Table) -> Iterator[tuple[KeyPath, object]]:
    """Yield every value of a table that is not empty, with its path; a list is one value."""
    dropped = {"forms": {"__all__": {"enabled"}}}
    yield from _flat(table.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=dropped))


def _flat(value: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, (*path, key))
        elif inner not in _NO_VALUES:
            yield (*path, key), inner
