"""What is wrong with a configuration, in sentences for whoever wrote it: place, key, fault, way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.config.document import Document, KeyPath
from pytest_captcha_qa.errors import ConfigError, nearest_of
from pytest_captcha_qa.model.redact import MASK

NO_SECRETS = "secrets never stand in the file"
_SECRET_WORDS = re.compile(r"key|secret|token|passw|cookie|auth|credential", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:\A|[_-])(?:api)?(?:keys?|secrets?|tokens?|pass|passw[a-z]*|cookies?|auth|credentials?)(?:\Z|[_-])",
    re.IGNORECASE,
)
_NAMES_A_PLACE = re.compile(r"_(?:env|file)\Z|\A(?:sitekey|token_field|token_at)\Z")
_USER_INFO = re.compile(r"(?<=://)[^/?#@\s]*@")
_PLACEHOLDER = re.compile(r"\{[a-z_.]+\}")
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: the key, its line (0: unknown), and a sentence."""

    key: str
    line: int
    message: str


@dataclass(slots=True)
class Problems:
    """Collects what is wrong with one document, each thing once."""

    document: Document
    found: list[Problem] = field(default_factory=list)

    def add(self, path: KeyPath, message: str) -> None:
        """Keep what is wrong with the key at this path; the first thing found says enough."""
        key = ".".join(path)
        if all(problem.key != key for problem in self.found):
            self.found.append(Problem(key, self.document.line(path), message))

    def refuse(self) -> None:
        """Return quietly if nothing is wrong.

        Raises:
            ConfigError: something is; the message has a line for each problem, in the order of the file.
        """
        if self.found:
            in_order = sorted(self.found, key=lambda problem: problem.line)
            raise ConfigError("\n".join(map(self._sentence, in_order)))

    def _sentence(self, problem: Problem) -> str:
        place = f"{self.document.label}:{problem.line}" if problem.line else self.document.label
        return _printable(f"{place}: {problem.key}: {problem.message}")


def visible(key: str, value: object) -> str:
    """Return the value as it may be shown: no secrets, no user info of URLs, no control characters."""
    if _SECRET_WORDS.search(key) and not _NAMES_A_PLACE.search(key) and not _PLACEHOLDER.fullmatch(str(value)):
        return MASK
    return _printable(_USER_INFO.sub(f"{MASK}@", str(value)))


def names_a_secret(key: str) -> bool:
    """Return whether one of the words of a key is that of a secret: not so `author` or `sitekey`."""
    return _SECRET_NAME.search(key) is not None


def quoted(key: str, value: object) -> str:
    """Return the value in quotes as a sentence may show it: `visible`, and not long."""
    text = visible(key, value)
    return repr(text[:_LONGEST_SHOWN] + ("..." if len(text) > _LONGEST_SHOWN else ""))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the list of what there is."""
    choices = sorted(known)
    return meant(name, choices) or (f"; there are: {', '.join(choices)}" if choices else "")


def meant(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, empty if nothing is near."""
    near = nearest_of(name, sorted(known))
    return f"; did you mean {near!r}?" if near is not None else ""


def url_secrets(problems: Problems, value: object, path: KeyPath = ()) -> None:
    """Add a problem for each URL in the document that holds a user name or password."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            url_secrets(problems, inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            url_secrets(problems, inner, path)
    elif isinstance(value, str) and _USER_INFO.search(value):
        problems.add(path, f"{NO_SECRETS}: the URL holds a user name or password; name a variable instead")


def _printable(text: str) -> str:
    """Return the text on one line: a key or value may hold line breaks and control characters."""
    return "".join(character if character.isprintable() else "?" for character in text)
