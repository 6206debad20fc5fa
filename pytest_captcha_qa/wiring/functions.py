"""Functions of the team that a form names: found by their name, called with what they need, their errors told."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, PageError, UnknownName
from pytest_captcha_qa.model.form import FormSpec


@dataclass(frozen=True, slots=True)
class TeamFunction:
    """A function that the configuration names; `key` is where."""

    key: str
    name: str
    function: Callable[..., object]

    @classmethod
    def load(cls, key: str, name: str, folder: Path) -> TeamFunction:
        """Return the function `package.module:name`, importing its module; it may lie in the configuration's `folder`.

        Raises:
            ConfigError: the module cannot be imported or has no such function.
        """
        module_name, _, attribute = name.partition(":")
        with _Told(key, name, "cannot be imported: its module"):
            module = _imported(key, module_name, folder)
        function = getattr(module, attribute, None)
        if function is None:
            known = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
            raise UnknownName.among("function", attribute, known, where=f"{module_name}, which {key} names")
        if not callable(function):
            raise ConfigError(f"{key}: {name} is no function but a {type(function).__name__}")
        return cls(key, name, function)

    def __call__(self, *arguments: object) -> object:
        """Return what it returns.

        Raises:
            PageError: an assertion of it failed: the site is not as the team expects it.
            ConfigError: anything else of its own went wrong.
        """
        with _Told(self.key, self.name, "itself"):
            return self.function(*arguments)


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


def _imported(key: str, name: str, folder: Path) -> object:
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
    """Turns what a team's code raises into an error that names it; exits, interrupts and our own errors go on."""

    def __init__(self, key: str, name: str, what: str) -> None:
        self._key = key
        self._name = name
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CaptchaQAError) or not isinstance(error, Exception):
            return
        place = _place(error)
        if isinstance(error, AssertionError):
            raise PageError(f"{self._key}: an assertion of {self._name} failed at {place}") from error
        raise ConfigError(f"{self._key}: {self._name} {self._what} raised {type(error).__name__} at {place}") from error


def _place(error: Exception) -> str:
    """Return file and line of the team's code that raised, or called what did."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    own = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<")]
    libraries = (sys.prefix, sys.base_prefix)
    last = next((frame for frame in reversed(own) if not frame.filename.startswith(libraries)), None) or frames[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
