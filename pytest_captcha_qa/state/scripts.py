"""The Lua scripts of the Redis store, each put together once from what it shares with the others."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pytest_captcha_qa.state.packed import Packed


@dataclass(frozen=True, slots=True)
class Script:
    """A script: the beginning of the command that runs it by the name it has once it was loaded, and by its text."""

    by_name: Packed
    by_text: Packed

    @classmethod
    def of(cls, *parts: str, clock: int) -> Script:
        """Return the script made of the files of these names; `clock`: which of its arguments is the time."""
        folder = files("pytest_captcha_qa.state").joinpath("lua")
        source = b"local CLOCK = %d\n" % clock + b"".join(folder.joinpath(f"{part}.lua").read_bytes() for part in parts)
        sha = hashlib.sha1(source, usedforsecurity=False).hexdigest()
        return cls(Packed.of("EVALSHA", sha), Packed.of("EVAL", source))


@cache
def transition(name: str) -> Script:
    """Return the script of one transition of a key."""
    first = ("hit",) if name == "claim" else ()
    return Script.of("clock", *first, "key", name, clock=7)


@cache
def limits() -> Script:
    """Return the script of the port Limits."""
    return Script.of("clock", "limits", clock=1)
