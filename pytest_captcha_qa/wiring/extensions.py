"""Code of the team that listens to attempts or makes a provider: how it is found, told, and kept from doing harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pytest_captcha_qa.config.accounts import AccountConfig, ProviderName, is_of_an_extension
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.events import EXTENSION_FAILED, EXTENSION_REFUSED, Emit, Event
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.model.extra import MOST_FIELDS, NotRecordable, Scalar, field_name, field_value
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.records.lines import to_json
from pytest_captcha_qa.wiring.functions import TeamFunction, public, team_module

KEY = "extensions"
RECORD_FIELDS, FORM_OPENED, PROVIDER = "record_fields", "form_opened", "provider"
FUNCTIONS = (RECORD_FIELDS, FORM_OPENED, PROVIDER)

_MOST_READ = 10 * MOST_FIELDS
_LONGEST_NAME_OF_AN_ERROR = 80


@dataclass(frozen=True, slots=True)
class Extension:
    """What one module of the team offers, by the names in FUNCTIONS; `place` is its file."""

    name: str
    place: str
    functions: Mapping[str, TeamFunction]

    @classmethod
    def load(cls, name: str, folder: Path) -> Extension:
        """Return the extension in a module, importing it; it may lie in the configuration's `folder`.

        Raises:
            ConfigError: it cannot be imported, or offers nothing that can be called.
        """
        module = team_module(KEY, name, folder)
        found = {one: value for one in FUNCTIONS if (value := getattr(module, one, None)) is not None}
        if not found:
            known = ", ".join(public(module)[:12]) or "no function"
            raise ConfigError(
                f"{KEY}: {name} would do nothing: it defines none of {', '.join(FUNCTIONS)}; it has {known}"
            )
        return cls.of(KEY, name, getattr(module, "__file__", None) or name, found)

    @classmethod
    def of(
        cls, key: str, name: str, place: str, functions: Mapping[str, object], called: Mapping[str, str] | None = None
    ) -> Extension:
        """Return the extension that consists of these functions; `key` is where their errors say they are named.

        `called`: what the team knows them as, where that is another name.

        Raises:
            ConfigError: one of them cannot be called.
        """
        names = {one: f"{name}:{(called or {}).get(one, one)}" for one in functions}
        found = {one: TeamFunction.of(key, names[one], value, ConfigError) for one, value in functions.items()}
        return cls(name, place, MappingProxyType(found))


@dataclass(frozen=True, slots=True)
class SeenForm:
    """The form that was opened, as an extension is told of it."""

    slug: str
    type: str
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class SeenPage:
    """Where the form's page finally was; `url` has no query."""

    url: str


class Listeners:
    """Implements the engine's Extensions: tells each of them, whatever the others do.

    What one of them raises becomes an event; what ends a process, such as Ctrl-C or pytest.exit, goes on.
    """

    def __init__(self, extensions: Sequence[Extension], emit: Emit, clean: Clean | None) -> None:
        """Tell these, in this order. `clean` removes the run's secrets; without it no field is recorded."""
        self._extensions = extensions
        self._emit = emit
        self._clean = clean
        self._told: set[tuple[str, str]] = set()

    def opened(self, form: FormSpec, page: Url) -> None:
        """Tell every `form_opened` what was opened."""
        seen = SeenForm(form.slug, str(form.type), form.variant), SeenPage(page.without_query)
        for extension in self._extensions:
            if (function := extension.functions.get(FORM_OPENED)) is not None:
                self._call(extension, function, *seen)

    def extra(self, line: AttemptLine) -> Mapping[str, Scalar]:
        """Return what every `record_fields` adds, each given a line of its own as the record file will have it."""
        merged: dict[str, Scalar] = {}
        if self._clean is None:
            return merged
        for extension in self._extensions:
            for field in self._fields_of(extension, line):
                why = self._take(field, merged, self._clean)
                if why is not None:
                    self._tell_refused(extension, field.name, why)
        return merged

    def _fields_of(self, extension: Extension, line: AttemptLine) -> Sequence[_Field]:
        function = extension.functions.get(RECORD_FIELDS)
        if function is None:
            return ()
        asked = function.function
        # A mapping or a value of a class of theirs may raise as well, so it is read where that is caught.
        reading = replace(function, function=lambda told: list(_read(asked(told))))
        given = self._call(extension, reading, to_json(line))
        return given if isinstance(given, list) else ()

    def _take(self, field: _Field, merged: dict[str, Scalar], clean: Clean) -> str | None:
        """Add a field to the others, its secrets masked; return why not, or what was changed."""
        if field.refused is not None:
            return field.refused
        if field.name is None or clean(field.name) != field.name:
            return "its name holds a secret"
        if field.name in merged:
            return "an extension before it gave a field of this name"
        if len(merged) >= MOST_FIELDS:
            return f"there are more than {MOST_FIELDS} fields"
        written = field.value if isinstance(field.value, str) else str(field.value)
        cleaned = clean(written)
        if cleaned == written:
            merged[field.name] = field.value
            return None
        if isinstance(field.value, str):
            merged[field.name] = cleaned
        return "it held a secret, which is masked"

    def _call(self, extension: Extension, function: TeamFunction, *told: object) -> object:
        try:
            return function(*told)
        except CaptchaQAError as error:
            kind = type(error.__cause__ or error).__name__[:_LONGEST_NAME_OF_AN_ERROR]
            shown = self._clean(kind) if self._clean is not None else "an error"
            name = function.name.rpartition(":")[2]
            self._emit(Event(EXTENSION_FAILED, {"module": extension.name, "function": name, "error": shown}))
            return None

    def _tell_refused(self, extension: Extension, field: str | None, why: str) -> None:
        """Say once for each extension and reason what is not recorded as it was given."""
        if (extension.name, why) in self._told:
            return
        self._told.add((extension.name, why))
        shown = self._clean(field) if self._clean is not None and field is not None else None
        self._emit(Event(EXTENSION_REFUSED, {"module": extension.name, "field": shown, "why": why}))


def load_extensions(environment: EnvironmentConfig) -> list[Extension]:
    """Return the extensions that the configuration names, in its order.

    Raises:
        ConfigError: one cannot be used.
    """
    return [Extension.load(name, environment.folder) for name in environment.extensions]


def unusable_extensions(environment: EnvironmentConfig, hooks: Sequence[Extension] = ()) -> list[str]:
    """Return in sentences which extensions cannot be used, and whether none of them can make the account's provider."""
    found = [extension_or_fault(name, environment.folder) for name in environment.extensions]
    faults = [one for one in found if isinstance(one, str)]
    makers = [one.name for one in (*found, *hooks) if isinstance(one, Extension) and PROVIDER in one.functions]
    if is_of_an_extension(environment.account.provider) and not makers and not faults:
        faults.append(unmade(environment.account, makers))
    return faults


def unmade(account: AccountConfig, asked: Sequence[str]) -> str:
    """Return in a sentence that nobody makes the account's provider, whoever was asked."""
    near = get_close_matches(account.provider, [name.value for name in ProviderName], n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    those = f"{', '.join(asked)} gave none" if asked else "no extension and no hook makes any"
    return f"accounts.{account.name}.provider: nobody knows {account.provider!r}: {those}{meant}"


def extension_or_fault(name: str, folder: Path) -> Extension | str:
    """Return the extension, or in a sentence why it cannot be used."""
    try:
        return Extension.load(name, folder)
    except ConfigError as error:
        return error.message


class _Field(NamedTuple):
    """One field as it was given, made plain; `refused` is why it cannot be recorded."""

    name: str | None
    value: Scalar = None
    refused: str | None = None


def _read(given: object) -> Iterator[_Field]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield _Field(None, refused="what was returned is no mapping")
        return
    for name, value in islice(given.items(), _MOST_READ):
        plain = None
        try:
            plain = field_name(name)
            yield _Field(plain, field_value(value))
        except NotRecordable as why:
            yield _Field(plain, refused=str(why))
