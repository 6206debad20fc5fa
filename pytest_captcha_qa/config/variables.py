"""Values that stand outside the file: in the environment, in `.env` beside it, or in a file of their own."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from dotenv import dotenv_values
from pydantic import SecretStr

from pytest_captcha_qa.errors import ConfigError, MissingSecret

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST_PLAIN = 15


@dataclass(frozen=True, slots=True)
class Variables:
    """Looks variables up: the real ones win, then those of `.env`. Nothing is ever put into `os.environ`.

    `folder`: where relative paths of `*_file` keys start, the folder of the configuration file.
    """

    environ: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)
    folder: Path

    @classmethod
    def beside(cls, folder: Path, environ: Mapping[str, str]) -> Variables:
        """Return the variables of the process and of `folder/.env`, if there is one.

        Raises:
            ConfigError: `.env` is there and cannot be read.
        """
        path = folder / ".env"
        text = _read(path) if path.is_file() else ""
        found = dotenv_values(stream=io.StringIO(text), interpolate=False)
        return cls(environ, {name: value for name, value in found.items() if value is not None}, folder)

    def get(self, name: str) -> str | None:
        """Return the variable's value, None if unset or empty; an empty real one hides that of `.env`."""
        return self.environ.get(name, self.dotenv.get(name)) or None

    def as_mapping(self) -> Mapping[str, str]:
        """Return all of them, the real ones on top."""
        return {**self.dotenv, **self.environ}

    def __reduce__(self) -> NoReturn:
        raise TypeError("variables hold secrets and are not sent to another process")


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that is named, not written: by a variable or by a file; read when it is needed, each time.

    `key` and `where` say which key of the configuration names it, and in which file and line that key stands.
    """

    key: str
    where: str
    variables: Variables = field(repr=False)
    variable: str | None = None
    file: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a value now."""
        try:
            self.text()
        except MissingSecret:
            return False
        return True

    @property
    def named(self) -> str:
        """The variable or file, as it is shown to people."""
        return self.variable or f"file {self.file}"

    def secret(self) -> SecretStr:
        """Return the value in a holder that does not show it.

        Raises:
            MissingSecret: there is none.
        """
        return SecretStr(self.text())

    def text(self) -> str:
        """Return the value as it is; for addresses and the like.

        Raises:
            MissingSecret: the variable is unset or empty, the file unreadable or empty.
        """
        value = self._from_file(self.file) if self.file is not None else self.variables.get(self.variable or "")
        if not value:
            raise MissingSecret(self._missing())
        return value

    def _from_file(self, name: str) -> str | None:
        try:
            return (self.variables.folder / name).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None

    def _missing(self) -> str:
        needed = f"{self.key} ({self.where}) needs it"
        if self.file is not None:
            path = self.variables.folder / self.file
            return f"the file {path} is missing, unreadable or empty; {needed}"
        state = "is empty" if self.variable in self.variables.environ else "is not set"
        places = f"set it in the environment or in {self.variables.folder / '.env'}"
        return f"the variable {self.variable} {state}; {needed}: {places}"


def variable_name(text: str) -> str:
    """Return the text if it can be a variable's name.

    Raises:
        ValueError: it cannot, or it looks like the secret itself; the message does not repeat it.
    """
    if not NAME.match(text):
        raise ValueError("must be the name of a variable, not a value (letters, digits and _)")
    has_digit = any(character.isdigit() for character in text)
    if "_" not in text and has_digit and len(text) > _LONGEST_PLAIN:
        raise ValueError("looks like the secret itself; put it into a variable and write the variable's name here")
    return text


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
