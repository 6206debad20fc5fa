from __future__ import annotations

from typing import Any

import pytest

from pytest_captcha_qa.sandbox import keys, official

HCAPTCHA = "/siteverify"
CLOUDFLARE = "/turnstile/v0/siteverify"
GOOGLE = "/recaptcha/api/siteverify"
DUMMY = "XXXX.DUMMY.TOKEN.XXXX"


@pytest.mark.parametrize(
    ("path", "pair", "token", "codes"),
    [
        (GOOGLE, official.RECAPTCHA_V2, "anything", []),
        (GOOGLE, official.RECAPTCHA_V2, "", ["missing-input-response"]),
        (CLOUDFLARE, official.TURNSTILE, DUMMY, []),
        (CLOUDFLARE, official.TURNSTILE, "anything", ["invalid-input-response"]),
        (CLOUDFLARE, official.TURNSTILE_FAILS, DUMMY, ["invalid-input-response"]),
        (CLOUDFLARE, official.TURNSTILE_SPENT, DUMMY, ["timeout-or-duplicate"]),
        (HCAPTCHA, official.HCAPTCHA, "10000000-aaaa-bbbb-cccc-000000000001", []),
        (HCAPTCHA, official.HCAPTCHA, "20000000-aaaa-bbbb-cccc-000000000002", []),
        (HCAPTCHA, official.HCAPTCHA, "anything", ["not-using-dummy-passcode"]),
    ],
)
def test_an_official_test_secret_says_the_same_every_time(
    vendor: Any, path: str, pair: keys.KeyPair, token: str, codes: list[str]
) -> None:
    for _ in range(2):
        reply = vendor.post(path, {"secret": pair.secret, "response": token}).json()
        assert (reply["success"], reply.get("error-codes", [])) == (not codes, codes)


def test_test_secrets_name_neither_the_page_nor_action_or_score(vendor: Any) -> None:
    google = vendor.post(GOOGLE, {"secret": official.RECAPTCHA_V2.secret, "response": "x"}).json()
    cloudflare = vendor.post(CLOUDFLARE, {"secret": official.TURNSTILE.secret, "response": DUMMY}).json()
    assert google.keys() == {"success", "challenge_ts", "hostname"}
    assert (google["hostname"], cloudflare["hostname"]) == ("testkey.google.com", "example.com")
    assert cloudflare["metadata"] == {"result_with_testing_key": True}
    assert not {"action", "cdata"} & cloudflare.keys()


def test_a_real_secret_takes_no_dummy_token(vendor: Any) -> None:
    reply = vendor.post(CLOUDFLARE, {"secret": keys.TURNSTILE.secret, "response": DUMMY}).json()
    assert reply["error-codes"] == ["invalid-input-response"]
