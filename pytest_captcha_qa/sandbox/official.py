"""The vendors' official test secrets, as the stand-in plays them: they judge dummy tokens, whatever was solved.

Facts: reference/verification.md 2.1 and 2.2, from the vendors' documentation of testing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_captcha_qa.sandbox.keys import KeyPair

RECAPTCHA_V2 = KeyPair("6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI", "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe")
TURNSTILE = KeyPair("1x00000000000000000000AA", "1x0000000000000000000000000000000AA")
TURNSTILE_FAILS = KeyPair("2x00000000000000000000AB", "2x0000000000000000000000000000000AA")
TURNSTILE_SPENT = KeyPair("3x00000000000000000000FF", "3x0000000000000000000000000000000AA")
HCAPTCHA = KeyPair("10000000-ffff-ffff-ffff-000000000001", "0x0000000000000000000000000000000000000000")

_CLOUDFLARE_TOKENS = frozenset({"XXXX.DUMMY.TOKEN.XXXX"})
_HCAPTCHA_TOKENS = frozenset(f"{n}0000000-aaaa-bbbb-cccc-00000000000{n}" for n in (1, 2, 3))


@dataclass(frozen=True, slots=True)
class TestSecret:
    """What a test secret says.

    `tokens`: those it takes, None for any; `codes`: what it says of them, nothing if it accepts them; `others`: what it
    says of other tokens; `reply`: the rest of its answer.
    """

    __test__ = False  # not a test class, whatever its name

    tokens: frozenset[str] | None
    codes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    reply: Mapping[str, Any] = field(default_factory=dict)

    def verdict(self, token: str) -> tuple[str, ...]:
        """Return the codes for a token, none if it is accepted."""
        return self.codes if self.tokens is None or token in self.tokens else self.others


def _cloudflare(*codes: str) -> TestSecret:
    said = {"hostname": "example.com", "metadata": {"result_with_testing_key": True}}
    return TestSecret(_CLOUDFLARE_TOKENS, codes, ("invalid-input-response",), said)


TEST_SECRETS: Mapping[str, TestSecret] = {
    RECAPTCHA_V2.secret: TestSecret(None, reply={"hostname": "testkey.google.com"}),
    TURNSTILE.secret: _cloudflare(),
    TURNSTILE_FAILS.secret: _cloudflare("invalid-input-response"),
    TURNSTILE_SPENT.secret: _cloudflare("timeout-or-duplicate"),
    HCAPTCHA.secret: TestSecret(
        _HCAPTCHA_TOKENS,
        others=("not-using-dummy-passcode",),
        reply={"credit": False, "hostname": "dummy-key-pass"},
    ),
}
