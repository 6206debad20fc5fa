"""The demo site's sitekeys and their secrets, known to the site and to the vendor stand-in.

They are made up, open nothing outside the sandbox, and have the vendors' shapes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public sitekey and the secret that verifies its tokens."""

    sitekey: str
    secret: str


RECAPTCHA_V2 = KeyPair("6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA", "6LcSANDBOXv2secretAAAAAAAAAAAAAAAAAAAAAA")
RECAPTCHA_V3 = KeyPair("6LcSANDBOXv3sitekeyAAAAAAAAAAAAAAAAAAAAA", "6LcSANDBOXv3secretAAAAAAAAAAAAAAAAAAAAAA")
TURNSTILE = KeyPair("0x4AAAAAAASANDBOXlogin01", "0x4AAAAAAASANDBOXlogin01secretAAAAA")
GEETEST_V3 = KeyPair("5a9db0c4ca7a00000000000000000001", "5a9db0c4ca7a0000000000000000beef")
BROKEN = KeyPair("0x4AAAAAAASANDBOXbroken1", "0x4AAAAAAASANDBOXbroken1secretAAAAA")
UNPROTECTED = KeyPair("6LcSANDBOXopensitekeyAAAAAAAAAAAAAAAAAAA", "6LcSANDBOXopensecretAAAAAAAAAAAAAAAAAAAA")

PAIRS = (RECAPTCHA_V2, RECAPTCHA_V3, TURNSTILE, GEETEST_V3, BROKEN, UNPROTECTED)
SITEKEY_OF_SECRET = {pair.secret: pair.sitekey for pair in PAIRS}

RETIRED_SECRET = "0x4AAAAAAASANDBOXretired0secretAAAA"
"""A secret the vendor stand-in no longer accepts: what a site with a stale secret sends."""
