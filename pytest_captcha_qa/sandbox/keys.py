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
RECAPTCHA_V2_INVISIBLE = KeyPair("6LcSANDBOXi2sitekeyAAAAAAAAAAAAAAAAAAAAA", "6LcSANDBOXi2secretAAAAAAAAAAAAAAAAAAAAAA")
RECAPTCHA_ENTERPRISE = KeyPair("6LcSANDBOXe1sitekeyAAAAAAAAAAAAAAAAAAAAA", "AIzaSANDBOXenterpriseapikeyAAAAAAAAAAAAA")
HCAPTCHA = KeyPair("5a9db0c4-ca7a-4000-8000-000000000001", "0x5a9db0c4ca7a00000000000000000000000000AA")
GEETEST_V4 = KeyPair("5a9db0c4ca7a00000000000000000004", "5a9db0c4ca7a0000000000000004beef")
FRIENDLY_V2 = KeyPair("FCMSANDBOX000001", "A1SANDBOXfriendlyapikey0000000000000000000001")
GEETEST_V3 = KeyPair("5a9db0c4ca7a00000000000000000001", "5a9db0c4ca7a0000000000000000beef")
BROKEN = KeyPair("0x4AAAAAAASANDBOXbroken1", "0x4AAAAAAASANDBOXbroken1secretAAAAA")
UNPROTECTED = KeyPair("6LcSANDBOXopensitekeyAAAAAAAAAAAAAAAAAAA", "6LcSANDBOXopensecretAAAAAAAAAAAAAAAAAAAA")

LAB = tuple(
    KeyPair(f"0x4AAAAAAASANDBOXlab{number:04}", f"0x4AAAAAAASANDBOXlab{number:04}secretAAAAA") for number in range(100)
)
"""Those of the forms under `/lab`, one each."""

PAIRS = (
    RECAPTCHA_V2,
    RECAPTCHA_V2_INVISIBLE,
    RECAPTCHA_V3,
    RECAPTCHA_ENTERPRISE,
    TURNSTILE,
    HCAPTCHA,
    GEETEST_V3,
    GEETEST_V4,
    FRIENDLY_V2,
    BROKEN,
    UNPROTECTED,
    *LAB,
)
SITEKEY_OF_SECRET = {pair.secret: pair.sitekey for pair in PAIRS}
SECRET_OF_SITEKEY = {pair.sitekey: pair.secret for pair in PAIRS}

ALTCHA_KEY = "5a9db0c4ca7aSANDBOXaltchahmackey"
"""Signs the site's ALTCHA challenges; no vendor takes part in them."""

RETIRED_SECRET = "0x4AAAAAAASANDBOXretired0secretAAAA"
"""A secret the vendor stand-in no longer accepts: what a site with a stale secret sends."""
