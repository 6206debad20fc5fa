"""What the sandbox knows about each captcha type: solve times, the look of an answer, and how long it lives.

Every answer carries a mark inside its normal shape, so that nothing can take a sandbox token for a vendor's.
"""

from __future__ import annotations

import base64
import hashlib
import math
import string
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from pytest_captcha_qa.sandbox.binding import Binding

STRING_MARK = "c4ptchaqaSANDBOX"
HEX_MARK = "5a9db0c4ca7a"

_URLSAFE = string.ascii_letters + string.digits + "-_"
_HEX = "0123456789abcdef"


def string_token(rng: Random, binding: Binding, *, prefix: str, shortest: int, longest: int) -> str:
    """Return a token of the vendor's shape: its prefix, our mark, then URL-safe characters."""
    length = rng.randint(shortest, longest)
    head = prefix + STRING_MARK
    return head + "".join(rng.choices(_URLSAFE, k=length - len(head)))


def geetest_validate(rng: Random, binding: Binding) -> str:
    """Return the `validate` part of a GeeTest v3 answer: 32 hexadecimal digits that start with our mark."""
    return HEX_MARK + "".join(rng.choices(_HEX, k=32 - len(HEX_MARK)))


def geetest_lot_number(rng: Random, binding: Binding) -> str:
    """Return the `lot_number` of a GeeTest v4 answer: 32 hexadecimal digits, our mark and the time among them."""
    head = f"{HEX_MARK}{int(time.time()):08x}"
    return head + "".join(rng.choices(_HEX, k=32 - len(head)))


def decided(rng: Random, binding: Binding) -> str:
    """Return the answer that the challenge itself decides."""
    return binding.answer


def geetest_v3_parts(text: str, binding: Binding) -> Mapping[str, str]:
    """Return the three values of a GeeTest v3 answer."""
    return {"challenge": binding.challenge, "validate": text, "seccode": f"{text}|jordan"}


def geetest_v4_parts(text: str, binding: Binding) -> Mapping[str, str]:
    """Return the five values of a GeeTest v4 answer; all follow from its lot number, so that they can be compared."""
    output = hashlib.sha512(f"output {text}".encode()).digest() * 3
    return {
        "captcha_id": binding.sitekey,
        "lot_number": text,
        "pass_token": hashlib.sha256(f"pass {text}".encode()).hexdigest(),
        "gen_time": str(int(text[len(HEX_MARK) :][:8], 16)),
        "captcha_output": base64.urlsafe_b64encode(output).decode(),
    }


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
    mint: Callable[[Random, Binding], str]
    parts: Callable[[str, Binding], Mapping[str, str]] | None = None
    """The values of an answer that has several, all made from its text."""
    scored: bool = False
    """Whether siteverify tells a score and an action about its tokens."""
    has_vendor: bool = True
    """Whether anybody but the site itself verifies its answers."""

    def solve_seconds(self, rng: Random) -> float:
        """Draw how long one solve takes."""
        return rng.lognormvariate(math.log(self.median), self.spread)


_recaptcha = partial(string_token, prefix="03AFcWeA", shortest=400, longest=600)
_turnstile = partial(string_token, prefix="0.", shortest=300, longest=500)
# Real ones pass 4000 characters, which some sites do not expect; Friendly's are about 6 kB.
_hcaptcha = partial(string_token, prefix="P1_", shortest=4100, longest=4600)
_friendly = partial(string_token, prefix="AQQA.", shortest=5900, longest=6200)

TYPES = {
    facts.name: facts
    for facts in (
        SandboxType("recaptcha_v2", median=21, spread=0.35, lifetime=120, mint=_recaptcha),
        SandboxType("recaptcha_v2_invisible", median=21, spread=0.35, lifetime=120, mint=_recaptcha),
        SandboxType("recaptcha_v3", median=6, spread=0.3, lifetime=120, mint=_recaptcha, scored=True),
        SandboxType("recaptcha_enterprise", median=21, spread=0.35, lifetime=120, mint=_recaptcha),
        SandboxType("turnstile", median=7, spread=0.3, lifetime=300, mint=_turnstile),
        SandboxType("hcaptcha", median=24, spread=0.35, lifetime=120, mint=_hcaptcha),
        SandboxType("geetest_v3", median=14, spread=0.35, lifetime=60, mint=geetest_validate, parts=geetest_v3_parts),
        SandboxType("geetest_v4", median=14, spread=0.35, lifetime=60, mint=geetest_lot_number, parts=geetest_v4_parts),
        SandboxType("friendly_v2", median=10, spread=0.3, lifetime=60, mint=_friendly),
        SandboxType("altcha", median=1, spread=0.3, lifetime=60, mint=decided, has_vendor=False),
        SandboxType("image", median=4, spread=0.3, lifetime=60, mint=decided, has_vendor=False),
    )
}
"""The types of the harness, which the solving service and the site play."""

# Its real tokens have no documented shape; this one is as long as a form field commonly allows.
_YANDEX = SandboxType(
    "yandex", median=8, spread=0.3, lifetime=300, mint=partial(string_token, prefix="", shortest=300, longest=500)
)
ISSUED: Mapping[str, SandboxType] = {**TYPES, _YANDEX.name: _YANDEX}
"""All types that tokens are issued for: also those that only a backend knows, since no service here solves them."""
