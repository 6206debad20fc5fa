"""What an option's text means, and the sentence for one that means nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_captcha_qa.config.problems import meant
from pytest_captcha_qa.errors import ConfigError

BASELINE = "`previous`, a release, or record files; a release goes before files of its name"
"""What every command takes for a baseline."""
_LONGEST_SHOWN = 80


def whole(flag: str, text: str, *, least: int, most: int | None = None, why: str = "") -> int:
    """Return the whole number.

    Raises:
        ConfigError: it is none or lies outside; `why` ends that sentence.
    """
    fits = text.isascii() and text.isdecimal() and int(text) >= least and (most is None or int(text) <= most)
    if not fits:
        limits = f"from {least}" + (f" to {most}" if most is not None else "")
        raise ConfigError(f"{flag}: {_shown(text)} is not a whole number {limits}{why}")
    return int(text)


def factor(flag: str, text: str) -> float:
    """Return the number, 0 or more.

    Raises:
        ConfigError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ConfigError(f"{flag}: {_shown(text)} is not a number from 0, such as 0.5")
    return number


def share(flag: str, text: str, *, most: float) -> float:
    """Return the number above 0.

    Raises:
        ConfigError: it is none, or above `most`.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= most:
        raise ConfigError(f"{flag}: {_shown(text)} is not a number above 0 and at most {most:g}, such as 0.05")
    return number


def one_of(flag: str, text: str, choices: Iterable[str]) -> str:
    """Return the text if it is among the choices.

    Raises:
        ConfigError: it is not; the message names them, and the nearest.
    """
    known = list(map(str, choices))
    if text not in known:
        raise ConfigError(f"{flag}: {_shown(text)} is not one of {', '.join(known)}{meant(text, known)}")
    return text


def not_empty(flag: str, text: str | None) -> str | None:
    """Return the text, None where nothing was given.

    Raises:
        ConfigError: it is empty, as where a script's variable is not set.
    """
    if text is not None and not text.strip():
        raise ConfigError(f"{flag} is empty; is the variable set that it comes from?")
    return text


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])
