"""Functions of the team that a form names: found by their name, called with what they need, their errors told."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, PageError, UnknownName
from pytest_captcha_qa.model.form import FormSpec

# Of an attribute, a key or a variable; what has digits or both cases may be a secret.
_A_NAME = re.compile(r"[A-Z_]{1,40}|[a-z_]{1,40}")
_ENDING: set[type[Exception]] = set()


def let_pass(*kinds: type[Exception]) -> None:
    """Count these as no fault of a team's code: the runner of this process ends its work with them, as pytest does."""
    _ENDING.update(kinds)


@dataclass(frozen=True, slots=True)
class TeamFunction:
    """A function that the configuration names; `key` is where. `assertion` is what a failed assertion of it means."""

    key: str
    name: str
    function: Callable[..., object]
    assertion: type[CaptchaQAError] = PageError

    @classmethod
    def load(cls, key: str, name: str, folder: Path) -> TeamFunction:
        """Return the function `package.module:name`, importing its module; it may lie in the configuration's `folder`.

        Raises:
            ConfigError: the module cannot be imported or has no such function.
        """
        module_name, _, attribute = name.partition(":")
        module = team_module(key, name, folder)
        function = getattr(module, attribute, None)
        if function is None:
            raise UnknownName.among("function", attribute, public(module), where=f"{module_name}, which {key} names")
        return cls.of(key, name, function)

    @classmethod
    def of(cls, key: str, name: str, function: object, assertion: type[CaptchaQAError] = PageError) -> TeamFunction:
        """Return what stands under the name in a module that is imported already.

        Raises:
            ConfigError: it cannot be called.
        """
        if not callable(function):
            raise ConfigError(f"{key}: {name} is no function but a {type(function).__name__}")
        return cls(key, name, function, assertion)

    def __call__(self, *arguments: object) -> object:
        """Return what it returns.

        Raises:
            PageError, or `assertion`: an assertion of it failed: the site is not as the team expects it.
            ConfigError: anything else of its own went wrong, or it has only begun: it is asynchronous or a generator.
        """
        with _Told(self.key, self.name, "itself", self.assertion):
            returned = self.function(*arguments)
        if isinstance(returned, Coroutine | Generator | AsyncGenerator | Awaitable):
            if isinstance(returned, Coroutine | Generator):
                returned.close()
            raise ConfigError(
                f"{self.key}: {self.name} is asynchronous or a generator, and has done nothing yet; write a plain "
                "function, without async and yield"
            )
        return returned


def team_module(key: str, name: str, folder: Path) -> ModuleType:
    """Return the module of `package.module` or `package.module:name`; it may lie in the configuration's `folder`.

    Raises:
        ConfigError: it cannot be imported.
    """
    with _Told(key, name, "cannot be imported: its module"):
        return _imported(key, name.partition(":")[0], folder)


def public(module: ModuleType) -> list[str]:
    """Return the names in a module that can be called and are meant for others."""
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def functions_of(form: FormSpec) -> Iterator[tuple[str, str]]:
    """Yield the key and the name of each function that a form names."""
    confirm = form.confirm.function if form.confirm else None
    for key, name in (("prepare", form.prepare), ("confirm", confirm), ("cleanup", form.cleanup)):
        if name is not None:
            yield f"forms.{form.slug}.{key}", name


def unusable_functions(environment: EnvironmentConfig, forms: Iterable[str]) -> list[str]:
    """Return in sentences which functions of these forms cannot be found."""
    named = [pair for slug in forms for pair in functions_of(environment.forms[slug])]
    faults = (_fault(key, name, environment.folder) for key, name in named)
    return [error.message for error in faults if error is not None]


def _fault(key: str, name: str, folder: Path) -> ConfigError | None:
    try:
        TeamFunction.load(key, name, folder)
    except ConfigError as error:
        return error
    return None


def _imported(key: str, name: str, folder: Path) -> ModuleType:
    # Last, so that it hides nothing, and for good: the team's code may import its neighbours later.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return import_module(name)
    except ImportError as missing:
        why = (
            f"there is no module {missing.name}"
            if isinstance(missing, ModuleNotFoundError)
            else "an import fails in it"
        )
        raise ConfigError(
            f"{key}: {name} cannot be imported: {why}; it is looked for as Python does, and in {folder}"
        ) from None


class _Told:
    """Turns what a team's code raises into an error that names it; our own errors and what ends the run go on."""

    def __init__(self, key: str, name: str, what: str, assertion: type[CaptchaQAError] = PageError) -> None:
        self._key = key
        self._name = name
        self._what = what
        self._assertion = assertion

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (CaptchaQAError, *_ENDING)) or not isinstance(error, Exception):
            return
        place = _place(error)
        if isinstance(error, AssertionError):
            raise self._assertion(f"{self._key}: an assertion of {self._name} failed at {place}") from error
        what = f"{type(error).__name__}{_name_in(error)}"
        raise ConfigError(f"{self._key}: {self._name} {self._what} raised {what} at {place}") from error


def _name_in(error: Exception) -> str:
    """Return the name that an error is about, in brackets; no other text of it, which may hold a secret."""
    name = error.args[0] if isinstance(error, KeyError) and error.args else getattr(error, "name", None)
    return f" ({name})" if isinstance(name, str) and _A_NAME.fullmatch(name) else ""


def _place(error: Exception) -> str:
    """Return file and line of the team's code that raised, or called what did."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    own = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<")]
    libraries = (sys.prefix, sys.base_prefix)
    last = next((frame for frame in reversed(own) if not frame.filename.startswith(libraries)), None) or frames[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
