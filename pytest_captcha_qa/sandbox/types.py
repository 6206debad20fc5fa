"""What the sandbox knows about each captcha type: solve times, the look of an answer, and how long it lives.

Every answer carries a mark inside its normal shape, so that nothing can take a sandbox token for a vendor's.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

STRING_MARK = "c4ptchaqaSANDBOX"
HEX_MARK = "5a9db0c4ca7a"

_URLSAFE = string.ascii_letters + string.digits + "-_"
_HEX = "0123456789abcdef"


def string_token(rng: Random, *, prefix: str, shortest: int, longest: int) -> str:
    """Return a token of the vendor's shape: its prefix, our mark, then URL-safe characters."""
    length = rng.randint(shortest, longest)
    head = prefix + STRING_MARK
    return head + "".join(rng.choices(_URLSAFE, k=length - len(head)))


def geetest_validate(rng: Random) -> str:
    """Return the `validate` part of a GeeTest v3 answer: 32 hexadecimal digits that start with our mark."""
    return HEX_MARK + "".join(rng.choices(_HEX, k=32 - len(HEX_MARK)))


@dataclass(frozen=True, slots=True)
class SandboxType:
    """The facts of one captcha type, as the sandbox plays it."""

    name: str
    median: float
    """Seconds half of the solves take, before the time scale."""
    spread: float
    """Sigma of the log-normal distribution of solve times."""
    lifetime: float
    """Seconds an answer is valid, counted from the end of the solve; never scaled."""
    mint: Callable[[Random], str]

    def solve_seconds(self, rng: Random) -> float:
        """Draw how long one solve takes."""
        return rng.lognormvariate(math.log(self.median), self.spread)


_recaptcha = partial(string_token, prefix="03AFcWeA", shortest=400, longest=600)
_turnstile = partial(string_token, prefix="0.", shortest=300, longest=500)

TYPES = {
    facts.name: facts
    for facts in (
        SandboxType("recaptcha_v2", median=21, spread=0.35, lifetime=120, mint=_recaptcha),
        SandboxType("recaptcha_v2_invisible", median=21, spread=0.35, lifetime=120, mint=_recaptcha),
        SandboxType("recaptcha_v3", median=6, spread=0.3, lifetime=120, mint=_recaptcha),
        SandboxType("turnstile", median=7, spread=0.3, lifetime=300, mint=_turnstile),
        SandboxType("geetest_v3", median=14, spread=0.35, lifetime=60, mint=geetest_validate),
    )
}
