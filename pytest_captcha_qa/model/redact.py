"""What may be shown of a token, a secret or a foreign text: pure functions, by allow-list (R2.2)."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator

MASK = "***"
Learn = Callable[[Iterable[str]], None]
"""Is told secrets as they come to be known, so that they can be masked from then on."""

_PREFIX_LIMIT = 6
_PREFIX_SHARE = 0.05
_IN_WORDS = frozenset(string.ascii_letters + string.digits + "_.|/+=~%:-")
_WINDOW = 8


def forget(secrets: Iterable[str]) -> None:
    """Learn nothing."""


def token_prefix(text: str) -> str:
    """Return at most 6 characters and 5 % of a token; nothing of a short answer."""
    return str.__getitem__(text, slice(0, min(_PREFIX_LIMIT, int(len(text) * _PREFIX_SHARE))))


class Scrubber:
    """Removes known secrets from a text, also when only a part of one survived a truncation.

    A backstop behind masked reprs, for texts that others make: a failing test's report, captured output.
    """

    def __init__(self) -> None:
        self._windows: set[str] = set()
        self._short: set[str] = set()

    def learn(self, secrets: Iterable[str]) -> None:
        """Remember secrets; those under four characters would mask ordinary words and are left out."""
        for secret in secrets:
            if len(secret) >= _WINDOW:
                self._windows.update(secret[i : i + _WINDOW] for i in range(len(secret) - _WINDOW + 1))
            elif len(secret) >= 4:
                self._short.add(secret)

    def clean(self, text: str) -> str:
        """Return the text without what shares eight characters in a row with a secret, and the word around it."""
        kept, done = [], 0
        for start, end in self._found(text):
            kept += [text[done:start], MASK]
            done = end
        text = "".join(kept) + text[done:]
        for secret in sorted(self._short, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the stretches to be masked begin and end, in order."""
        index = done = 0
        while self._windows and index <= len(text) - _WINDOW:
            if text[index : index + _WINDOW] not in self._windows:
                index += 1
                continue
            start, end = index, index + _WINDOW
            while start > done and text[start - 1] in _IN_WORDS:
                start -= 1
            while end < len(text) and (text[end] in _IN_WORDS or text[end + 1 - _WINDOW : end + 1] in self._windows):
                end += 1
            yield start, end
            index = done = end
