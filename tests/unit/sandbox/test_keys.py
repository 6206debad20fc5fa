from __future__ import annotations

import re

from pytest_captcha_qa.sandbox import keys


def test_no_secret_is_a_sitekey_or_stands_for_two() -> None:
    secrets = [pair.secret for pair in keys.PAIRS]
    sitekeys = [pair.sitekey for pair in keys.PAIRS]
    assert len(set(secrets)) == len(set(sitekeys)) == len(keys.PAIRS)
    assert not set(secrets) & set(sitekeys)
    assert keys.RETIRED_SECRET not in secrets


def test_the_keys_have_the_vendors_shapes() -> None:
    for pair in (keys.RECAPTCHA_V2, keys.RECAPTCHA_V3, keys.UNPROTECTED):
        assert all(re.fullmatch(r"6L[\w-]{38}", key) for key in (pair.sitekey, pair.secret))
    for pair in (keys.TURNSTILE, keys.BROKEN):
        assert re.fullmatch(r"0x4\w{21}", pair.sitekey)
        assert re.fullmatch(r"0x4\w{32}", pair.secret)
    assert all(re.fullmatch(r"[0-9a-f]{32}", key) for key in (keys.GEETEST_V3.sitekey, keys.GEETEST_V3.secret))
